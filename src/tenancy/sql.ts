import { execute, query, queryOne, type Tx } from '../database/index.ts'

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

/** Where a call takes place: a team, and one of its environments. */
export interface EnvironmentScope {
  readonly teamId: string
  readonly environmentId: string
}

/** An environment as it is stored. */
export interface EnvironmentRecord {
  readonly id: string
  readonly teamId: string
  readonly name: string
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

const ENVIRONMENT_COLUMNS =
  'id, team_id as "teamId", name, created_at as "createdAt", updated_at as "updatedAt", version'

/** The unique constraint on (team, name). */
export const ENVIRONMENT_NAME_CONSTRAINT = 'environment_team_id_name_key'

/** Stores an environment, or `undefined` when the team has one of that name. */
export async function insertEnvironment(
  tx: Tx,
  id: string,
  teamId: string,
  name: string,
): Promise<EnvironmentRecord | undefined> {
  return await queryOne(
    tx,
    `insert into environment (id, team_id, name) values (?, ?, ?)
     on conflict (team_id, name) do nothing returning ${ENVIRONMENT_COLUMNS}`,
    [id, teamId, name],
  )
}

/** An environment of any team, for the gate and for administration by the operator. Rides on the primary key. */
export async function findEnvironment(tx: Tx, id: string): Promise<EnvironmentRecord | undefined> {
  return await queryOne(tx, `select ${ENVIRONMENT_COLUMNS} from environment where id = ?`, [id])
}

/** Rides on the unique index of (team, name). */
export async function findEnvironmentByName(
  tx: Tx,
  teamId: string,
  name: string,
): Promise<EnvironmentRecord | undefined> {
  return await queryOne(tx, `select ${ENVIRONMENT_COLUMNS} from environment where team_id = ? and name = ?`, [
    teamId,
    name,
  ])
}

/** Environments of the team below `before` (all when undefined), newest first. A team has few. */
export async function selectEnvironments(
  tx: Tx,
  teamId: string,
  before: string | undefined,
  limit: number,
): Promise<readonly EnvironmentRecord[]> {
  return await query(
    tx,
    `select ${ENVIRONMENT_COLUMNS} from environment where team_id = ? and (?::uuid is null or id < ?) order by id desc limit ?`,
    [teamId, before ?? null, before ?? null, limit],
  )
}

/**
 * Renames an environment; `undefined` when the team has no such one or its version is not the given one.
 *
 * A taken name breaks ENVIRONMENT_NAME_CONSTRAINT.
 */
export async function updateEnvironmentRow(
  tx: Tx,
  teamId: string,
  id: string,
  name: string | undefined,
  version: number | undefined,
): Promise<EnvironmentRecord | undefined> {
  return await queryOne(
    tx,
    `update environment set name = coalesce(?, name), updated_at = now(), version = version + 1
     where id = ? and team_id = ? and version = coalesce(?, version) returning ${ENVIRONMENT_COLUMNS}`,
    [name ?? null, id, teamId, version ?? null],
  )
}

/**
 * Deletes an environment with its tokens; returns whether the team had it in the given version.
 *
 * The foreign keys of everything else in it refuse while there is any.
 */
export async function deleteEnvironmentRow(
  tx: Tx,
  teamId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const sql = 'delete from environment where id = ? and team_id = ? and version = coalesce(?, version)'
  return (await execute(tx, sql, [id, teamId, version ?? null])) > 0
}

/** An API token as it is stored: everything but the token. */
export interface ApiTokenRecord {
  readonly id: string
  readonly kind: 'team' | 'environment'
  readonly teamId: string
  /** Null on a team token. */
  readonly environmentId: string | null
  readonly name: string
  /** The last characters of the token. */
  readonly hint: string
  readonly expiresAt: Date | null
  readonly revokedAt: Date | null
  readonly lastUsedAt: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** A token to be stored. */
export interface NewApiToken {
  readonly id: string
  readonly kind: 'team' | 'environment'
  readonly teamId: string
  readonly environmentId: string | undefined
  readonly name: string
  readonly hash: Uint8Array
  readonly hint: string
  readonly expiresAt: Date | undefined
}

/** What the gate needs to know of a token that is not revoked. */
export interface ActiveToken {
  readonly tokenId: string
  readonly kind: 'team' | 'environment'
  readonly teamId: string
  readonly environmentId: string | null
  readonly isOperator: boolean
  readonly expiresAt: Date | null
}

const API_TOKEN_COLUMNS = `id, kind, team_id as "teamId", environment_id as "environmentId", name, hint,
  expires_at as "expiresAt", revoked_at as "revokedAt", last_used_at as "lastUsedAt",
  created_at as "createdAt", updated_at as "updatedAt", version`

/** Stores a token. */
export async function insertApiToken(tx: Tx, token: NewApiToken): Promise<ApiTokenRecord> {
  const inserted = await queryOne<ApiTokenRecord>(
    tx,
    `insert into api_token (id, kind, team_id, environment_id, name, token_hash, hint, expires_at)
     values (?, ?, ?, ?, ?, ?, ?, ?) returning ${API_TOKEN_COLUMNS}`,
    [
      token.id,
      token.kind,
      token.teamId,
      token.environmentId ?? null,
      token.name,
      token.hash,
      token.hint,
      token.expiresAt ?? null,
    ],
  )
  if (inserted === undefined) throw new Error('an insert returned no row')
  return inserted
}

/** The token of that hash unless it is revoked; expiry is the caller's to judge. Rides on api_token_hash. */
export async function findActiveToken(tx: Tx, hash: Uint8Array): Promise<ActiveToken | undefined> {
  return await queryOne(
    tx,
    `select api_token.id as "tokenId", kind, team_id as "teamId", environment_id as "environmentId",
       is_operator as "isOperator", expires_at as "expiresAt"
     from api_token join team on team.id = team_id where token_hash = ? and revoked_at is null`,
    [hash],
  )
}

/** Rides on the primary key. */
export async function findApiToken(tx: Tx, teamId: string, id: string): Promise<ApiTokenRecord | undefined> {
  return await queryOne(tx, `select ${API_TOKEN_COLUMNS} from api_token where id = ? and team_id = ?`, [id, teamId])
}

/** Tokens of the team below `before` (all when undefined), newest first. Rides on api_token_team. */
export async function selectApiTokens(
  tx: Tx,
  teamId: string,
  before: string | undefined,
  limit: number,
): Promise<readonly ApiTokenRecord[]> {
  return await query(
    tx,
    `select ${API_TOKEN_COLUMNS} from api_token where team_id = ? and (?::uuid is null or id < ?) order by id desc limit ?`,
    [teamId, before ?? null, before ?? null, limit],
  )
}

/** Changes the given fields; `undefined` when the team has no such token or its version is not the given one. */
export async function updateApiTokenRow(
  tx: Tx,
  teamId: string,
  id: string,
  fields: { readonly name?: string | undefined; readonly expiresAt?: Date | undefined },
  version: number | undefined,
): Promise<ApiTokenRecord | undefined> {
  return await queryOne(
    tx,
    `update api_token set name = coalesce(?, name), expires_at = coalesce(?, expires_at),
       updated_at = now(), version = version + 1
     where id = ? and team_id = ? and version = coalesce(?, version) returning ${API_TOKEN_COLUMNS}`,
    [fields.name ?? null, fields.expiresAt ?? null, id, teamId, version ?? null],
  )
}

/** Ends a token; one that has ended already stays as it is. `undefined` when the team has no such token. */
export async function revokeApiTokenRow(tx: Tx, teamId: string, id: string): Promise<ApiTokenRecord | undefined> {
  return await queryOne(
    tx,
    `update api_token set revoked_at = coalesce(revoked_at, now()),
       updated_at = case when revoked_at is null then now() else updated_at end,
       version = version + case when revoked_at is null then 1 else 0 end
     where id = ? and team_id = ? returning ${API_TOKEN_COLUMNS}`,
    [id, teamId],
  )
}

/** Notes that the token was used, at most once in `intervalMs`. Use is no change of the token: the version stays. */
export async function touchApiToken(tx: Tx, id: string, usedAt: Date, intervalMs: number): Promise<void> {
  const notSince = new Date(usedAt.getTime() - intervalMs)
  await execute(
    tx,
    'update api_token set last_used_at = ? where id = ? and (last_used_at is null or last_used_at <= ?)',
    [usedAt, id, notSince],
  )
}

/** Returns whether a token of the team, and of the version when one is given, was there. */
export async function deleteApiTokenRow(
  tx: Tx,
  teamId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const sql = 'delete from api_token where id = ? and team_id = ? and version = coalesce(?, version)'
  return (await execute(tx, sql, [id, teamId, version ?? null])) > 0
}
