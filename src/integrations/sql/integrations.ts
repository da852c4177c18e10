import type { JsonObject } from '../../base/index.ts'
import { execute, jsonb, query, queryOne, type Tx } from '../../database/index.ts'

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

const BASIC_COLUMNS = `id, team_id as "teamId", name, category, is_beta as "isBeta", sharing,
  created_at as "createdAt", updated_at as "updatedAt", version`
const INTEGRATION_COLUMNS = `${BASIC_COLUMNS}, config`

function integrationColumns(withConfig: boolean): string {
  return withConfig ? INTEGRATION_COLUMNS : BASIC_COLUMNS
}

/** Stores an integration, or `undefined` when the team has one of that name. */
export async function insertIntegration(
  tx: Tx,
  id: string,
  teamId: string,
  fields: IntegrationFields,
): Promise<IntegrationRecord | undefined> {
  return await queryOne(
    tx,
    `insert into integration (id, team_id, name, category, is_beta, sharing, config)
     values (?, ?, ?, ?, ?, ?, ?::jsonb) on conflict (team_id, name) do nothing returning ${INTEGRATION_COLUMNS}`,
    [id, teamId, fields.name, fields.category, fields.isBeta, fields.sharing, jsonb(fields.config)],
  )
}

/** An integration of any team, for those who have established that they may see it. Rides on the primary key. */
export async function findIntegration(tx: Tx, id: string): Promise<IntegrationRecord | undefined> {
  return await queryOne(tx, `select ${INTEGRATION_COLUMNS} from integration where id = ?`, [id])
}

/** The integrations of the ids that exist, of any team, in no order. Rides on the primary key. */
export async function findIntegrations(
  tx: Tx,
  ids: readonly string[],
  withConfig: boolean,
): Promise<readonly IntegrationRecord[]> {
  return await query(tx, `select ${integrationColumns(withConfig)} from integration where id = any(?)`, [ids])
}

/** Rides on integration_name. */
export async function findIntegrationByName(
  tx: Tx,
  teamId: string,
  name: string,
): Promise<IntegrationRecord | undefined> {
  return await queryOne(tx, `select ${BASIC_COLUMNS} from integration where team_id = ? and name = ?`, [teamId, name])
}

/**
 * Integrations that the team owns or another team shares, below `before` (all when undefined), newest first.
 *
 * Rides on the primary key backwards: most integrations of an installation are visible to most of its teams.
 */
export async function listVisibleIntegrations(
  tx: Tx,
  teamId: string,
  page: { readonly before: string | undefined; readonly limit: number; readonly withConfig: boolean },
): Promise<readonly IntegrationRecord[]> {
  return await query(
    tx,
    `select ${integrationColumns(page.withConfig)} from integration
     where (team_id = ? or sharing <> 'deny') and (?::uuid is null or id < ?) order by id desc limit ?`,
    [teamId, page.before ?? null, page.before ?? null, page.limit],
  )
}

/**
 * Changes the given fields; `undefined` when the team has no such integration or its version is not the given one.
 *
 * A taken name breaks INTEGRATION_NAME_CONSTRAINT.
 */
export async function updateIntegrationRow(
  tx: Tx,
  teamId: string,
  id: string,
  fields: { readonly [Field in keyof IntegrationFields]?: IntegrationFields[Field] | undefined },
  version: number | undefined,
): Promise<IntegrationRecord | undefined> {
  return await queryOne(
    tx,
    `update integration set
       name = coalesce(?, name), category = coalesce(?, category), is_beta = coalesce(?, is_beta),
       sharing = coalesce(?, sharing), config = coalesce(?::jsonb, config), updated_at = now(), version = version + 1
     where id = ? and team_id = ? and version = coalesce(?, version) returning ${INTEGRATION_COLUMNS}`,
    [
      fields.name ?? null,
      fields.category ?? null,
      fields.isBeta ?? null,
      fields.sharing ?? null,
      fields.config === undefined ? null : jsonb(fields.config),
      id,
      teamId,
      version ?? null,
    ],
  )
}

/**
 * Deletes an integration with its grants; returns whether the team had it in the given version.
 *
 * The foreign key of installations refuses it while there are any.
 */
export async function deleteIntegrationRow(
  tx: Tx,
  teamId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const sql = 'delete from integration where id = ? and team_id = ? and version = coalesce(?, version)'
  return (await execute(tx, sql, [id, teamId, version ?? null])) > 0
}

/** Ids of the team's integrations, oldest first. Rides on integration_name. */
export async function listIntegrationIdsOfTeam(tx: Tx, teamId: string, limit: number): Promise<readonly string[]> {
  const found = await query<{ id: string }>(tx, 'select id from integration where team_id = ? order by id limit ?', [
    teamId,
    limit,
  ])
  return found.map(({ id }) => id)
}

/** The owner's permission for another team to install an integration that is shared on request. */
export interface IntegrationGrantRecord {
  readonly integrationId: string
  readonly teamId: string
  readonly createdAt: Date
}

/** The position of a grant among those of its integration. */
export interface GrantCursor {
  readonly createdAt: Date
  readonly teamId: string
}

const GRANT_COLUMNS = 'integration_id as "integrationId", team_id as "teamId", created_at as "createdAt"'

/** Stores a grant unless it is there; returns whether it was missing. */
export async function insertIntegrationGrant(tx: Tx, integrationId: string, teamId: string): Promise<boolean> {
  const sql = 'insert into integration_grant (integration_id, team_id) values (?, ?) on conflict do nothing'
  return (await execute(tx, sql, [integrationId, teamId])) > 0
}

/** Rides on the primary key. */
export async function findIntegrationGrant(
  tx: Tx,
  integrationId: string,
  teamId: string,
): Promise<IntegrationGrantRecord | undefined> {
  return await queryOne(tx, `select ${GRANT_COLUMNS} from integration_grant where integration_id = ? and team_id = ?`, [
    integrationId,
    teamId,
  ])
}

/** Grants of the integration after `after` (all when undefined), newest first. Rides on the primary key and sorts. */
export async function selectIntegrationGrants(
  tx: Tx,
  integrationId: string,
  after: GrantCursor | undefined,
  limit: number,
): Promise<readonly IntegrationGrantRecord[]> {
  const { createdAt = null, teamId = null } = after ?? {}
  return await query(
    tx,
    `select ${GRANT_COLUMNS} from integration_grant
     where integration_id = ? and (?::timestamptz is null or (created_at, team_id) < (?::timestamptz, ?::uuid))
     order by created_at desc, team_id desc limit ?`,
    [integrationId, createdAt, createdAt, teamId, limit],
  )
}

/** Returns whether the grant was there. */
export async function deleteIntegrationGrantRow(tx: Tx, integrationId: string, teamId: string): Promise<boolean> {
  const sql = 'delete from integration_grant where integration_id = ? and team_id = ?'
  return (await execute(tx, sql, [integrationId, teamId])) > 0
}
