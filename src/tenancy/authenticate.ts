import { LRUCache } from 'lru-cache'
import { type Clock, Failure, invalidFields, isUuid, notFound, readThrough, TtlCache } from '../base/index.ts'
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
  const grants = new TtlCache<Promise<ActiveToken | undefined>>({ max: TOKENS_CACHED_MAX, ttlMs: CACHE_TTL_MS, clock })
  const environments = new TtlCache<Promise<EnvironmentRecord | undefined>>({
    max: ENVIRONMENTS_CACHED_MAX,
    ttlMs: CACHE_TTL_MS,
    clock,
  })
  const knownIds = new LRUCache<string, string>({ max: TOKENS_CACHED_MAX })
  const uses = createLastUsedWriter(deps)

  async function grantOf(token: PresentedToken | undefined): Promise<ActiveToken | undefined> {
    if (token === undefined) return undefined
    const { hash } = token
    const grant = await readThrough(grants, hash, () => findActiveToken(database.pool, Buffer.from(hash, 'base64')))
    if (grant === undefined) knownIds.delete(hash)
    else if (token.knownId === undefined) knownIds.set(hash, grant.tokenId)
    return grant
  }

  async function ownerOf(environmentId: string): Promise<string | undefined> {
    const read = () => findEnvironment(database.pool, environmentId)
    return (await readThrough(environments, environmentId, read))?.teamId
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

/** Writes `last_used_at` behind the calls: at most once a minute and token, and no call waits for it. */
function createLastUsedWriter({ database, clock, onWriteError: onUseNotNoted }: AuthenticatorOptions) {
  const recentlyWritten = new TtlCache<true>({ max: TOKENS_CACHED_MAX, ttlMs: LAST_USED_WRITE_INTERVAL_MS, clock })
  const underWay = new Set<Promise<void>>()
  return {
    note(tokenId: string): void {
      if (recentlyWritten.get(tokenId)) return
      recentlyWritten.set(tokenId, true)
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
