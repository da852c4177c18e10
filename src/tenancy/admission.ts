import { LRUCache } from 'lru-cache'
import { type Clock, Failure, invalidFields, isUuid, notFound } from '../base/index.ts'
import {
  type Database,
  type EnvironmentRecord,
  findEnvironment,
  findTokenGrant,
  type TokenGrant,
  touchApiToken,
} from '../storage/index.ts'
import { hashToken } from '../vault/index.ts'
import type { Principal } from './principal.ts'

/** Names the environment in which a team token acts. */
export const ENVIRONMENT_HEADER = 'patchbay-environment'

/** What was read is believed this long, so that a revocation holds everywhere within a second. */
const BELIEVED_MS = 500
const TOKENS_CACHED_MAX = 10_000
const ENVIRONMENTS_CACHED_MAX = 10_000
const USE_NOTED_EVERY_MS = 60_000

/** Turns tokens into principals. */
export interface Admission extends AsyncDisposable {
  /**
   * Admits a call, from memory when the same token was looked up less than half a second ago.
   *
   * @param token what followed `Bearer `
   * @param environmentHeader the value of ENVIRONMENT_HEADER
   * @throws Failure TOKEN_INVALID, the same for unknown, expired and revoked tokens; INVALID_FIELD when the header is not a
   * uuid; RESOURCE_NOT_FOUND when the environment is unknown, of another team, or not the one the token is bound to
   */
  admit(token: string, environmentHeader?: string): Promise<Principal>
}

/** What admission needs. */
export interface AdmissionDeps {
  readonly database: Pick<Database, 'direct'>
  readonly clock: Clock
  /** Told when a use could not be noted; the call went on all the same. */
  readonly onUseNotNoted?: (error: unknown) => void
}

/** The gate of one process. Disposing waits for notes of use under way. */
export function createAdmission(deps: AdmissionDeps): Admission {
  const { database, clock } = deps
  const recallGrant = shortMemory<TokenGrant>(TOKENS_CACHED_MAX, clock)
  const recallEnvironment = shortMemory<EnvironmentRecord>(ENVIRONMENTS_CACHED_MAX, clock)
  const uses = noteUses(deps)

  async function grantOf(token: string): Promise<TokenGrant | undefined> {
    const hash = hashToken(token)
    if (hash === undefined) return undefined
    return await recallGrant(Buffer.from(hash).toString('base64'), () => findTokenGrant(database.direct, hash))
  }

  async function ownerOf(environmentId: string): Promise<string | undefined> {
    return (await recallEnvironment(environmentId, () => findEnvironment(database.direct, environmentId)))?.teamId
  }

  async function environmentOf(grant: TokenGrant, header: string | undefined): Promise<string | undefined> {
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
    async admit(token, environmentHeader) {
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

function hasExpired(grant: TokenGrant, now: Date): boolean {
  return grant.expiresAt !== null && grant.expiresAt <= now
}

/** Reads through a memory of one key's value. */
type Recall<Value> = (key: string, read: () => Promise<Value | undefined>) => Promise<Value | undefined>

/**
 * Remembers what was read for BELIEVED_MS from before the read began; callers that miss together read once.
 *
 * What was not found is not remembered: a token made a moment ago works at once.
 */
function shortMemory<Value>(max: number, clock: Clock): Recall<Value> {
  const entries = new LRUCache<string, { readonly asOfMs: number; readonly value: Promise<Value | undefined> }>({ max })
  return async (key, read) => {
    const nowMs = clock.now().getTime()
    const known = entries.get(key)
    const ageMs = known === undefined ? BELIEVED_MS : nowMs - known.asOfMs
    // A negative age is a clock that was set back: believing then would have no end.
    if (known !== undefined && ageMs >= 0 && ageMs < BELIEVED_MS) return await known.value
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
function noteUses({ database, clock, onUseNotNoted }: AdmissionDeps) {
  const notedMs = new LRUCache<string, number>({ max: TOKENS_CACHED_MAX })
  const underWay = new Set<Promise<void>>()
  return {
    note(tokenId: string): void {
      const now = clock.now()
      if (now.getTime() - (notedMs.get(tokenId) ?? Number.NEGATIVE_INFINITY) < USE_NOTED_EVERY_MS) return
      notedMs.set(tokenId, now.getTime())
      const write: Promise<void> = touchApiToken(database.direct, tokenId, now, USE_NOTED_EVERY_MS)
        .catch((error: unknown) => onUseNotNoted?.(error))
        .finally(() => underWay.delete(write))
      underWay.add(write)
    },
    async settled(): Promise<void> {
      await Promise.all(underWay)
    },
  }
}
