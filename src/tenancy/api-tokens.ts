import { etagMismatch, newId, notFound } from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import { assertOperator, type TeamActor } from './authenticate.ts'
import { getEnvironment } from './environments.ts'
import {
  type ApiTokenRecord,
  deleteApiTokenRow,
  findApiToken,
  insertApiToken,
  selectApiTokens as listApiTokenRows,
  revokeApiTokenRow,
  updateApiTokenRow,
} from './sql.ts'
import { getTeam } from './teams.ts'
import { mintToken } from './token-format.ts'

/** What a new token opens. */
type ApiTokenSubject =
  /** A team; absent: the caller's. */
  | { readonly kind: 'team'; readonly teamId?: string | undefined }
  /** One environment of the caller's team. */
  | { readonly kind: 'environment'; readonly environmentId: string }

/** A token to be made. */
export type ApiTokenInput = ApiTokenSubject & {
  readonly name: string
  /** Absent: it does not expire. */
  readonly expiresAt?: Date | undefined
}

/** A token that was just made: the one time it is shown. */
export interface ApiTokenWithSecret {
  readonly apiToken: ApiTokenRecord
  readonly token: string
}

/**
 * Makes a token.
 *
 * @throws Failure OPERATOR_TEAM_REQUIRED for another team than the caller's; RESOURCE_NOT_FOUND for an unknown team or
 * environment
 */
export async function createApiToken(tx: Tx, actor: TeamActor, input: ApiTokenInput): Promise<ApiTokenWithSecret> {
  const subject = await subjectOf(tx, actor, input)
  const { token, hash, hint } = mintToken(input.kind)
  const { kind, name, expiresAt } = input
  const apiToken = await insertApiToken(tx, { ...subject, id: newId(), kind, name, hash, hint, expiresAt })
  return { apiToken, token }
}

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getApiToken(tx: Tx, teamId: string, id: string): Promise<ApiTokenRecord> {
  return (await findApiToken(tx, teamId, id)) ?? apiTokenNotFound(id)
}

/** At most `limit` tokens of the team below the id `before`, newest first, revoked and expired ones included. */
export async function listApiTokens(
  tx: Tx,
  teamId: string,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly ApiTokenRecord[]> {
  return await listApiTokenRows(tx, teamId, page.before, page.limit)
}

/**
 * Renames a token or moves its expiry; neither given changes nothing.
 *
 * @param input.version the version the caller saw; absent: whatever is stored
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH
 */
export async function updateApiToken(
  tx: Tx,
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

/** Ends a token: within a second no process accepts it. Again keeps the first moment. @throws Failure RESOURCE_NOT_FOUND */
export async function revokeApiToken(tx: Tx, teamId: string, id: string): Promise<ApiTokenRecord> {
  return (await revokeApiTokenRow(tx, teamId, id)) ?? apiTokenNotFound(id)
}

/** Ends a token and forgets it. @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH */
export async function deleteApiToken(
  tx: Tx,
  teamId: string,
  input: { readonly id: string; readonly version?: number | undefined },
): Promise<void> {
  if (await deleteApiTokenRow(tx, teamId, input.id, input.version)) return
  await getApiToken(tx, teamId, input.id)
  throw etagMismatch('api_token', input.id)
}

async function subjectOf(
  tx: Tx,
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

function apiTokenNotFound(id: string): never {
  throw notFound('api_token', id)
}
