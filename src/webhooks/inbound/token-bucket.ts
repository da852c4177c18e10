import { LRUCache } from 'lru-cache'
import type { WebhookRate } from '../../engine/definitions/index.ts'
import { type Clock, Failure } from '../../foundation/base/index.ts'

/** Addresses whose rate is known; the one without a request for the longest time starts anew. */
const BUCKETS_MAX = 50_000

interface Bucket {
  tokens: number
  atMs: number
}

/** Token buckets by address, of this process alone: several servers together let through as many times the rate. */
export class TokenBuckets {
  /** By size, not by `max`, which would allocate all places at once. */
  readonly #buckets = new LRUCache<string, Bucket>({ maxSize: BUCKETS_MAX, sizeCalculation: () => 1 })
  readonly #clock: Pick<Clock, 'monotonicMs'>

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Takes one token. @returns the seconds until there is one, or `undefined` when there was */
  take(key: string, { requestsPerSecond, burst }: WebhookRate): number | undefined {
    const nowMs = this.#clock.monotonicMs()
    const bucket = this.#buckets.get(key) ?? { tokens: burst, atMs: nowMs }
    const refilled = bucket.tokens + ((nowMs - bucket.atMs) / 1_000) * requestsPerSecond
    bucket.tokens = Math.min(burst, refilled)
    bucket.atMs = nowMs
    this.#buckets.set(key, bucket)
    if (bucket.tokens < 1) return Math.max(1, Math.ceil((1 - bucket.tokens) / requestsPerSecond))
    bucket.tokens -= 1
    return undefined
  }
}

/** The error of a request above the rate of its address. */
export function rateExceeded({ requestsPerSecond }: WebhookRate, retryAfterSeconds: number): Failure {
  const message = `this address takes ${requestsPerSecond} requests per second; send this one again later`
  return new Failure('RATE_LIMITED', message, { retryAfterSeconds })
}
