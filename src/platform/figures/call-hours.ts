import type { LoggedCall } from '../../engine/proxy/index.ts'
import { HOUR_MS, momentOfId } from '../../foundation/base/index.ts'
import type { CallHour } from './sql.ts'

/** Upper bounds of the buckets by which durations are counted, inclusive, in milliseconds; the last bucket has none. */
export const DURATION_BOUNDS_MS: readonly number[] = [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000]

/** Keys that wait; requests of further ones are not counted. An hour of an environment is one for each installation and class. */
const KEYS_MAX = 10_000

/** Histogram of the requests of one process that are not stored yet, by environment, hour, installation and class. */
export class CallHours {
  #waiting = new Map<string, CallHour>()

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  /** Counts a request in the hour of its id. */
  record(call: Pick<LoggedCall, 'id' | 'environmentId' | 'environmentIntegrationId' | 'class' | 'totalMs'>): void {
    const { id, environmentId, environmentIntegrationId, totalMs } = call
    const hour = new Date(Math.floor(momentOfId(id).getTime() / HOUR_MS) * HOUR_MS)
    const bound = DURATION_BOUNDS_MS.findIndex((boundMs) => totalMs <= boundMs)
    const bucket = bound === -1 ? DURATION_BOUNDS_MS.length : bound
    const counts = Array.from({ length: DURATION_BOUNDS_MS.length + 1 }, (_, at) => (at === bucket ? 1 : 0))
    this.#add({ environmentId, hour, environmentIntegrationId, class: call.class, counts })
  }

  /** Takes what waits. */
  take(): readonly CallHour[] {
    const taken = [...this.#waiting.values()]
    this.#waiting = new Map()
    return taken
  }

  /** Puts back what was taken and not stored. */
  putBack(taken: readonly CallHour[]): void {
    for (const hour of taken) this.#add(hour)
  }

  #add(added: CallHour): void {
    const key = [added.environmentId, added.hour.getTime(), added.environmentIntegrationId, added.class].join()
    const held = this.#waiting.get(key)
    if (held === undefined && this.#waiting.size >= KEYS_MAX) return
    const counts = added.counts.map((count, bucket) => count + (held?.counts[bucket] ?? 0))
    this.#waiting.set(key, { ...added, counts })
  }
}
