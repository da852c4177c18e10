import { type Clock, Failure } from '../base/index.ts'
import type { Database } from '../database/index.ts'
import { type EgressRequest, type EgressResponse, type HttpClient, parseRetryAfter } from '../egress/index.ts'
import { blockHost, type HostRate, reserveHostTurn } from './sql/token-host.ts'

/** Requests to one host per second, by all processes together: 10 000 accounts take less than a refresh margin. */
const RATE_PER_SECOND = 50
/** Requests that may be sent at once after a pause. */
const BURST = 25
const RATE: HostRate = { intervalMs: 1_000 / RATE_PER_SECOND, burstMs: (1_000 / RATE_PER_SECOND) * BURST }
/** Requests of this process to one host in flight. */
const IN_FLIGHT_MAX = 8
/** For a place among them, and then for a turn. */
const WAIT_MAX_MS = 10_000
/** For both together. A request that waited longer, because the process was paused, is not sent. */
export const HOST_WAIT_MAX_MS = 2 * WAIT_MAX_MS
/** Circuit breaker: after so many requests in a row without a response, a host is left alone for a while. */
const FAILURES_MAX = 5
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
}

/**
 * An HTTP client for requests about tokens, bounded per host: at most `IN_FLIGHT_MAX` at the same time by each process, and
 * `RATE_PER_SECOND` by all processes together, which also share what a host asked for by Retry-After. Many accounts of one
 * third party are refreshed evenly, and one that hangs does not delay the others.
 *
 * `send` throws Failure TOKEN_REQUEST_FAILED, with the seconds to wait, when nothing was sent for that reason.
 */
export function createTokenHttp({ http, database, clock }: TokenHttpOptions): Pick<HttpClient, 'send'> {
  const hosts = new Map<string, HostState>()

  async function send(request: EgressRequest): Promise<EgressResponse> {
    const host = new URL(request.url).host.toLowerCase()
    const startedAtMs = clock.monotonicMs()
    const state = hosts.get(host) ?? new HostState()
    hosts.set(host, state)
    await state.enter(clock)
    try {
      await awaitTurn(host)
      if (clock.monotonicMs() - startedAtMs > HOST_WAIT_MAX_MS) throw hostBusy(0)
      return await sendCounted(host, state, request)
    } finally {
      if (state.leave()) hosts.delete(host)
    }
  }

  async function awaitTurn(host: string): Promise<void> {
    const { isReserved, waitMs } = await reserveHostTurn(database.pool, host, RATE, WAIT_MAX_MS)
    if (!isReserved) throw hostBusy(waitMs)
    if (waitMs > 0) await clock.sleep(waitMs)
  }

  async function sendCounted(host: string, state: HostState, request: EgressRequest): Promise<EgressResponse> {
    try {
      const response = await http.send(request)
      state.failures = 0
      const blockMs = blockOf(response, clock.now())
      if (blockMs > 0) await blockHost(database.pool, host, Math.min(blockMs, BLOCK_MS_MAX))
      return response
    } catch (error) {
      if (++state.failures % FAILURES_MAX === 0) await blockHost(database.pool, host, FAILURE_BLOCK_MS)
      throw error
    }
  }

  return { send }
}

/** Requests of this process to one host. */
class HostState {
  /** Requests in a row without a response. */
  failures = 0
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

  /** Passes the place on. @returns whether nothing of the host is left to remember */
  leave(): boolean {
    const next = this.#waiting.shift()
    if (next !== undefined) next()
    else this.#inFlight--
    return this.#inFlight === 0 && this.failures === 0
  }
}

function blockOf({ status, headers }: EgressResponse, now: Date): number {
  if (status !== TOO_MANY_REQUESTS && status !== UNAVAILABLE) return 0
  const seconds = parseRetryAfter(headers['retry-after'], now)
  if (seconds !== undefined) return seconds * 1_000
  return status === TOO_MANY_REQUESTS ? DEFAULT_BLOCK_MS : 0
}

function hostBusy(waitMs: number): Failure {
  const message = 'too many requests for tokens wait for this third party, or it asked to wait'
  return new Failure('TOKEN_REQUEST_FAILED', message, { retryAfterSeconds: Math.ceil(waitMs / 1_000) })
}
