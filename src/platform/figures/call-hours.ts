import type { LoggedCall } from '../../engine/proxy/index.ts'
import { HOUR_MS, momentOfId } from '../../foundation/base/index.ts'
import type { CallHour } from './sql.ts'

/** Upper bounds of the buckets by which durations are counted, inclusive, in milliseconds; the last bucket has none. */
export const DURATION_BOUNDS_MS: readonly number[] = [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000]

/** Keys that wait; requests of further ones are not counted. An hour of an environment is one for each installation and class. */
const KEYS_MAX = 10_000

/** Histogram of the requests of one process that are not stored yet, by environment, hour, installation and class. */
export class CallHours {
  #waiting = new Map<string, WaitingHour>()

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  /** Counts a request in the hour of its id. */
  record(call: Pick<LoggedCall, 'id' | 'environmentId' | 'environmentIntegrationId' | 'class' | 'totalMs'>): void {
    const { id, environmentId, environmentIntegrationId, totalMs } = call
    const hour = new Date(Math.floor(momentOfId(id).getTime() / HOUR_MS) * HOUR_MS)
    const bound = DURATION_BOUNDS_MS.findIndex((boundMs) => totalMs <= boundMs)
    const counts = this.#countsOf({ environmentId, hour, environmentIntegrationId, class: call.class })
    addAt(counts, bound === -1 ? DURATION_BOUNDS_MS.length : bound, 1)
  }

  /** Takes what waits. */
  take(): readonly CallHour[] {
    const taken = [...this.#waiting.values()]
    this.#waiting = new Map()
    return taken
  }

  /** Puts back what was taken and not stored. */
  putBack(taken: readonly CallHour[]): void {
    for (const hour of taken) {
      const counts = this.#countsOf(hour)
      for (const [bucket, count] of hour.counts.entries()) addAt(counts, bucket, count)
    }
  }

  /** The counts of a key to add to; undefined where too many keys wait. */
  #countsOf(key: Omit<CallHour, 'counts'>): number[] | undefined {
    const { environmentId, hour, environmentIntegrationId } = key
    const name = `${environmentId} ${hour.getTime()} ${environmentIntegrationId} ${key.class}`
    const held = this.#waiting.get(name)
    if (held !== undefined) return held.counts
    if (this.#waiting.size >= KEYS_MAX) return undefined
    const counts = Array.from({ length: DURATION_BOUNDS_MS.length + 1 }, () => 0)
    this.#waiting.set(name, { environmentId, hour, environmentIntegrationId, class: key.class, counts })
    return counts
  }
}

type WaitingHour = Omit<CallHour, 'counts'> & { readonly counts: number[] }

function addAt(counts: number[] | undefined, bucket: number, count: number): void {
  if (counts !== undefined) counts[bucket] = (counts[bucket] ?? 0) + count
}
