import { etagMismatch, Failure, newId, notFound } from '../../foundation/base/index.ts'
import { type Db, type IdPage, mapForeignKeyToInUse, type Tx } from '../../foundation/database/index.ts'
import { assertOperator, type TeamActor } from './authenticate.ts'
import { type CascadeDelete, continueEnvironmentDeletion } from './environments.ts'
import { hideEnvironments, listEnvironmentIdsOfTeam } from './sql/environments.ts'
import {
  deleteTeamRow,
  findTeam,
  hideTeam,
  insertTeam,
  listAllTeams,
  lockTeam,
  type TeamChange,
  type TeamRecord,
  updateTeamRow,
} from './sql/teams.ts'

/** Environments that a step of the deletion of their team deletes, if they hold little. */
const ENVIRONMENTS_PER_STEP = 3

/** Creates a team without environments and tokens. Absent fields are empty or false. @throws Failure OPERATOR_TEAM_REQUIRED */
export async function createTeam(
  tx: Db,
  actor: TeamActor,
  input: TeamChange & { readonly name: string },
): Promise<TeamRecord> {
  assertOperator(actor)
  return await insertTeam(tx, newId(), {
    name: input.name,
    domain: input.domain ?? '',
    logo: input.logo ?? '',
    isWhiteLabel: input.isWhiteLabel ?? false,
    tosLink: input.tosLink ?? '',
    allowImpersonation: input.allowImpersonation ?? false,
  })
}

/** @throws Failure RESOURCE_NOT_FOUND, also for a team that is not the caller's unless the caller is the operator */
export async function getTeam(tx: Db, actor: TeamActor, id: string): Promise<TeamRecord> {
  const team = administers(actor, id) ? await findTeam(tx, id) : undefined
  if (team === undefined) throw notFound('team', id)
  return team
}

/** The teams that the caller administers, newest first: all for the operator, else its own. */
export async function listTeams(tx: Db, actor: TeamActor, page: IdPage): Promise<readonly TeamRecord[]> {
  if (actor.isOperator) return await listAllTeams(tx, page)
  return page.before === undefined ? [await getTeam(tx, actor, actor.teamId)] : []
}

/**
 * Changes the given fields; none given changes nothing.
 *
 * @param input.version the version the caller read; absent: any
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH
 */
export async function updateTeam(
  tx: Db,
  actor: TeamActor,
  input: TeamChange & { readonly id: string; readonly version?: number | undefined },
): Promise<TeamRecord> {
  const { id, version, ...change } = input
  const isEmpty = Object.values(change).every((value) => value === undefined)
  const updated = isEmpty || !administers(actor, id) ? undefined : await updateTeamRow(tx, id, change, version)
  if (updated !== undefined) return updated
  const stored = await getTeam(tx, actor, id)
  if (isEmpty && (version === undefined || version === stored.version)) return stored
  throw etagMismatch('team', id)
}

/**
 * Deletes a team with its tokens, and with `force` its environments and integrations with everything in them: where there is
 * much, most of it by a task. From the commit on nothing finds the team.
 *
 * @throws Failure OPERATOR_TEAM_REQUIRED, RESOURCE_NOT_FOUND, ETAG_MISMATCH; RESOURCE_IN_USE when it owns environments or
 * integrations and `force` is not set, when another team has installed one of its integrations, and always for the
 * operator's team
 */
export async function deleteTeam(
  deps: { readonly contents: CascadeDelete },
  tx: Tx,
  actor: TeamActor,
  input: { readonly id: string; readonly version?: number | undefined; readonly force?: boolean },
): Promise<void> {
  assertOperator(actor)
  const { id, version, force = false } = input
  const team = await getTeam(tx, actor, id)
  if (team.isOperator)
    throw new Failure('RESOURCE_IN_USE', "the operator's team administers the installation and cannot be deleted", {
      resource: { type: 'team', id },
    })
  if (!(await lockTeam(tx, id, version))) throw etagMismatch('team', id)
  if (force) {
    await deps.contents.assertIntegrationsDeletable(tx, id)
    if (!(await deleteContents(deps, tx, id))) {
      await hideWithContents(deps, tx, id)
      return await deps.contents.startDeletion(tx, 'delete_team', id)
    }
  }
  await deleteEmptied(deps, tx, id)
}

async function deleteEmptied({ contents }: { readonly contents: CascadeDelete }, tx: Tx, id: string): Promise<void> {
  const why = 'the team owns environments or integrations: delete them first, or set force to delete them with it'
  await mapForeignKeyToInUse({ type: 'team', id, why }, () => deleteTeamRow(tx, id))
  await contents.destroyKeys(tx, id)
}

/** Deletes a part of what a team owns; returns whether that was all. */
async function deleteContents(deps: { readonly contents: CascadeDelete }, tx: Tx, id: string): Promise<boolean> {
  const environmentIds = await listEnvironmentIdsOfTeam(tx, id, ENVIRONMENTS_PER_STEP)
  for (const each of environmentIds) if (!(await continueEnvironmentDeletion(deps, tx, each))) return false
  return environmentIds.length < ENVIRONMENTS_PER_STEP && (await deps.contents.deleteIntegrationsOfTeam(tx, id))
}

async function hideWithContents({ contents }: { readonly contents: CascadeDelete }, tx: Tx, id: string): Promise<void> {
  await hideTeam(tx, id)
  const environmentIds = await listEnvironmentIdsOfTeam(tx, id)
  await hideEnvironments(tx, environmentIds)
  await contents.hideByEnvironments(tx, environmentIds)
  await contents.hideIntegrationsOfTeam(tx, id)
}

/** Deletes a part of what a deleted team owns, and at last its row; returns whether it is gone. */
export async function continueTeamDeletion(
  deps: { readonly contents: CascadeDelete },
  tx: Tx,
  id: string,
): Promise<boolean> {
  if (!(await deleteContents(deps, tx, id))) return false
  await deleteEmptied(deps, tx, id)
  return true
}

function administers(actor: TeamActor, teamId: string): boolean {
  return actor.isOperator || actor.teamId === teamId.toLowerCase()
}
