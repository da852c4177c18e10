import {
  type Db,
  jsonb,
  newestFirst,
  nextVersion,
  query,
  type Tx,
  whereVersion,
} from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'

/** Who besides the owner may install an integration. */
export type Sharing = 'allow' | 'ask' | 'deny'

/** An integration as it is stored. */
export interface IntegrationRecord {
  readonly id: string
  readonly teamId: string
  readonly name: string
  readonly category: string
  readonly isBeta: boolean
  readonly sharing: Sharing
  /** Secrets are masked. Undefined when the statement was asked to leave it out. */
  readonly config: JsonObject | undefined
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** What the owner decides about an integration. */
export type IntegrationFields = Pick<IntegrationRecord, 'name' | 'category' | 'isBeta' | 'sharing'> & {
  readonly config: JsonObject
}

/** The unique index on (team, name). */
export const INTEGRATION_NAME_CONSTRAINT = 'integration_name'

const BASIC = ['id', 'team_id', 'name', 'category', 'is_beta', 'sharing', 'created_at', 'updated_at', 'version']
const FULL = [...BASIC, 'config']

/** Stores an integration, or `undefined` when the team has one of that name. */
export async function insertIntegration(
  tx: Db,
  id: string,
  teamId: string,
  fields: IntegrationFields,
): Promise<IntegrationRecord | undefined> {
  const [integration] = await tx('integration')
    .insert({ id, team_id: teamId, ...toColumns(fields) })
    .onConflict(tx.raw('(team_id, name) where deleted_at is null'))
    .ignore()
    .returning(FULL)
  return integration
}

/** An integration of any team; the caller checks that it may be seen. Uses the primary key. */
export async function findIntegration(tx: Db, id: string): Promise<IntegrationRecord | undefined> {
  return await tx('integration').where({ id, deleted_at: null }).first(FULL)
}

/** Like `findIntegration`, also one whose deletion goes on: its accounts are deleted with its definition. */
export async function findDefinitionOf(tx: Db, id: string): Promise<IntegrationRecord | undefined> {
  return await tx('integration').where({ id }).first(FULL)
}

/** The integrations of the ids that exist, of any team, in no order. Uses the primary key. */
export async function findIntegrations(
  tx: Db,
  ids: readonly string[],
  withConfig: boolean,
): Promise<readonly IntegrationRecord[]> {
  return await tx('integration')
    .whereRaw('id = any(?)', [[...ids]])
    .select(withConfig ? FULL : BASIC)
}

/** Without its config. Uses integration_name. */
export async function findIntegrationByName(
  tx: Db,
  teamId: string,
  name: string,
): Promise<IntegrationRecord | undefined> {
  return await tx('integration').where({ team_id: teamId, name, deleted_at: null }).first(BASIC)
}

/**
 * A page of the integrations that the team owns or another team shares.
 *
 * Uses the primary key backwards: most integrations are visible to most teams.
 */
export async function listVisibleIntegrations(
  tx: Db,
  teamId: string,
  page: { readonly before: string | undefined; readonly limit: number; readonly withConfig: boolean },
): Promise<readonly IntegrationRecord[]> {
  return await tx('integration')
    .where({ deleted_at: null })
    .where((either) => either.where({ team_id: teamId }).orWhereNot({ sharing: 'deny' }))
    .modify(newestFirst, page)
    .select(page.withConfig ? FULL : BASIC)
}

/** Names compared with a misspelt one, at most. */
const NAMES_MAX = 400

/** Names of the integrations that the team owns or another team shares, the given one first. Reads all of them. */
export async function listVisibleNames(tx: Db, teamId: string, name: string): Promise<readonly string[]> {
  const rows = await query<{ readonly name: string }>(
    tx,
    `select name from integration where (team_id = :teamId or sharing <> 'deny') and deleted_at is null
     group by name order by name <> :name, name limit ${NAMES_MAX}`,
    { teamId, name },
  )
  return rows.map((row) => row.name)
}

/**
 * Changes the given fields; `undefined` when the team has no such integration or its version is not the given one.
 *
 * A taken name violates INTEGRATION_NAME_CONSTRAINT.
 */
export async function updateIntegrationRow(
  tx: Db,
  teamId: string,
  id: string,
  fields: { readonly [Field in keyof IntegrationFields]?: IntegrationFields[Field] | undefined },
  version: number | undefined,
): Promise<IntegrationRecord | undefined> {
  const [integration] = await tx('integration')
    .where({ id, team_id: teamId, deleted_at: null })
    .modify(whereVersion, version)
    .update({ ...toColumns(fields), ...nextVersion(tx) })
    .returning(FULL)
  return integration
}

/** Deletes an integration with its grants. The foreign key of installations rejects it while there are any. */
export async function deleteIntegrationRow(tx: Db, teamId: string, id: string): Promise<void> {
  await tx('integration').where({ id, team_id: teamId }).delete()
}

/** Locks an integration that is to be deleted, against installations; returns it as it is. Uses the primary key. */
export async function lockIntegration(tx: Tx, id: string): Promise<IntegrationRecord | undefined> {
  return await tx('integration').where({ id, deleted_at: null }).forUpdate().first(BASIC)
}

/** Locks all integrations of a team that is to be deleted, against installations. Uses integration_of_team. */
export async function lockIntegrationsOfTeam(tx: Tx, teamId: string): Promise<void> {
  await tx('integration').where({ team_id: teamId }).orderBy('id').forUpdate().select('id')
}

/** Hides integrations for good; those of `id`, or all of `team_id`. Their names are free. */
export async function hideIntegrations(
  tx: Tx,
  of: { readonly id: string } | { readonly team_id: string },
): Promise<void> {
  await tx('integration')
    .where({ ...of, deleted_at: null })
    .update({ deleted_at: tx.fn.now() })
}

/** Ids of the team's integrations, also of those whose deletion goes on, oldest first. Uses integration_of_team and sorts. */
export async function listIntegrationIdsOfTeam(tx: Db, teamId: string, limit: number): Promise<readonly string[]> {
  return await tx('integration').where({ team_id: teamId }).orderBy('id').limit(limit).pluck('id')
}

function toColumns(fields: { readonly [Field in keyof IntegrationFields]?: IntegrationFields[Field] | undefined }) {
  return {
    name: fields.name,
    category: fields.category,
    is_beta: fields.isBeta,
    sharing: fields.sharing,
    config: fields.config && jsonb(fields.config),
  }
}

/** The owner's permission for another team to install an integration that is shared on request. */
export interface IntegrationGrantRecord {
  readonly integrationId: string
  readonly teamId: string
  readonly createdAt: Date
}

/** The keyset cursor of a list of grants. */
export interface GrantCursor {
  readonly createdAt: Date
  readonly teamId: string
}

const GRANT = ['integration_id', 'team_id', 'created_at']

/** Stores a grant unless it is there. */
export async function insertIntegrationGrant(tx: Db, integrationId: string, teamId: string): Promise<void> {
  await tx('integration_grant').insert({ integration_id: integrationId, team_id: teamId }).onConflict().ignore()
}

/** Uses the primary key. */
export async function findIntegrationGrant(
  tx: Db,
  integrationId: string,
  teamId: string,
): Promise<IntegrationGrantRecord | undefined> {
  return await tx('integration_grant').where({ integration_id: integrationId, team_id: teamId }).first(GRANT)
}

/** Grants of the integration after the cursor, newest first. Uses integration_grant_newest. */
export async function selectIntegrationGrants(
  tx: Db,
  integrationId: string,
  after: GrantCursor | undefined,
  limit: number,
): Promise<readonly IntegrationGrantRecord[]> {
  const grants = tx('integration_grant').where({ integration_id: integrationId })
  if (after !== undefined) grants.whereRaw('(created_at, team_id) < (?, ?)', [after.createdAt, after.teamId])
  return await grants
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'team_id', order: 'desc' },
    ])
    .limit(limit)
    .select(GRANT)
}

/** Returns whether the grant was there. */
export async function deleteIntegrationGrantRow(tx: Db, integrationId: string, teamId: string): Promise<boolean> {
  return (await tx('integration_grant').where({ integration_id: integrationId, team_id: teamId }).delete()) > 0
}
