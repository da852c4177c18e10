import { LRUCache } from 'lru-cache'
import {
  type Clock,
  detachFromRequest,
  Failure,
  invalidFields,
  isUuid,
  notFound,
  readThrough,
  TtlCache,
} from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import { type GrantedScopes, grantedScopes, type TokenLimits } from './scopes.ts'
import { type ActiveToken, findActiveToken, touchApiToken } from './sql/api-tokens.ts'
import { type EnvironmentRecord, findEnvironment } from './sql/environments.ts'
import { hashToken } from './token-format.ts'

/** Header that selects the environment in which a team token acts. */
const ENVIRONMENT_HEADER = 'patchbay-environment'

/** Cache TTL of tokens and environments: a revocation takes effect in every process within a second. */
const CACHE_TTL_MS = 500
const TOKENS_CACHED_MAX = 10_000
const ENVIRONMENTS_CACHED_MAX = 10_000
const LAST_USED_WRITE_INTERVAL_MS = 60_000

/** A text that has the form of an API token, before any look-up. */
export interface PresentedToken {
  /** SHA-256 of the token, base64. */
  readonly hash: string
  /** Id of the token if it was valid when this process last looked it up. */
  readonly knownId: string | undefined
}

/** Authenticates API tokens. */
export interface Authenticator extends AsyncDisposable {
  /** Parses a token without a look-up; `undefined` when its form or checksum is wrong. */
  parseToken(token: string): PresentedToken | undefined
  /**
   * Authenticates a call, from the cache when the same token was looked up less than half a second ago.
   *
   * @param token what `parseToken` returned for the text after `Bearer `
   * @param environmentHeader the value of the header `patchbay-environment`
   * @throws Failure TOKEN_INVALID, the same for unknown, expired and revoked tokens; INVALID_FIELD when the header is not a
   * uuid; RESOURCE_NOT_FOUND when the environment is unknown, of another team, or not the one the token is bound to
   */
  authenticate(token: PresentedToken | undefined, environmentHeader?: string): Promise<Principal>
}

/** What authentication needs. */
export interface AuthenticatorOptions {
  readonly database: Pick<Database, 'pool'>
  readonly clock: Clock
  /** Called when the time of last use could not be written; the call succeeded all the same. */
  readonly onWriteError?: (error: unknown) => void
}

/** The authentication of one process, with its cache. Disposing waits for writes of `last_used_at` in progress. */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { database, clock } = options
  const tokens = new TtlCache<Promise<KnownToken | undefined>>({ max: TOKENS_CACHED_MAX, ttlMs: CACHE_TTL_MS, clock })
  const environments = new TtlCache<Promise<EnvironmentRecord | undefined>>({
    max: ENVIRONMENTS_CACHED_MAX,
    ttlMs: CACHE_TTL_MS,
    clock,
  })
  const knownIds = new LRUCache<string, string>({ maxSize: TOKENS_CACHED_MAX, sizeCalculation: () => 1 })
  const lastUsed = createLastUsedWriter(options)

  async function findToken(token: PresentedToken | undefined): Promise<KnownToken | undefined> {
    if (token === undefined) return undefined
    const { hash } = token
    const active = await readThrough(tokens, hash, () => readToken(database.pool, Buffer.from(hash, 'base64')))
    if (active === undefined) knownIds.delete(hash)
    else if (token.knownId === undefined) knownIds.set(hash, active.tokenId)
    return active
  }

  async function findTeamId(environmentId: string): Promise<string | undefined> {
    const read = () => findEnvironment(database.pool, environmentId)
    return (await readThrough(environments, environmentId, read))?.teamId
  }

  async function selectEnvironment(token: ActiveToken, header: string | undefined): Promise<string | undefined> {
    if (header === undefined) return token.environmentId ?? undefined
    if (!isUuid(header))
      throw invalidFields([{ field: ENVIRONMENT_HEADER, description: 'must be a uuid', rule: 'string.uuid' }])
    const id = header.toLowerCase()
    const isAllowed =
      token.environmentId === null ? (await findTeamId(id)) === token.teamId : id === token.environmentId
    if (!isAllowed) throw notFound('environment', header)
    return id
  }

  return {
    parseToken(token) {
      const bytes = hashToken(token)
      if (bytes === undefined) return undefined
      const hash = bytes.toString('base64')
      return { hash, knownId: knownIds.get(hash) }
    },
    async authenticate(token, environmentHeader) {
      const active = await findToken(token)
      if (active === undefined || hasExpired(active, clock.now()))
        throw new Failure('TOKEN_INVALID', 'the API token is not valid: it is unknown, expired or revoked')
      const environmentId = await selectEnvironment(active, environmentHeader)
      lastUsed.write(active.tokenId)
      const { kind, tokenId, teamId, isOperator, granted, limits } = active
      return { kind, tokenId, teamId, environmentId, isOperator, scopes: granted, ...(limits && { limits }) }
    },
    [Symbol.asyncDispose]: lastUsed.settled,
  }
}

/** A token that is not revoked, with all that its scopes include. */
type KnownToken = ActiveToken & { readonly granted: GrantedScopes }

async function readToken(pool: Database['pool'], hash: Uint8Array): Promise<KnownToken | undefined> {
  const active = await findActiveToken(pool, hash)
  return active && { ...active, granted: grantedScopes(active.scopes) }
}

function hasExpired({ expiresAt }: ActiveToken, now: Date): boolean {
  return expiresAt !== null && expiresAt <= now
}

/** Writes `last_used_at` in the background: at most once a minute per token, and no call waits for it. */
function createLastUsedWriter({ database, clock, onWriteError }: AuthenticatorOptions) {
  const recentlyWritten = new TtlCache<true>({ max: TOKENS_CACHED_MAX, ttlMs: LAST_USED_WRITE_INTERVAL_MS, clock })
  const pending = new Set<Promise<void>>()
  return {
    write(tokenId: string): void {
      if (recentlyWritten.get(tokenId)) return
      recentlyWritten.set(tokenId, true)
      const written: Promise<void> = detachFromRequest(() =>
        touchApiToken(database.pool, tokenId, clock.now(), LAST_USED_WRITE_INTERVAL_MS),
      )
        .catch((error: unknown) => onWriteError?.(error))
        .finally(() => pending.delete(written))
      pending.add(written)
    },
    async settled(): Promise<void> {
      await Promise.all(pending)
    },
  }
}

/** The caller: an authenticated API token, or the link token of a link session, and where it acts. */
export interface Principal {
  readonly kind: 'team' | 'environment' | 'link'
  /** Id of the token; of a link token that of its session. */
  readonly tokenId: string
  readonly teamId: string
  /** The environment the token is bound to, or the one that a team token selected; absent when it selected none. */
  readonly environmentId: string | undefined
  /** Whether the team is the one that administers the installation. */
  readonly isOperator: boolean
  /** What it may do; absent: everything that its kind may. */
  readonly scopes: GrantedScopes
  /** The accounts that it knows; absent: all of its environment. */
  readonly limits?: TokenLimits
}

/** The administering team: it administers what it owns, the operator's administers all teams. Every principal is one. */
export type TeamActor = Pick<Principal, 'teamId' | 'isOperator'>

/** @throws Failure OPERATOR_TEAM_REQUIRED unless the team administers the installation */
export function assertOperator(actor: TeamActor): void {
  if (!actor.isOperator)
    throw new Failure('OPERATOR_TEAM_REQUIRED', "this operation needs a token of the operator's team")
}
