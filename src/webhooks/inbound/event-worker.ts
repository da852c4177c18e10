import { Failure, type PollLoopSpec } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { type Lease, LeasedWork, type LeasedWorkDeps } from '../../foundation/queue/index.ts'
import { describeError } from '../../foundation/telemetry/index.ts'
import { failedAt, type InboundEffects, isUnrouted, type ProcessingOutcome } from './effects.ts'
import type { InboundQueue, QueuedEvent } from './inbound-queue.ts'

/** What processing received webhooks takes. */
export interface InboundProcessorDeps extends LeasedWorkDeps {
  readonly queue: Pick<InboundQueue, 'claim' | 'finish' | 'reap'>
  /** Finds out what an event leads to, and does nothing of it. Never throws. */
  readonly process: (lease: Lease<QueuedEvent>) => Promise<ProcessingOutcome>
  /** Names this process in leases. */
  readonly holder: string
  /** Called with the accounts that a webhook was about, once that is stored. */
  readonly onProcessed?: (account: { readonly environmentId: string; readonly id: string }, receivedAt: Date) => void
  /** Told of every event whose processing has ended, by its state; of an unrouted one with its integration, and why. */
  readonly observe?:
    | ((state: 'processed' | 'unrouted' | 'failed', event: Lease<QueuedEvent>, fields: JsonObject) => void)
    | undefined
  /** Called when what an event leads to is stored. */
  readonly onStored?: () => void
}

/** Events processed at once at most. */
const CONCURRENCY = 64
const POLL_MS = 250
const REAP_MS = 5_000
/** Events in hand when a drain begins get this long. */
const DRAIN_MS = 10_000

/**
 * Processes received webhooks: claims as many as it has capacity for, finds out what each leads to, and writes that in the
 * transaction that ends the lease. At-least-once work with effects that happen once: what a process had found out that dies is
 * found out again.
 */
export class InboundProcessor implements AsyncDisposable {
  readonly #deps: InboundProcessorDeps
  readonly #work: LeasedWork

  /** @param beside loops that run beside it */
  constructor(deps: InboundProcessorDeps, beside: readonly PollLoopSpec[] = []) {
    this.#deps = deps
    const reap = async () => (await deps.queue.reap()) > 0
    this.#work = new LeasedWork(deps, { name: 'inbound', intervalMs: POLL_MS, runOnce: () => this.claimOnce() }, [
      { name: 'inbound-reap', intervalMs: REAP_MS, runOnce: reap },
      ...beside,
    ])
  }

  /** Begins to claim; later calls change nothing. */
  start(): void {
    this.#work.start()
  }

  /** Claims now: a webhook was received. */
  wake(): void {
    this.#work.wake()
  }

  /** Claims up to the capacity and begins to process. @returns whether to claim again at once */
  async claimOnce(): Promise<boolean> {
    const { queue, holder, clock } = this.#deps
    const capacity = CONCURRENCY - this.#work.count
    if (capacity <= 0) return false
    const claimedMs = clock.monotonicMs()
    const leases = await queue.claim(holder, capacity)
    for (const lease of leases) {
      const work = this.#process(lease, claimedMs + lease.leaseMs)
      this.#work.begin({ inbound_event_id: lease.id }, work, () => this.#work.wake())
    }
    return leases.length > 0
  }

  /** Resolves when nothing is in hand. */
  async idle(): Promise<void> {
    await this.#work.idle()
  }

  /** Claims nothing more and waits a while for what is in hand; other leases expire. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#work.finish(DRAIN_MS)
    await this.#work[Symbol.asyncDispose]()
  }

  /** An error of the data fails the event. */
  async #process(lease: Lease<QueuedEvent>, endsMs: number): Promise<void> {
    const { queue, process, logger } = this.#deps
    const outcome = await process(lease)
    try {
      const finished = await this.#work.settle(endsMs, () => queue.finish({ lease, outcome }))
      if (finished === 'finished') this.#report(lease, outcome)
    } catch (error) {
      logger.error({ inbound_event_id: lease.id, ...describeError(error) }, 'what a webhook leads to was not stored')
      const failure = error instanceof Failure ? error : new Failure('INTERNAL', 'the effects could not be stored')
      await queue.finish({ lease, outcome: failedAt('store', failure, outcome.trace) })
    }
  }

  #report(lease: Lease<QueuedEvent>, outcome: ProcessingOutcome): void {
    const { environmentId, stored } = lease
    const { onProcessed, onStored, observe } = this.#deps
    onStored?.()
    if (outcome.kind === 'failed') {
      if (!outcome.isTransient) observe?.('failed', lease, {})
    } else {
      const state = isUnrouted(outcome.effects) ? 'unrouted' : 'processed'
      observe?.(state, lease, { integration: outcome.effects.integration.name, ...unroutedReasonOf(outcome.effects) })
    }
    if (onProcessed === undefined || stored === undefined || outcome.kind !== 'done') return
    const accounts = outcome.effects.items.flatMap((item) => (item.state === 'unrouted' ? [] : [item.account.id]))
    for (const id of new Set(accounts)) onProcessed({ environmentId, id }, stored.event.receivedAt)
  }
}

function unroutedReasonOf({ items }: InboundEffects): JsonObject {
  const [reason] = items.flatMap((item) => (item.state === 'unrouted' ? [item.detail] : []))
  return reason === undefined ? {} : { reason }
}
