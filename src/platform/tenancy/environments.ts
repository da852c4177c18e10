import { etagMismatch, Failure, newId, notFound } from '../../foundation/base/index.ts'
import { type Db, isUniqueViolation, mapForeignKeyToInUse, type Tx } from '../../foundation/database/index.ts'
import {
  type BrandingChange,
  deleteEnvironmentRow,
  ENVIRONMENT_NAME_CONSTRAINT,
  type EnvironmentChange,
  type EnvironmentRecord,
  findEnvironment,
  findEnvironmentByName,
  findTeamOfEnvironment,
  hideEnvironments,
  insertEnvironment,
  lockEnvironment,
  updateEnvironmentRow,
} from './sql/environments.ts'

/** Creates an empty environment. @throws Failure NAME_TAKEN with the environment of that name */
export async function createEnvironment(
  tx: Db,
  teamId: string,
  input: {
    readonly name: string
    readonly branding?: BrandingChange | undefined
    readonly allowAccessTokens?: boolean
  },
): Promise<EnvironmentRecord> {
  const { name, branding, allowAccessTokens } = input
  const environment = await insertEnvironment(tx, newId(), teamId, name, branding, allowAccessTokens)
  if (environment === undefined) throw nameTaken(input.name, await findEnvironmentByName(tx, teamId, input.name))
  return environment
}

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getEnvironment(tx: Db, teamId: string, id: string): Promise<EnvironmentRecord> {
  const environment = await findEnvironment(tx, id)
  if (environment?.teamId !== teamId) throw notFound('environment', id)
  return environment
}

/**
 * Changes name, branding and settings; what is not given is kept.
 *
 * @param input.version the version the caller read; absent: any
 * @throws Failure RESOURCE_NOT_FOUND, NAME_TAKEN, ETAG_MISMATCH
 */
export async function updateEnvironment(
  tx: Db,
  teamId: string,
  input: {
    readonly id: string
    readonly name?: string | undefined
    readonly branding?: BrandingChange | undefined
    readonly allowAccessTokens?: boolean | undefined
    readonly version?: number | undefined
  },
): Promise<EnvironmentRecord> {
  const { id, version, branding = {}, allowAccessTokens } = input
  const stored = await getEnvironment(tx, teamId, id)
  if (version !== undefined && version !== stored.version) throw etagMismatch('environment', id)
  const name = input.name ?? stored.name
  const isSame =
    name === stored.name &&
    (allowAccessTokens ?? stored.allowAccessTokens) === stored.allowAccessTokens &&
    BRANDING_FIELDS.every((field) => (branding[field] ?? stored[field]) === stored[field])
  if (isSame) return stored
  const holder = name === stored.name ? undefined : await findEnvironmentByName(tx, teamId, name)
  // The environment itself has it: a concurrent call has just renamed it, and the version tells.
  if (holder !== undefined && holder.id !== id) throw nameTaken(name, holder)
  // A name that was not given is not written: a concurrent call may have changed it.
  const updated = await change(tx, teamId, id, { ...branding, allowAccessTokens, name: input.name }, version)
  if (updated === undefined) throw etagMismatch('environment', id)
  return updated
}

/** @throws Failure ACCESS_TOKENS_DISABLED unless the environment lets tokens and keys of third parties be issued */
export async function assertAccessTokensAllowed(tx: Db, environmentId: string): Promise<void> {
  if ((await findEnvironment(tx, environmentId))?.allowAccessTokens === true) return
  const message = 'this environment issues no tokens of third parties: a team token can set allow_access_tokens'
  throw new Failure('ACCESS_TOKENS_DISABLED', message)
}

const BRANDING_FIELDS = ['displayName', 'logoUrl', 'accentColor'] as const

/**
 * Deletes an environment with its tokens, and with `force` everything in it: where there is much, most of it by a task. From the
 * commit on nothing finds it, and its name is free.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH; RESOURCE_IN_USE when it holds anything and `force` is not set
 */
export async function deleteEnvironment(
  deps: { readonly contents: CascadeDelete },
  tx: Tx,
  teamId: string,
  input: { readonly id: string; readonly version?: number | undefined; readonly force?: boolean },
): Promise<void> {
  const { id, version, force = false } = input
  await getEnvironment(tx, teamId, id)
  if (!(await lockEnvironment(tx, teamId, id, version))) throw etagMismatch('environment', id)
  if (force && !(await deps.contents.deleteByEnvironment(tx, id))) {
    await hideEnvironments(tx, [id])
    await deps.contents.hideByEnvironments(tx, [id])
    return await deps.contents.startDeletion(tx, 'delete_environment', id)
  }
  await deleteEmptied(deps, tx, teamId, id)
}

async function deleteEmptied(
  { contents }: { readonly contents: CascadeDelete },
  tx: Tx,
  teamId: string,
  id: string,
): Promise<void> {
  const why =
    'the environment holds installations, jobs, webhooks or mappings: delete them first, or set force to delete them with it'
  await mapForeignKeyToInUse({ type: 'environment', id, why }, () => deleteEnvironmentRow(tx, teamId, id))
  await contents.destroyKeys(tx, id)
}

/** Deletes a part of what a deleted environment holds, and at last its row; returns whether it is gone. */
export async function continueEnvironmentDeletion(
  deps: { readonly contents: CascadeDelete },
  tx: Tx,
  id: string,
): Promise<boolean> {
  const teamId = await findTeamOfEnvironment(tx, id)
  if (teamId === undefined) return true
  if (!(await deps.contents.deleteByEnvironment(tx, id))) return false
  await deleteEmptied(deps, tx, teamId, id)
  return true
}

async function change(tx: Db, teamId: string, id: string, fields: EnvironmentChange, version: number | undefined) {
  try {
    return await updateEnvironmentRow(tx, teamId, id, fields, version)
  } catch (error) {
    // A concurrent call took the name after it was found free.
    throw isUniqueViolation(error, ENVIRONMENT_NAME_CONSTRAINT) ? nameTaken(fields.name ?? '', undefined) : error
  }
}

function nameTaken(name: string, holder: EnvironmentRecord | undefined): Failure {
  const message = `the team has an environment named ${name} already`
  return new Failure('NAME_TAKEN', message, holder && { resource: { type: 'environment', id: holder.id } })
}

/** Names of the tasks that finish a deletion, in logs. */
export type DeletionKind = 'delete_team' | 'delete_environment' | 'delete_integration'

/**
 * Deletes the contents of an environment or team that is deleted with `force`. They belong to higher modules, which provide
 * this; each deletes its rows and their secrets.
 *
 * What deletes takes some hundred statements at most, however much there is: it returns whether nothing is left.
 */
export interface CascadeDelete {
  /** Deletes some of everything in the environment but its tokens. */
  deleteByEnvironment(tx: Tx, environmentId: string): Promise<boolean>
  /** Hides what acts or is found without a token of the environments: installations, webhooks, tasks. Stops runs. */
  hideByEnvironments(tx: Tx, environmentIds: readonly string[]): Promise<void>
  /** Deletes some of the team's integrations. */
  deleteIntegrationsOfTeam(tx: Tx, teamId: string): Promise<boolean>
  /** Hides the team's integrations. */
  hideIntegrationsOfTeam(tx: Tx, teamId: string): Promise<void>
  /** Locks the team's integrations. @throws Failure RESOURCE_IN_USE when another team has installed one */
  assertIntegrationsDeletable(tx: Tx, teamId: string): Promise<void>
  /** Starts the task that deletes what is left, and the row itself. */
  startDeletion(tx: Tx, kind: DeletionKind, id: string): Promise<void>
  /** Makes every remaining secret of the owner, an environment or a team, unreadable for good. */
  destroyKeys(tx: Tx, ownerId: string): Promise<void>
}
