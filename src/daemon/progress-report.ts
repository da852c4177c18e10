import type { JsonObject } from '../base/index.ts'
import type { ResourceStats, RunProgress } from '../queue/index.ts'
import type { HeldDaemonRun } from './held-run.ts'
import type { ServiceClients } from './service.ts'
import type { Store } from './store.ts'
import { retryWhileHeld, type WaitDeps } from './while-held.ts'

/** What reporting needs. */
export interface ProgressDeps extends WaitDeps {
  readonly service: Pick<ServiceClients, 'daemons'>
  readonly store: Pick<Store, 'reportIntervalMs'>
}

/** What was done and is not reported yet. */
interface UnreportedProgress {
  readonly checkpoint: JsonObject
  readonly stats: readonly ResourceStats[]
}

/**
 * Tells the service how far a run has come: after every page, but no oftener than the store needs it. What is not reported
 * is done again by the next holder.
 */
export class ProgressReporter implements RunProgress {
  readonly #deps: ProgressDeps
  readonly #held: HeldDaemonRun
  #pending: UnreportedProgress | undefined
  #reportedMs = Number.NEGATIVE_INFINITY

  constructor(deps: ProgressDeps, held: HeldDaemonRun) {
    this.#deps = deps
    this.#held = held
  }

  async save(checkpoint: JsonObject, stats: readonly ResourceStats[]): Promise<'continue' | 'stop'> {
    this.#pending = { checkpoint, stats }
    const isDue = performance.now() >= this.#reportedMs + this.#deps.store.reportIntervalMs
    if (isDue || this.#held.isStopping) await this.flush()
    return this.#held.isStopping ? 'stop' : 'continue'
  }

  /** Reports what is not reported yet, before the end of the run is told. @throws Failure LEASE_LOST */
  async flush(): Promise<void> {
    if (this.#pending === undefined) return
    const { checkpoint, stats } = this.#pending
    const progress = { checkpointJson: JSON.stringify(checkpoint), resourceStats: stats.map((each) => ({ ...each })) }
    const { stopRequested } = await retryWhileHeld(this.#deps, this.#held, async (request, options) => {
      const askedMs = performance.now()
      const answer = await this.#deps.service.daemons.reportProgress({ ...request, ...progress }, options)
      this.#held.renew(askedMs)
      return answer
    })
    this.#pending = undefined
    this.#reportedMs = performance.now()
    if (stopRequested) this.#held.stop()
  }
}
