import { MicroBatcher } from '../../foundation/base/index.ts'
import { isDatabaseUnavailable, type Tx } from '../../foundation/database/index.ts'
import type { Lease } from '../../foundation/queue/index.ts'
import {
  type Outcome,
  Queue,
  type QueueDeps,
  type QueuedItem,
  type QueuePolicy,
  type SettledItem,
  type SettledWork,
} from '../../foundation/queue/index.ts'
import { CONTENT_EXPUNGED, failedAt, type ProcessingOutcome } from './effects.ts'
import { findStoredRequests, type StoredRequest } from './sql/processing.ts'
import { hasWaitingEvents, INBOUND_QUEUE, INBOUND_QUEUE_GROUPS, type InboundQueuePayload } from './sql/queue.ts'
import { ContextRejected, type EffectDeps, type FinishedEvent, storeEffects } from './store-effects.ts'

/** An event that is leased to be processed. */
export interface QueuedEvent extends QueuedItem {
  readonly isReplay: boolean
  /** How long the lease holds from the claim on. */
  readonly leaseMs: number
  /** Every attempt lost its lease: nothing is processed any more. */
  readonly attemptsExhausted: boolean
  /** `undefined` when its day was dropped while it waited. */
  readonly stored: StoredRequest | undefined
}

/** What became of a leased event. */
export interface ProcessedLease {
  readonly lease: Lease<QueuedEvent>
  readonly outcome: ProcessingOutcome
}

/** A crash is noticed within half a minute; six attempts span about half an hour. */
const INBOUND_QUEUE_POLICY: QueuePolicy = {
  leaseMs: 30_000,
  stopGraceMs: 30_000,
  attemptsMax: 6,
  retry: { baseMs: 1_000, factor: 5, maxMs: 20 * 60_000, jitterFloor: 0.5 },
}

/** Share of a claim that is for replays, so that neither they nor what was just received waits for the other. */
const REPLAY_SHARE = 0.25
const BATCHES_MAX = 3
const EVENTS_PER_BATCH_MAX = 50

/** What the queue needs. */
export type InboundQueueDeps = Omit<QueueDeps, 'policy'> &
  Partial<Pick<QueueDeps, 'policy'>> & { readonly accounts: EffectDeps }

/**
 * The queue of received webhooks. The effects of an event are written in the transaction that ends the lease on it, so that
 * they happen once: a holder that has lost the lease writes nothing.
 */
export class InboundQueue extends Queue<InboundQueuePayload, ProcessedLease> {
  readonly #accounts: EffectDeps
  readonly #finishing: MicroBatcher<ProcessedLease, 'finished' | 'lost'>

  constructor({ accounts, policy = INBOUND_QUEUE_POLICY, ...deps }: InboundQueueDeps) {
    super({ ...deps, policy }, INBOUND_QUEUE)
    this.#accounts = accounts
    this.#finishing = new MicroBatcher({
      concurrencyMax: BATCHES_MAX,
      batchMax: EVENTS_PER_BATCH_MAX,
      process: (batch) => this.#finishBatch(batch),
    })
  }

  /** Leases up to `limit` events; the addresses take turns. Costs one look at an index while nothing waits. */
  async claim(holder: string, limit: number): Promise<readonly Lease<QueuedEvent>[]> {
    if (!(await hasWaitingEvents(this.deps.database.pool))) return []
    return await this.deps.database.transaction(async (tx) => {
      const { received, replay } = INBOUND_QUEUE_GROUPS
      const reserved = Math.floor(limit * REPLAY_SHARE)
      const first = await this.leaseInTurns(tx, { group: received, holder, limit: limit - reserved })
      const then = await this.leaseInTurns(tx, { group: replay, holder, limit: limit - first.length })
      const leases = [...first, ...then]
      const requests = await findStoredRequests(tx, leases)
      const { attemptsMax, leaseMs } = this.deps.policy
      return leases.map((lease) => ({
        ...lease,
        leaseMs,
        attemptsExhausted: lease.attempt > lease.attemptBase + attemptsMax,
        stored: requests.get(lease.id),
      }))
    })
  }

  /**
   * Ends a lease and writes the effects, both or neither; concurrent calls share transactions.
   *
   * @returns `lost` when another holder may have the lease, or an earlier call whose answer was lost has ended it
   */
  async finish(processed: ProcessedLease): Promise<'finished' | 'lost'> {
    return await this.#finishing.run(processed)
  }

  protected override async recordSettled(
    tx: Tx,
    settled: readonly SettledWork<InboundQueuePayload, ProcessedLease>[],
  ): Promise<void> {
    const requests = await findStoredRequests(
      tx,
      settled.filter(({ result }) => result === undefined),
    )
    const finished = settled.flatMap((item): readonly FinishedEvent[] => {
      const { result, isReplay, isOver } = item
      const stored = result === undefined ? requests.get(item.id) : result.lease.stored
      const outcome = item.isStopRequested ? EXPUNGED : (result?.outcome ?? abandonedOutcome(item))
      return stored === undefined ? [] : [{ event: stored.event, isReplay, outcome, isOver }]
    })
    await storeEffects(this.#accounts, tx, finished)
  }

  /** An event that cannot be written does not keep the others of its batch from being written. */
  async #finishBatch(batch: readonly ProcessedLease[]): Promise<readonly ('finished' | 'lost')[]> {
    try {
      return await this.#settleBatch(batch)
    } catch (error) {
      if (error instanceof ContextRejected)
        return await this.#finishBatch(batch.map((each) => withRejectedContext(each, error)))
      if (batch.length === 1 || isDatabaseUnavailable(error)) throw error
      return await Promise.all(batch.map(async (each) => (await this.#finishBatch([each]))[0] ?? 'lost'))
    }
  }

  async #settleBatch(batch: readonly ProcessedLease[]): Promise<readonly ('finished' | 'lost')[]> {
    const settlements = batch.map((result) => ({
      ...result.lease,
      outcome: queueOutcome(result.outcome),
      result,
    }))
    return (await this.settle(settlements)).map(({ kind }) => (kind === 'lost' ? 'lost' : 'finished'))
  }
}

function queueOutcome(outcome: ProcessingOutcome): Outcome {
  if (outcome.kind !== 'failed') return { kind: 'completed' }
  return { kind: outcome.isTransient ? 'retry' : 'failed', error: outcome.error }
}

/** Of an event whose content was removed while it was processed: nothing that it led to is stored. */
const EXPUNGED: ProcessingOutcome = { kind: 'failed', isTransient: false, error: CONTENT_EXPUNGED, trace: {} }

/** Of an event whose holder has lost its lease. */
function abandonedOutcome({ error }: SettledItem): ProcessingOutcome {
  const { reason = 'INTERNAL', message = '' } = (error ?? {}) as { readonly reason?: string; readonly message?: string }
  return { kind: 'failed', isTransient: true, error: { step: 'load', reason, message }, trace: {} }
}

function withRejectedContext(processed: ProcessedLease, { eventId, failure }: ContextRejected): ProcessedLease {
  if (processed.lease.id !== eventId) return processed
  return { ...processed, outcome: failedAt('context', failure, processed.outcome.trace) }
}
