import { execute, query, queryOne, type Tx } from '../database.ts'

/** A team as it is stored. `tosLink` is empty when there is none. */
export interface TeamRecord {
  readonly id: string
  readonly name: string
  readonly domain: string
  readonly logo: string
  readonly isVerified: boolean
  readonly isWhiteLabel: boolean
  readonly tosLink: string
  readonly allowImpersonation: boolean
  /** The team of the first start, of which there is exactly one. */
  readonly isOperator: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** What a team decides about itself. */
export type TeamFields = Pick<
  TeamRecord,
  'name' | 'domain' | 'logo' | 'isWhiteLabel' | 'tosLink' | 'allowImpersonation'
>

const TEAM_COLUMNS = `id, name, domain, logo, is_verified as "isVerified", is_white_label as "isWhiteLabel",
  tos_link as "tosLink", allow_impersonation as "allowImpersonation", is_operator as "isOperator",
  created_at as "createdAt", updated_at as "updatedAt", version`

/** Stores a team that is not the operator's. */
export async function insertTeam(tx: Tx, id: string, fields: TeamFields): Promise<TeamRecord> {
  const [team] = await query<TeamRecord>(
    tx,
    `insert into team (id, name, domain, logo, is_white_label, tos_link, allow_impersonation)
     values (?, ?, ?, ?, ?, ?, ?) returning ${TEAM_COLUMNS}`,
    [id, fields.name, fields.domain, fields.logo, fields.isWhiteLabel, fields.tosLink, fields.allowImpersonation],
  )
  if (team === undefined) throw new Error('an insert returned no row')
  return team
}

/**
 * Stores the operator's team unless there is one.
 *
 * Of simultaneous callers one gets `true`; the others wait until its transaction ends (index team_operator).
 */
export async function insertOperatorTeam(tx: Tx, id: string, name: string): Promise<boolean> {
  const inserted = await queryOne(
    tx,
    `insert into team (id, name, is_operator) values (?, ?, true)
     on conflict (is_operator) where is_operator do nothing returning id`,
    [id, name],
  )
  return inserted !== undefined
}

/** Rides on team_operator. */
export async function findOperatorTeam(tx: Tx): Promise<TeamRecord | undefined> {
  return await queryOne(tx, `select ${TEAM_COLUMNS} from team where is_operator`)
}

/** Rides on the primary key. */
export async function findTeam(tx: Tx, id: string): Promise<TeamRecord | undefined> {
  return await queryOne(tx, `select ${TEAM_COLUMNS} from team where id = ?`, [id])
}

/** The teams of the ids that exist, in no order. Rides on the primary key. */
export async function findTeams(tx: Tx, ids: readonly string[]): Promise<readonly TeamRecord[]> {
  return await query(tx, `select ${TEAM_COLUMNS} from team where id = any(?)`, [ids])
}

/** Teams below `before` (all when undefined), newest first. Rides on the primary key. */
export async function selectTeams(tx: Tx, before: string | undefined, limit: number): Promise<readonly TeamRecord[]> {
  return await query(
    tx,
    `select ${TEAM_COLUMNS} from team where (?::uuid is null or id < ?) order by id desc limit ?`,
    [before ?? null, before ?? null, limit],
  )
}

/** Changes the given fields; `undefined` when there is no such team or its version is not the given one. */
export async function updateTeamRow(
  tx: Tx,
  id: string,
  fields: { readonly [Field in keyof TeamFields]?: TeamFields[Field] | undefined },
  version: number | undefined,
): Promise<TeamRecord | undefined> {
  return await queryOne(
    tx,
    `update team set
       name = coalesce(?, name), domain = coalesce(?, domain), logo = coalesce(?, logo),
       is_white_label = coalesce(?, is_white_label), tos_link = coalesce(?, tos_link),
       allow_impersonation = coalesce(?, allow_impersonation), updated_at = now(), version = version + 1
     where id = ? and version = coalesce(?, version) returning ${TEAM_COLUMNS}`,
    [
      fields.name ?? null,
      fields.domain ?? null,
      fields.logo ?? null,
      fields.isWhiteLabel ?? null,
      fields.tosLink ?? null,
      fields.allowImpersonation ?? null,
      id,
      version ?? null,
    ],
  )
}

/**
 * Deletes a team with its tokens and the grants it received; returns whether it was there in the given version.
 *
 * The foreign keys of environments and integrations refuse it while there are any.
 */
export async function deleteTeamRow(tx: Tx, id: string, version: number | undefined): Promise<boolean> {
  const sql = 'delete from team where id = ? and not is_operator and version = coalesce(?, version)'
  return (await execute(tx, sql, [id, version ?? null])) > 0
}
