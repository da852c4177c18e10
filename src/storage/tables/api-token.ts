import { execute, query, queryOne, type Tx } from '../database.ts'

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
