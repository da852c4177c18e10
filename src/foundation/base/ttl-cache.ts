import { LRUCache } from 'lru-cache'
import type { Clock } from './clock.ts'
import { detachFromRequest } from './request-scope.ts'

/** Limits of a cache. */
export interface TtlCacheOptions {
  /** Entries at most; the least recently used one is evicted. */
  readonly max: number
  /** Time to live of an entry, milliseconds. */
  readonly ttlMs: number
  /** Only monotonic time counts: a machine's clock that is set back prolongs no entry. */
  readonly clock: Pick<Clock, 'monotonicMs'>
}

interface Entry<Value> {
  readonly value: Value
  readonly expiresAtMs: number
}

/** TTL cache: a map whose entries expire after a time to live, bounded in size (LRU). */
export class TtlCache<Value> {
  readonly #entries: LRUCache<string, Entry<Value>>
  readonly #ttlMs: number
  readonly #clock: Pick<Clock, 'monotonicMs'>

  constructor({ max, ttlMs, clock }: TtlCacheOptions) {
    // By size: with `max` it would allocate all places at once.
    this.#entries = new LRUCache({ maxSize: max, sizeCalculation: () => 1 })
    this.#ttlMs = ttlMs
    this.#clock = clock
  }

  /** `undefined` when there is no entry, or an expired one. */
  get(key: string): Value | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && this.#clock.monotonicMs() < entry.expiresAtMs ? entry.value : undefined
  }

  /** Like `get`, also an expired entry, until it is evicted. */
  getStale(key: string): Value | undefined {
    return this.#entries.get(key)?.value
  }

  /** @param ttlMs of this entry, where it is not that of the cache */
  set(key: string, value: Value, ttlMs = this.#ttlMs): void {
    this.#entries.set(key, { value, expiresAtMs: this.#clock.monotonicMs() + ttlMs })
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }
}

/**
 * Reads through a cache. Its entries are promises, so that callers that miss together share one read; the time to live
 * counts from before the read began.
 *
 * What was not found is not cached, nor is an error: a row that was written a moment ago is found.
 */
export async function readThrough<Value>(
  cache: TtlCache<Promise<Value | undefined>>,
  key: string,
  read: () => Promise<Value | undefined>,
): Promise<Value | undefined> {
  const cached = cache.get(key)
  if (cached !== undefined) return await cached
  // Others wait for it too: it does not end with the request that began it.
  const pending = detachFromRequest(read)
  cache.set(key, pending)
  let value: Value | undefined
  try {
    value = await pending
  } finally {
    if (value === undefined && cache.getStale(key) === pending) cache.delete(key)
  }
  return value
}
