import { LRUCache } from 'lru-cache'
import { type Clock, Failure, wholeSeconds } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import {
  type EgressRequest,
  type EgressResponse,
  type HttpClient,
  retryAfterSeconds,
} from '../../foundation/egress/index.ts'
import { blockHost, type HostRate, reserveHostTurn, type TokenHost } from './sql/token-host.ts'

/** Requests of one environment to one host per second, by all processes together: 10 000 accounts take less than a refresh margin. */
const RATE_PER_SECOND = 50
/** Requests that may be sent at once after a pause. */
const BURST = 25
const RATE: HostRate = { intervalMs: 1_000 / RATE_PER_SECOND, burstMs: (1_000 / RATE_PER_SECOND) * BURST }
/** Requests of this process to one host in flight, for one environment. */
const IN_FLIGHT_MAX = 8
/** For a place among them, and then for a turn. */
const WAIT_MAX_MS = 10_000
/** For both together. A request that waited longer, because the process was paused, is not sent. */
export const HOST_WAIT_MAX_MS = 2 * WAIT_MAX_MS
/** Circuit breaker: after so many requests in a row without a connection or a response, none is sent for a while. */
const FAILURES_MAX = 5
const NO_RESPONSE: readonly string[] = ['UPSTREAM_UNREACHABLE', 'DEADLINE_EXCEEDED']
/** Hosts whose failures are counted. */
const COUNTED_HOSTS_MAX = 1_000
const COUNTED_MS = 600_000
const FAILURE_BLOCK_MS = 30_000
/** After a 429 without Retry-After. */
const DEFAULT_BLOCK_MS = 5_000
const BLOCK_MS_MAX = 3_600_000
const TOO_MANY_REQUESTS = 429
const UNAVAILABLE = 503

/** What sending requests for tokens takes. */
export interface TokenHttpOptions {
  readonly http: Pick<HttpClient, 'send'>
  readonly database: Pick<Database, 'pool'>
  readonly clock: Clock
  /** Those of the process. Absent: its own. */
  readonly hosts?: TokenHosts
}

/** What a process knows of the hosts it requests tokens from: requests in flight, failures in a row. By environment and host. */
export interface TokenHosts {
  readonly inFlight: Map<string, HostState>
  readonly failures: LRUCache<string, number>
}

/** One per process, whatever connections its clients use. */
export function createTokenHosts(): TokenHosts {
  return { inFlight: new Map(), failures: new LRUCache({ max: COUNTED_HOSTS_MAX, ttl: COUNTED_MS }) }
}

/** Sends requests about tokens. */
export interface TokenHttp {
  /**
   * @param environmentId for which the request is sent; absent: none
   * @throws Failure TOKEN_REQUEST_FAILED, with the seconds to wait, when the limits of the host let nothing be sent; else those
   * of `HttpClient.send`
   */
  send(request: EgressRequest, environmentId: string | undefined): Promise<EgressResponse>
}

/** Of requests without an environment. */
const NO_ENVIRONMENT = '00000000-0000-0000-0000-000000000000'

/**
 * An HTTP client for requests about tokens, bounded per environment and host: at most `IN_FLIGHT_MAX` at the same time by each
 * process, and `RATE_PER_SECOND` by all processes together, which also share a host's Retry-After. Many accounts of one third
 * party are refreshed evenly, one that hangs does not delay the others, and no tenant uses up or blocks a host for another.
 */
export function createTokenHttp({ http, database, clock, hosts = createTokenHosts() }: TokenHttpOptions): TokenHttp {
  const { inFlight, failures } = hosts

  async function send(request: EgressRequest, environmentId = NO_ENVIRONMENT): Promise<EgressResponse> {
    const host = { environmentId, host: new URL(request.url).host.toLowerCase() }
    const key = `${environmentId} ${host.host}`
    const startedAtMs = clock.monotonicMs()
    const state = inFlight.get(key) ?? new HostState()
    inFlight.set(key, state)
    await state.enter(clock)
    try {
      await awaitTurn(host)
      if (clock.monotonicMs() - startedAtMs > HOST_WAIT_MAX_MS) throw hostBusy(0)
      return await sendCounted(host, key, request)
    } finally {
      if (state.leave()) inFlight.delete(key)
    }
  }

  async function awaitTurn(host: TokenHost): Promise<void> {
    const { isReserved, waitMs } = await reserveHostTurn(database.pool, host, RATE, WAIT_MAX_MS)
    if (!isReserved) throw hostBusy(waitMs)
    if (waitMs > 0) await clock.sleep(waitMs)
  }

  async function sendCounted(host: TokenHost, key: string, request: EgressRequest): Promise<EgressResponse> {
    try {
      const response = await http.send(request)
      failures.delete(key)
      const blockMs = blockOf(response, clock.now())
      if (blockMs > 0) await blockHost(database.pool, host, Math.min(blockMs, BLOCK_MS_MAX))
      return response
    } catch (error) {
      if (error instanceof Failure && NO_RESPONSE.includes(error.reason)) await countFailure(host, key)
      throw error
    }
  }

  async function countFailure(host: TokenHost, key: string): Promise<void> {
    const inARow = (failures.get(key) ?? 0) + 1
    failures.set(key, inARow)
    if (inARow % FAILURES_MAX === 0) await blockHost(database.pool, host, FAILURE_BLOCK_MS)
  }

  return { send }
}

/** Requests of this process to one host, for one environment. */
class HostState {
  #inFlight = 0
  readonly #waiting: (() => void)[] = []

  /** Waits for a place. @throws Failure TOKEN_REQUEST_FAILED when there is none in time */
  async enter(clock: Clock): Promise<void> {
    if (this.#inFlight < IN_FLIGHT_MAX) {
      this.#inFlight++
      return
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push(resolve)
    const isOver = new AbortController()
    const late = clock.sleep(WAIT_MAX_MS, isOver.signal).then(() => 'late' as const)
    const outcome = await Promise.race([promise, late])
    isOver.abort()
    const place = this.#waiting.indexOf(resolve)
    if (outcome !== 'late' || place === -1) return
    this.#waiting.splice(place, 1)
    throw hostBusy(WAIT_MAX_MS)
  }

  /** Passes the place on. @returns whether it was the last one */
  leave(): boolean {
    const next = this.#waiting.shift()
    if (next !== undefined) next()
    else this.#inFlight--
    return this.#inFlight === 0
  }
}

function blockOf({ status, headers }: EgressResponse, now: Date): number {
  if (status !== TOO_MANY_REQUESTS && status !== UNAVAILABLE) return 0
  const seconds = retryAfterSeconds(headers, now)
  if (seconds !== undefined) return seconds * 1_000
  return status === TOO_MANY_REQUESTS ? DEFAULT_BLOCK_MS : 0
}

function hostBusy(waitMs: number): Failure {
  const message = 'too many requests for tokens wait for this third party, or it asked to wait'
  return new Failure('TOKEN_REQUEST_FAILED', message, { retryAfterSeconds: wholeSeconds(waitMs) })
}
