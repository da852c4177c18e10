import { execute, query, queryOne, type Tx } from '../database.ts'

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
