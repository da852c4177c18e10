import {
  type Db,
  execute,
  type IdPage,
  jsonb,
  newestFirst,
  nextVersion,
  queryOne,
  whereVersion,
} from '../../../foundation/database/index.ts'
import type { StoredScopes, TokenLimits, TokenPreset } from '../scopes.ts'

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
  /** The preset that its scopes are from; null when they were listed. */
  readonly preset: TokenPreset | null
  /** In alphabetical order; `*` alone for all. */
  readonly scopes: readonly string[]
  /** Null: none. */
  readonly limits: TokenLimits | null
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
  readonly scopes: StoredScopes
  readonly limits: TokenLimits | undefined
  /** Issued for a page in a browser. */
  readonly isBrowser?: boolean
  readonly expiresAt: Date | undefined
}

/** What authentication needs of a token that is not revoked. */
export interface ActiveToken {
  readonly tokenId: string
  readonly kind: 'team' | 'environment'
  readonly teamId: string
  readonly environmentId: string | null
  readonly isOperator: boolean
  readonly scopes: readonly string[]
  readonly limits: TokenLimits | null
  readonly expiresAt: Date | null
}

const COLUMNS = [
  'id',
  'kind',
  'team_id',
  'environment_id',
  'name',
  'hint',
  'preset',
  'scopes',
  'limits',
  'expires_at',
  'revoked_at',
  'last_used_at',
  'created_at',
  'updated_at',
  'version',
]

/** Stores a token. */
export async function insertApiToken(tx: Db, token: NewApiToken): Promise<ApiTokenRecord> {
  const { id, kind, teamId, environmentId, name, hash, hint, scopes, limits, expiresAt, isBrowser = false } = token
  const [inserted] = await tx('api_token')
    .insert({
      id,
      kind,
      team_id: teamId,
      environment_id: environmentId,
      name,
      token_hash: hash,
      hint,
      ...scopes,
      limits: limits === undefined ? null : jsonb({ ...limits }),
      is_browser: isBrowser,
      expires_at: expiresAt,
    })
    .returning(COLUMNS)
  return inserted
}

/** The token of that hash unless it is revoked; the caller checks its expiry. Index: api_token_hash. */
export async function findActiveToken(tx: Db, hash: Uint8Array): Promise<ActiveToken | undefined> {
  return await queryOne(
    tx,
    `select api_token.id as token_id, kind, team_id, environment_id,
       is_operator, scopes, limits, expires_at
     from api_token join team on team.id = team_id where token_hash = :hash and revoked_at is null`,
    { hash },
  )
}

/** Index: primary key. */
export async function findApiToken(tx: Db, teamId: string, id: string): Promise<ApiTokenRecord | undefined> {
  return await tx('api_token').where({ id, team_id: teamId }).first(COLUMNS)
}

/** Tokens of the team, newest first, revoked and expired ones included, those of pages in browsers not. Index: api_token_team. */
export async function listApiTokens(tx: Db, teamId: string, page: IdPage): Promise<readonly ApiTokenRecord[]> {
  return await tx('api_token').where({ team_id: teamId, is_browser: false }).modify(newestFirst, page).select(COLUMNS)
}

/** Changes the given fields; `undefined` when the team has no such token, or not in the version. */
export async function updateApiTokenRow(
  tx: Db,
  teamId: string,
  id: string,
  { name, expiresAt }: { readonly name?: string | undefined; readonly expiresAt?: Date | undefined },
  version: number | undefined,
): Promise<ApiTokenRecord | undefined> {
  const [token] = await tx('api_token')
    .where({ id, team_id: teamId })
    .modify(whereVersion, version)
    .update({ name, expires_at: expiresAt, ...nextVersion(tx) })
    .returning(COLUMNS)
  return token
}

/** Revokes a token, once: a revoked one keeps its time and version. Returns whether it was revoked by this call. */
export async function revokeApiTokenRow(tx: Db, teamId: string, id: string): Promise<boolean> {
  const change = { revoked_at: tx.fn.now(), ...nextVersion(tx) }
  return (await tx('api_token').where({ id, team_id: teamId, revoked_at: null }).update(change)) > 0
}

/** Writes when the token was last used, at most once per `intervalMs`. Its version stays: use does not change the token. */
export async function touchApiToken(tx: Db, id: string, usedAt: Date, intervalMs: number): Promise<void> {
  const notSince = new Date(usedAt.getTime() - intervalMs)
  await execute(
    tx,
    `update api_token set last_used_at = :usedAt
     where id = :id and (last_used_at is null or last_used_at <= :notSince)`,
    { id, usedAt, notSince },
  )
}

/** Deletes a token and returns it; `undefined` when the team has no such token, or not in the version. */
export async function deleteApiTokenRow(
  tx: Db,
  teamId: string,
  id: string,
  version: number | undefined,
): Promise<ApiTokenRecord | undefined> {
  const token = tx('api_token').where({ id, team_id: teamId }).modify(whereVersion, version)
  const [deleted] = await token.delete().returning(COLUMNS)
  return deleted
}

/** Deletes up to `limit` expired tokens of pages in browsers; returns how many. Index: api_token_browser. */
export async function deleteExpiredBrowserTokens(tx: Db, before: Date, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from api_token where id in
       (select id from api_token where is_browser and expires_at < :before limit :limit for update skip locked)`,
    { before, limit },
  )
}
