import { etagMismatch, newId, notFound } from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import { recordApiTokenEvent } from './api-token-events.ts'
import { assertOperator, type TeamActor } from './authenticate.ts'
import { getEnvironment } from './environments.ts'
import { assertGrants, type GrantedScopes, type ScopeChoice, storedScopes, type TokenLimits } from './scopes.ts'
import {
  type ApiTokenRecord,
  deleteApiTokenRow,
  findApiToken,
  insertApiToken,
  revokeApiTokenRow,
  updateApiTokenRow,
} from './sql/api-tokens.ts'
import { getTeam } from './teams.ts'
import { mintToken } from './token-format.ts'

/** What a new token gives access to. */
type ApiTokenSubject =
  /** A team; absent: the caller's. */
  | { readonly kind: 'team'; readonly teamId?: string | undefined }
  /** One environment of the caller's team. */
  | { readonly kind: 'environment'; readonly environmentId: string }

/** A token to be created. */
export type ApiTokenInput = ApiTokenSubject & {
  readonly name: string
  readonly scopes: ScopeChoice
  /** Absent: none. */
  readonly limits?: TokenLimits | undefined
  /** Absent: it does not expire. */
  readonly expiresAt?: Date | undefined
}

/** A token that was just created: the only time its text is shown. */
export interface ApiTokenWithSecret {
  readonly apiToken: ApiTokenRecord
  readonly token: string
}

/**
 * Creates a token, which may do no more than its creator.
 *
 * @throws Failure SCOPE_REQUIRED; OPERATOR_TEAM_REQUIRED for another team than the caller's; RESOURCE_NOT_FOUND for an unknown team or
 * environment
 */
export async function createApiToken(
  tx: Tx,
  actor: TeamActor & { readonly scopes: GrantedScopes },
  input: ApiTokenInput,
): Promise<ApiTokenWithSecret> {
  const scopes = storedScopes(input.scopes)
  assertGrants(actor, scopes)
  const subject = await subjectOf(tx, actor, input)
  const { token, hash, hint } = mintToken(input.kind)
  const { kind, name, limits, expiresAt } = input
  const apiToken = await insertApiToken(tx, {
    ...subject,
    id: newId(),
    kind,
    name,
    hash,
    hint,
    scopes,
    limits,
    expiresAt,
  })
  await recordApiTokenEvent(tx, 'api_token:created', apiToken)
  return { apiToken, token }
}

/** A token for a page in a browser: its text is shown this once. */
export interface BrowserToken {
  readonly token: string
  readonly scopes: readonly string[]
  readonly expiresAt: Date
}

/**
 * Issues a token for a page in a browser, which calls through one account. It has no event: a page may ask for one whenever it is
 * opened.
 *
 * @throws Failure SCOPE_REQUIRED when the caller lacks one of its scopes
 */
export async function issueBrowserToken(
  tx: Db,
  actor: { readonly teamId: string; readonly environmentId: string; readonly scopes: GrantedScopes },
  { accountId, ...input }: { readonly accountId: string; readonly scopes: readonly string[]; readonly expiresAt: Date },
): Promise<BrowserToken> {
  const scopes = storedScopes({ scopes: input.scopes })
  assertGrants(actor, scopes)
  const { token, hash, hint } = mintToken('environment')
  const { teamId, environmentId } = actor
  const limits = { tenantIds: [], integrations: [], integratedAccountId: accountId }
  const columns = { teamId, environmentId, kind: 'environment', name: 'browser', hash, hint, scopes, limits } as const
  await insertApiToken(tx, { ...columns, id: newId(), expiresAt: input.expiresAt, isBrowser: true })
  return { token, scopes: scopes.scopes, expiresAt: input.expiresAt }
}

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getApiToken(tx: Db, teamId: string, id: string): Promise<ApiTokenRecord> {
  const token = await findApiToken(tx, teamId, id)
  if (token === undefined) throw notFound('api_token', id)
  return token
}

/**
 * Changes a token's name or expiry; with neither given it changes nothing.
 *
 * @param input.version the version the caller read; absent: any
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH
 */
export async function updateApiToken(
  tx: Db,
  teamId: string,
  input: {
    readonly id: string
    readonly name?: string | undefined
    readonly expiresAt?: Date | undefined
    readonly version?: number | undefined
  },
): Promise<ApiTokenRecord> {
  const { id, version, ...change } = input
  const isEmpty = change.name === undefined && change.expiresAt === undefined
  const updated = isEmpty ? undefined : await updateApiTokenRow(tx, teamId, id, change, version)
  if (updated !== undefined) return updated
  const stored = await getApiToken(tx, teamId, id)
  if (isEmpty && (version === undefined || version === stored.version)) return stored
  throw etagMismatch('api_token', id)
}

/**
 * Revokes a token: within a second no process accepts it. Repeated, it keeps the first time.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function revokeApiToken(tx: Tx, teamId: string, id: string): Promise<ApiTokenRecord> {
  await revokeApiTokenRow(tx, teamId, id)
  return await getApiToken(tx, teamId, id)
}

/** Deletes a token, which revokes it. @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH */
export async function deleteApiToken(
  tx: Tx,
  teamId: string,
  input: { readonly id: string; readonly version?: number | undefined },
): Promise<void> {
  const deleted = await deleteApiTokenRow(tx, teamId, input.id, input.version)
  if (deleted !== undefined) return await recordApiTokenEvent(tx, 'api_token:deleted', deleted)
  await getApiToken(tx, teamId, input.id)
  throw etagMismatch('api_token', input.id)
}

async function subjectOf(
  tx: Db,
  actor: TeamActor,
  subject: ApiTokenSubject,
): Promise<{ readonly teamId: string; readonly environmentId: string | undefined }> {
  if (subject.kind === 'environment') {
    const { id, teamId } = await getEnvironment(tx, actor.teamId, subject.environmentId)
    return { teamId, environmentId: id }
  }
  const teamId = subject.teamId?.toLowerCase() ?? actor.teamId
  if (teamId !== actor.teamId) assertOperator(actor)
  return { teamId: (await getTeam(tx, actor, teamId)).id, environmentId: undefined }
}
