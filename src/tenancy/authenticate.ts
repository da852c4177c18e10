import { LRUCache } from 'lru-cache'
import { type Clock, Failure, invalidFields, isUuid, notFound } from '../base/index.ts'
import type { Database } from '../database/index.ts'
import { type ActiveToken, type EnvironmentRecord, findActiveToken, findEnvironment, touchApiToken } from './sql.ts'
import { hashToken } from './token-format.ts'

/** Names the environment in which a team token acts. */
const ENVIRONMENT_HEADER = 'patchbay-environment'

/** Cache TTL of grants and environments, so that a revocation holds everywhere within a second. */
const CACHE_TTL_MS = 500
const TOKENS_CACHED_MAX = 10_000
const ENVIRONMENTS_CACHED_MAX = 10_000
const LAST_USED_WRITE_INTERVAL_MS = 60_000

/** A text that may be an API token, before any look-up. */
export interface PresentedToken {
  /** SHA-256 of the token, base64. */
  readonly hash: string
  /** Id of the token if it was valid when this process last looked it up. */
  readonly knownId: string | undefined
}

/** Turns tokens into principals. */
export interface Authenticator extends AsyncDisposable {
  /** Reads a token without a look-up. `undefined`: it cannot be one, by its shape or its checksum. */
  parseToken(token: string): PresentedToken | undefined
  /**
   * Admits a call, from the cache when the same token was looked up less than half a second ago.
   *
   * @param token what `present` made of the text after `Bearer `
   * @param environmentHeader the value of ENVIRONMENT_HEADER
   * @throws Failure TOKEN_INVALID, the same for unknown, expired and revoked tokens; INVALID_FIELD when the header is not a
   * uuid; RESOURCE_NOT_FOUND when the environment is unknown, of another team, or not the one the token is bound to
   */
  authenticate(token: PresentedToken | undefined, environmentHeader?: string): Promise<Principal>
}

/** What admission needs. */
export interface AuthenticatorOptions {
  readonly database: Pick<Database, 'pool'>
  readonly clock: Clock
  /** Told when a use could not be noted; the call went on all the same. */
  readonly onWriteError?: (error: unknown) => void
}

/** The gate of one process. Disposing waits for notes of use under way. */
export function createAuthenticator(deps: AuthenticatorOptions): Authenticator {
  const { database, clock } = deps
  const recallGrant = shortTtlCache<ActiveToken>(TOKENS_CACHED_MAX, clock)
  const recallEnvironment = shortTtlCache<EnvironmentRecord>(ENVIRONMENTS_CACHED_MAX, clock)
  const knownIds = new LRUCache<string, string>({ max: TOKENS_CACHED_MAX })
  const uses = createLastUsedWriter(deps)

  async function grantOf(token: PresentedToken | undefined): Promise<ActiveToken | undefined> {
    if (token === undefined) return undefined
    const { hash } = token
    const grant = await recallGrant(hash, () => findActiveToken(database.pool, Buffer.from(hash, 'base64')))
    if (grant === undefined) knownIds.delete(hash)
    else if (token.knownId === undefined) knownIds.set(hash, grant.tokenId)
    return grant
  }

  async function ownerOf(environmentId: string): Promise<string | undefined> {
    return (await recallEnvironment(environmentId, () => findEnvironment(database.pool, environmentId)))?.teamId
  }

  async function environmentOf(grant: ActiveToken, header: string | undefined): Promise<string | undefined> {
    if (header === undefined) return grant.environmentId ?? undefined
    if (!isUuid(header))
      throw invalidFields([{ field: ENVIRONMENT_HEADER, description: 'must be a uuid', rule: 'string.uuid' }])
    const named = header.toLowerCase()
    const isAllowed =
      grant.environmentId === null ? (await ownerOf(named)) === grant.teamId : named === grant.environmentId
    if (!isAllowed) throw notFound('environment', header)
    return named
  }

  return {
    parseToken(token) {
      const bytes = hashToken(token)
      if (bytes === undefined) return undefined
      const hash = Buffer.from(bytes).toString('base64')
      return { hash, knownId: knownIds.get(hash) }
    },
    async authenticate(token, environmentHeader) {
      const grant = await grantOf(token)
      if (grant === undefined || hasExpired(grant, clock.now()))
        throw new Failure('TOKEN_INVALID', 'the API token is not valid: it is unknown, expired or revoked')
      const environmentId = await environmentOf(grant, environmentHeader)
      uses.note(grant.tokenId)
      const { kind, tokenId, teamId, isOperator } = grant
      return { kind, tokenId, teamId, environmentId, isOperator }
    },
    [Symbol.asyncDispose]: uses.settled,
  }
}

function hasExpired(grant: ActiveToken, now: Date): boolean {
  return grant.expiresAt !== null && grant.expiresAt <= now
}

/** Reads through a memory of one key's value. */
type Recall<Value> = (key: string, read: () => Promise<Value | undefined>) => Promise<Value | undefined>

/**
 * Caches what was read for CACHE_TTL_MS from before the read began; callers that miss together read once.
 *
 * What was not found is not remembered: a token made a moment ago works at once.
 */
function shortTtlCache<Value>(max: number, clock: Clock): Recall<Value> {
  const entries = new LRUCache<string, { readonly asOfMs: number; readonly value: Promise<Value | undefined> }>({ max })
  return async (key, read) => {
    const nowMs = clock.monotonicMs()
    const known = entries.get(key)
    if (known !== undefined && nowMs - known.asOfMs < CACHE_TTL_MS) return await known.value
    const fresh = { asOfMs: nowMs, value: read() }
    entries.set(key, fresh)
    let value: Value | undefined
    try {
      value = await fresh.value
    } finally {
      if (value === undefined && entries.peek(key) === fresh) entries.delete(key)
    }
    return value
  }
}

/** Writes `last_used_at` behind the calls: at most once a minute and token, and no call waits for it. */
function createLastUsedWriter({ database, clock, onWriteError: onUseNotNoted }: AuthenticatorOptions) {
  const notedMs = new LRUCache<string, number>({ max: TOKENS_CACHED_MAX })
  const underWay = new Set<Promise<void>>()
  return {
    note(tokenId: string): void {
      const nowMs = clock.monotonicMs()
      if (nowMs - (notedMs.get(tokenId) ?? Number.NEGATIVE_INFINITY) < LAST_USED_WRITE_INTERVAL_MS) return
      notedMs.set(tokenId, nowMs)
      const write: Promise<void> = touchApiToken(database.pool, tokenId, clock.now(), LAST_USED_WRITE_INTERVAL_MS)
        .catch((error: unknown) => onUseNotNoted?.(error))
        .finally(() => underWay.delete(write))
      underWay.add(write)
    },
    async settled(): Promise<void> {
      await Promise.all(underWay)
    },
  }
}

/** Who calls: an accepted API token, and where it acts. */
export interface Principal {
  readonly kind: 'team' | 'environment'
  readonly tokenId: string
  readonly teamId: string
  /** The environment the token is bound to, or the one a team token named; absent when it named none. */
  readonly environmentId: string | undefined
  /** Whether the team is the one that administers the installation. */
  readonly isOperator: boolean
}

/** A team that administers what it owns; the operator's administers all teams. Every team principal is one. */
export type TeamActor = Pick<Principal, 'teamId' | 'isOperator'>

/** @throws Failure OPERATOR_TEAM_REQUIRED unless the team administers the installation */
export function assertOperator(actor: TeamActor): void {
  if (!actor.isOperator)
    throw new Failure('OPERATOR_TEAM_REQUIRED', "this operation needs a token of the operator's team")
}
