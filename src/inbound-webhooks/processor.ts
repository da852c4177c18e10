import { backoffMs, type Clock, Failure, PollLoop, type PollLoopDeps, type Random } from '../base/index.ts'
import { isDatabaseUnavailable } from '../database/index.ts'
import type { Lease } from '../due-work/index.ts'
import { describeError, type Logger } from '../telemetry/index.ts'
import { failedAt, type ProcessingOutcome } from './effects.ts'
import type { InboundQueue, QueuedEvent } from './inbound-queue.ts'

/** What processing received webhooks takes. */
export interface InboundProcessorDeps extends PollLoopDeps {
  readonly queue: Pick<InboundQueue, 'claim' | 'finish' | 'reap'>
  /** Finds out what an event leads to, and does nothing of it. Never throws. */
  readonly process: (lease: Lease<QueuedEvent>) => Promise<ProcessingOutcome>
  readonly clock: Clock
  readonly random: Random
  readonly logger: Pick<Logger, 'warn' | 'error'>
  /** Names this process in leases. */
  readonly holder: string
  /** Called with the accounts that a webhook was about, once that is stored. */
  readonly onProcessed?: (account: { readonly environmentId: string; readonly id: string }, receivedAt: Date) => void
  /** Called when what an event leads to is stored. */
  readonly onStored?: () => void
  /** Events processed at once at most. */
  readonly concurrency?: number
}

const CONCURRENCY_DEFAULT = 64
const POLL_MS = 250
const REAP_MS = 5_000
/** Events in hand when a drain begins get this long. */
const DRAIN_MS = 10_000
const FINISH_BACKOFF = { baseMs: 100, factor: 2, maxMs: 2_000, jitterFloor: 0.5 }

/**
 * Processes received webhooks: claims as many as it has capacity for, finds out what each leads to, and writes that in the
 * transaction that ends the lease. At-least-once work with effects that happen once: a process that dies leaves its leases to
 * expire, and what it had found out is found out again.
 */
export class InboundProcessor implements AsyncDisposable {
  readonly #deps: InboundProcessorDeps
  readonly #claims: PollLoop
  readonly #reaper: PollLoop
  readonly #running = new Set<Promise<void>>()
  #isDraining = false

  constructor(deps: InboundProcessorDeps) {
    this.#deps = deps
    this.#claims = new PollLoop(deps, { name: 'inbound', intervalMs: POLL_MS, runOnce: () => this.claimOnce() })
    this.#reaper = new PollLoop(deps, {
      name: 'inbound-reap',
      intervalMs: REAP_MS,
      runOnce: async () => (await deps.queue.reap()) > 0,
    })
  }

  /** Begins to claim; later calls change nothing. */
  start(): void {
    this.#claims.start()
    this.#reaper.start()
  }

  /** Claims now. */
  wake(): void {
    this.#claims.wake()
  }

  /** Claims up to the capacity and begins to process. @returns whether to claim again at once */
  async claimOnce(): Promise<boolean> {
    const { queue, holder, concurrency = CONCURRENCY_DEFAULT, clock } = this.#deps
    const capacity = concurrency - this.#running.size
    if (capacity <= 0 || this.#isDraining) return false
    const claimedMs = clock.monotonicMs()
    const leases = await queue.claim(holder, capacity)
    for (const lease of leases) this.#begin(lease, claimedMs)
    return leases.length > 0
  }

  /** Resolves when nothing is in hand. */
  async idle(): Promise<void> {
    await Promise.all(this.#running)
  }

  /** Claims nothing more and waits a while for what is in hand; other leases expire. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDraining = true
    await this.#claims[Symbol.asyncDispose]()
    const isOver = new AbortController()
    await Promise.race([this.idle(), this.#deps.clock.sleep(DRAIN_MS, isOver.signal)])
    isOver.abort()
    await this.#reaper[Symbol.asyncDispose]()
  }

  #begin(lease: Lease<QueuedEvent>, claimedMs: number): void {
    const work = this.#process(lease, claimedMs).finally(() => {
      this.#running.delete(work)
      this.#claims.wake()
    })
    this.#running.add(work)
  }

  async #process(lease: Lease<QueuedEvent>, claimedMs: number): Promise<void> {
    const outcome = await this.#deps.process(lease)
    try {
      await this.#finish(lease, outcome, claimedMs)
    } catch (error) {
      this.#deps.logger.error({ inbound_event_id: lease.id, ...describeError(error) }, 'a webhook was not processed')
    }
  }

  /** Repeats the transaction through an outage for as long as the lease holds; an error of the data fails the event. */
  async #finish(lease: Lease<QueuedEvent>, outcome: ProcessingOutcome, claimedMs: number): Promise<void> {
    const { queue, clock, random } = this.#deps
    const leaseMs = lease.leaseMs
    for (let failures = 1; clock.monotonicMs() - claimedMs < leaseMs; failures++) {
      try {
        if ((await queue.finish({ lease, outcome })) === 'finished') this.#report(lease, outcome)
        return
      } catch (error) {
        if (!isDatabaseUnavailable(error)) return await this.#giveUp(lease, outcome, error)
        await clock.sleep(backoffMs(FINISH_BACKOFF, failures, random))
      }
    }
  }

  #report({ environmentId, stored }: Lease<QueuedEvent>, outcome: ProcessingOutcome): void {
    const { onProcessed, onStored } = this.#deps
    onStored?.()
    if (onProcessed === undefined || stored === undefined || outcome.kind !== 'done') return
    const accounts = outcome.effects.items.flatMap((item) => (item.state === 'unrouted' ? [] : [item.account.id]))
    for (const id of new Set(accounts)) onProcessed({ environmentId, id }, stored.event.receivedAt)
  }

  async #giveUp(lease: Lease<QueuedEvent>, { trace }: ProcessingOutcome, error: unknown): Promise<void> {
    const { logger, queue } = this.#deps
    logger.error({ inbound_event_id: lease.id, ...describeError(error) }, 'what a webhook leads to was not stored')
    const failure = error instanceof Failure ? error : new Failure('INTERNAL', 'the effects could not be stored')
    await queue.finish({ lease, outcome: failedAt('store', failure, trace) })
  }
}
