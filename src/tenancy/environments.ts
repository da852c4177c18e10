import { etagMismatch, Failure, newId, notFound } from '../base/index.ts'
import { isUniqueViolation, mapForeignKeyToInUse, type Tx } from '../database/index.ts'
import {
  type BrandingChange,
  deleteEnvironmentRow,
  ENVIRONMENT_NAME_CONSTRAINT,
  type EnvironmentChange,
  type EnvironmentRecord,
  findEnvironment,
  findEnvironmentByName,
  insertEnvironment,
  listEnvironments,
  updateEnvironmentRow,
} from './sql/environments.ts'

/** Environments of a deleted team per read. */
const DELETE_BATCH_SIZE = 100

/** Creates an empty environment. @throws Failure NAME_TAKEN with the environment of that name */
export async function createEnvironment(
  tx: Tx,
  teamId: string,
  input: { readonly name: string; readonly branding?: BrandingChange | undefined },
): Promise<EnvironmentRecord> {
  const environment = await insertEnvironment(tx, newId(), teamId, input.name, input.branding)
  if (environment === undefined) throw nameTaken(input.name, await findEnvironmentByName(tx, teamId, input.name))
  return environment
}

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getEnvironment(tx: Tx, teamId: string, id: string): Promise<EnvironmentRecord> {
  const environment = await findEnvironment(tx, id)
  if (environment?.teamId !== teamId) throw notFound('environment', id)
  return environment
}

/**
 * Changes name and branding; what is not given is kept.
 *
 * @param input.version the version the caller read; absent: any
 * @throws Failure RESOURCE_NOT_FOUND, NAME_TAKEN, ETAG_MISMATCH
 */
export async function updateEnvironment(
  tx: Tx,
  teamId: string,
  input: {
    readonly id: string
    readonly name?: string | undefined
    readonly branding?: BrandingChange | undefined
    readonly version?: number | undefined
  },
): Promise<EnvironmentRecord> {
  const { id, version, branding = {} } = input
  const stored = await getEnvironment(tx, teamId, id)
  if (version !== undefined && version !== stored.version) throw etagMismatch('environment', id)
  const name = input.name ?? stored.name
  const isSame =
    name === stored.name && BRANDING_FIELDS.every((field) => (branding[field] ?? stored[field]) === stored[field])
  if (isSame) return stored
  const holder = name === stored.name ? undefined : await findEnvironmentByName(tx, teamId, name)
  // The environment itself has it: a concurrent call has just renamed it, and the version tells.
  if (holder !== undefined && holder.id !== id) throw nameTaken(name, holder)
  // A name that was not given is not written: a concurrent call may have changed it.
  const updated = await change(tx, teamId, id, { ...branding, name: input.name }, version)
  if (updated === undefined) throw etagMismatch('environment', id)
  return updated
}

const BRANDING_FIELDS = ['displayName', 'logoUrl', 'accentColor'] as const

/**
 * Deletes an environment with its tokens, and with `force` everything in it.
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
  if (force) await deps.contents.deleteByEnvironment(tx, id)
  const why =
    'the environment holds installations, jobs, webhooks or mappings: delete them first, or set force to delete them with it'
  const remove = () => deleteEnvironmentRow(tx, teamId, id, version)
  if (!(await mapForeignKeyToInUse({ type: 'environment', id, why }, remove))) throw etagMismatch('environment', id)
  await deps.contents.destroyKeys(tx, id)
}

/** Deletes all environments of a team by force. */
export async function deleteEnvironmentsOfTeam(
  deps: { readonly contents: CascadeDelete },
  tx: Tx,
  teamId: string,
): Promise<void> {
  for (;;) {
    const found = await listEnvironments(tx, teamId, { limit: DELETE_BATCH_SIZE })
    for (const { id } of found) await deleteEnvironment(deps, tx, teamId, { id, force: true })
    if (found.length < DELETE_BATCH_SIZE) return
  }
}

async function change(tx: Tx, teamId: string, id: string, fields: EnvironmentChange, version: number | undefined) {
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

/**
 * Deletes the contents of an environment or team that is deleted with `force`. They belong to higher modules, which provide
 * this; each deletes its rows and their secrets.
 */
export interface CascadeDelete {
  /** Deletes everything in the environment but its tokens. */
  deleteByEnvironment(tx: Tx, environmentId: string): Promise<void>
  /** Deletes the team's integrations. @throws Failure RESOURCE_IN_USE when another team has installed one */
  deleteIntegrationsOfTeam(tx: Tx, teamId: string): Promise<void>
  /** Makes every remaining secret of the owner, an environment or a team, unreadable for good. */
  destroyKeys(tx: Tx, ownerId: string): Promise<void>
}
