import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import type { Lease } from '../../foundation/queue/index.ts'
import {
  type Availability,
  type Outcome,
  Queue,
  type QueueDeps,
  type QueuedItem,
  type QueuePolicy,
  type SettledWork,
  type TurnClaim,
} from '../../foundation/queue/index.ts'
import { DELIVERY_ATTEMPTS_MAX, type DeliveryState } from './delivery.ts'
import { recordWebhookOutcomes, type WebhookOutcome } from './health.ts'
import { insertAttempts, type NewAttempt, type SettledDelivery, updateSettledDeliveries } from './sql/delivery.ts'
import { DELIVERY_QUEUE, type DeliveryPayload } from './sql/queue.ts'

/** The retry schedule of Standard Webhooks: ten attempts in about three days; jitter is only added. */
export const DELIVERY_POLICY: QueuePolicy = {
  // Four times what an attempt takes: a lease is not renewed.
  leaseMs: MINUTE_MS,
  stopGraceMs: MINUTE_MS,
  attemptsMax: DELIVERY_ATTEMPTS_MAX,
  retry: {
    delaysMs: [
      5 * SECOND_MS,
      5 * MINUTE_MS,
      30 * MINUTE_MS,
      2 * HOUR_MS,
      5 * HOUR_MS,
      10 * HOUR_MS,
      14 * HOUR_MS,
      20 * HOUR_MS,
      24 * HOUR_MS,
    ],
    jitter: 0.1,
  },
}

/** A delivery that this process is to send. */
export type QueuedDelivery = QueuedItem & Availability & DeliveryPayload

/** Why a delivery is not sent. */
export type DiscardReason =
  | 'webhook_deleted'
  | 'webhook_disabled'
  | 'webhook_paused'
  | 'event_deleted'
  | 'event_expunged'

/** How the work on a claimed delivery ended. */
export interface DeliverySettlement {
  readonly delivery: Lease<QueuedDelivery>
  /** `stopped`: it is discarded. */
  readonly outcome: Outcome
  /** The attempt that was made. */
  readonly attempt?: NewAttempt
  readonly discardReason?: DiscardReason
  /** Why it failed without an attempt. */
  readonly errorClass?: 'webhook_unreadable'
}

/** The queue of deliveries; the webhook is the concurrency key, and webhooks take turns. */
export class DeliveryQueue extends Queue<DeliveryPayload, DeliverySettlement> {
  constructor({ policy = DELIVERY_POLICY, ...deps }: Omit<QueueDeps, 'policy'> & { readonly policy?: QueuePolicy }) {
    super({ ...deps, policy }, DELIVERY_QUEUE)
  }

  get leaseMs(): number {
    return this.deps.policy.leaseMs
  }

  /** Leases deliveries, in a statement for each visit of the webhooks. */
  async claim(claim: TurnClaim): Promise<readonly Lease<QueuedDelivery>[]> {
    return await this.leaseInTurns(this.deps.database.pool, claim)
  }

  /**
   * Ends leases with what became of the deliveries, records the attempts and the health of the webhooks, in one transaction.
   *
   * @returns for each result what the delivery is now; `undefined` when its lease was lost and nothing was written
   */
  async settleResults(results: readonly DeliverySettlement[]): Promise<readonly (DeliveryState | undefined)[]> {
    const settled = await this.settle(
      results.map((result) => ({ ...result.delivery, outcome: result.outcome, result })),
    )
    return settled.map((each) => (each.kind === 'settled' ? stateOf(each.status) : undefined))
  }

  protected override async recordSettled(tx: Tx, settled: readonly SettledDeliveryWork[]): Promise<void> {
    await updateSettledDeliveries(tx, settled.map(settledDelivery))
    const attempts = settled.flatMap((item) => storedAttempt(item) ?? [])
    if (attempts.length > 0) await insertAttempts(tx, attempts)
    const outcomes = settled.flatMap((item) => webhookOutcomeOf(item) ?? [])
    if (outcomes.length > 0) await recordWebhookOutcomes(tx, outcomes)
  }
}

type SettledDeliveryWork = SettledWork<DeliveryPayload, DeliverySettlement>

/** What is stored of an attempt. Senders are asked to stop when the event is expunged, of which no answer is kept. */
function storedAttempt({ result, isStopRequested }: SettledDeliveryWork): NewAttempt | undefined {
  const attempt = result?.attempt
  return attempt !== undefined && isStopRequested ? { ...attempt, responseHeaders: null, responseBody: null } : attempt
}

function settledDelivery(item: SettledDeliveryWork): SettledDelivery {
  const { environmentId, id, status, availableAt, isStopRequested } = item
  const { attempt, discardReason, errorClass } = item.result ?? {}
  const whyStopped = isStopRequested && status === 'stopped' ? 'event_expunged' : undefined
  return {
    environmentId,
    id,
    state: stateOf(status),
    // A claim counts as an attempt, until it is known that there was none.
    attempts: discardReason === undefined ? item.attempt : item.attempt - 1,
    nextAttemptAt: availableAt,
    status: attempt?.status,
    errorClass: discardReason ?? whyStopped ?? errorClass ?? attempt?.errorClass,
  }
}

function webhookOutcomeOf({ result, ...item }: SettledDeliveryWork): WebhookOutcome | undefined {
  if (result?.attempt === undefined) return undefined
  const { status, errorClass } = result.attempt
  return {
    environmentId: item.environmentId,
    webhookId: item.concurrencyKey,
    isAccepted: errorClass === null,
    status: status ?? undefined,
    isExhausted: item.isOver && errorClass !== null,
  }
}

/** The state of a delivery by the status of its item. */
function stateOf(status: string): DeliveryState {
  switch (status) {
    case 'completed':
      return 'delivered'
    case 'failed':
      return 'failed'
    case 'stopped':
      return 'discarded'
    default:
      return 'pending'
  }
}
