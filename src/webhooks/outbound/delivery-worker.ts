import { Failure, MicroBatcher, PollLoop, type PollLoopSpec, TtlCache } from '../../foundation/base/index.ts'
import { type Database, isDatabaseUnavailable } from '../../foundation/database/index.ts'
import type { HttpClient } from '../../foundation/egress/index.ts'
import { type Lease, LeasedWork, type LeasedWorkDeps, REAP_INTERVAL_MS } from '../../foundation/queue/index.ts'
import { describeError } from '../../foundation/telemetry/index.ts'
import { type EventRecord, findEventsByRefs } from '../../platform/outbox/index.ts'
import { ATTEMPT_TIMEOUT_MS } from './attempt.ts'
import type { DeliveryState } from './delivery.ts'
import { DeliveryQueue, type DeliverySettlement, type QueuedDelivery } from './delivery-queue.ts'
import { Dispatcher } from './dispatcher.ts'
import { InFlight } from './in-flight.ts'
import { type LoadedWebhook, type LoadWebhookDeps, loadWebhooks } from './load-webhooks.ts'
import { type DeliveryParts, sendDelivery } from './send.ts'
import { SECRETS_AGE_MAX_MS } from './signing.ts'
import type { WebhookRef } from './sql/load-webhooks.ts'
import { FIRST_GROUP, RETRY_GROUP } from './sql/queue.ts'

/** What a delivery worker takes. */
export interface DeliveryWorkerDeps extends LeasedWorkDeps {
  readonly database: Database
  readonly secrets: LoadWebhookDeps['secrets']
  readonly http: Pick<HttpClient, 'stream'>
  /** Names this process in leases. */
  readonly holder: string
  /** Deliveries sent at once at most, not counting those whose receivers hang. */
  readonly concurrency: number
  /** Absent: the queue of the product. */
  readonly queue?: DeliveryQueue | undefined
}

/** Counters of a delivery worker since it was created. */
export interface DeliveryWorkerStats {
  /** Deliveries that are being sent or settled. */
  readonly inFlight: number
  /** Events that were dispatched, and the deliveries that were created for them. */
  readonly events: number
  readonly deliveries: number
  /** Attempts by what the delivery is afterwards. */
  readonly outcomes: Readonly<Record<DeliveryState, number>>
  readonly leasesLost: number
  readonly leasesExpired: number
}

/** What is known of a queue group. */
interface GroupState {
  /** The last claim found less than it asked for, and nothing was added since it began. */
  isExhausted: boolean
  claimedMs: number
  /** How often something was added. */
  additions: number
}

const GROUPS = [FIRST_GROUP, RETRY_GROUP] as const
/** Pause between rounds while there is work, or was a moment ago. */
const ACTIVE_INTERVAL_MS = 250
/** The same of dispatch: each event waits half of it. */
const DISPATCH_INTERVAL_MS = 100
/** Pauses without work for `ACTIVE_MS`: of dispatch, which wakes the sender, and of the sender. */
const IDLE_DISPATCH_MS = 1_000
const IDLE_SEND_MS = 2_000
const ACTIVE_MS = 30_000
/** Share of the slots that each queue group may always have, and share that it leaves to the other even when that is empty. */
const OWN_SHARE = 1 / 2
const RESERVED_SHARE = 1 / 8
/** A claim waits until this share of the slots is free, so that it is worth its statement. */
const CLAIM_SHARE = 1 / 4
const SETTLEMENTS_PER_TRANSACTION_MAX = 500
/** Deliveries that were sent and wait to be settled, as a multiple of the slots: more are not claimed then. */
const UNSETTLED_FACTOR = 4
/** Time to live of a cached webhook: a change of its address or state takes effect after this. */
const WEBHOOK_TTL_MS = SECRETS_AGE_MAX_MS / 2
const WEBHOOKS_CACHED_MAX = 10_000

/**
 * Delivery worker: dispatches events, claims deliveries, sends them and settles how that ended. Any number of processes share
 * one database, and each may be killed at any moment: a lease that is not settled expires, and the delivery is sent again under
 * the same id.
 *
 * First attempts and the backlog of later ones share the slots half and half; unused slots of one are lent to the other.
 */
export class DeliveryWorker implements AsyncDisposable {
  readonly #deps: DeliveryWorkerDeps
  readonly #queue: DeliveryQueue
  readonly #dispatcher: Dispatcher
  readonly #inFlight: InFlight
  readonly #groups = new Map<string, GroupState>(
    GROUPS.map((group) => [group, { isExhausted: false, claimedMs: 0, additions: 0 }]),
  )
  readonly #webhooks: TtlCache<LoadedWebhook>
  readonly #settlements: MicroBatcher<DeliverySettlement, DeliveryState | undefined>
  readonly #dispatch: PollLoop
  readonly #sending: LeasedWork
  readonly #stop = new AbortController()
  readonly #outcomes = { pending: 0, delivered: 0, failed: 0, discarded: 0 }
  #counts = { events: 0, deliveries: 0, leasesLost: 0, leasesExpired: 0 }
  #activeMs = Number.NEGATIVE_INFINITY
  /** The last round claimed nothing because settling is late. */
  #isPausedForSettling = false

  constructor(deps: DeliveryWorkerDeps) {
    this.#deps = deps
    this.#queue = deps.queue ?? new DeliveryQueue(deps)
    this.#dispatcher = new Dispatcher(deps.database)
    this.#inFlight = new InFlight(deps.concurrency)
    this.#webhooks = new TtlCache({ max: WEBHOOKS_CACHED_MAX, ttlMs: WEBHOOK_TTL_MS, clock: deps.clock })
    this.#settlements = new MicroBatcher({
      concurrencyMax: 1,
      batchMax: SETTLEMENTS_PER_TRANSACTION_MAX,
      process: (results) => this.#queue.settleResults(results),
    })
    const loop = (name: string, intervalMs: number, runOnce: PollLoopSpec['runOnce']) => ({ name, intervalMs, runOnce })
    this.#dispatch = new PollLoop(
      deps,
      loop('dispatch', ACTIVE_INTERVAL_MS, () => this.dispatchOnce()),
    )
    const claims = loop('deliveries', ACTIVE_INTERVAL_MS, () => this.sendOnce())
    const reaper = loop('reap-deliveries', REAP_INTERVAL_MS, () => this.reapOnce())
    this.#sending = new LeasedWork(deps, claims, [reaper])
  }

  /** Begins; later calls change nothing. */
  start(): void {
    this.#dispatch.start()
    this.#sending.start()
  }

  /** Works now: events were recorded, or deliveries created. */
  wake(): void {
    this.wakeDispatch()
    for (const group of GROUPS) this.#claimSoon(group)
  }

  /** Dispatches now, because events were recorded; their deliveries are sent right after that. */
  wakeDispatch(): void {
    this.#dispatch.wake()
  }

  get stats(): DeliveryWorkerStats {
    return { ...this.#counts, outcomes: { ...this.#outcomes }, inFlight: this.#sending.count }
  }

  /** Creates the deliveries of a batch of events. @returns as `PollLoopSpec.runOnce` */
  async dispatchOnce(): Promise<boolean | number> {
    const { events, deliveries, hasMore } = await this.#dispatcher.runOnce()
    this.#counts.events += events
    this.#counts.deliveries += deliveries
    if (events > 0) this.#activeMs = this.#deps.clock.monotonicMs()
    if (deliveries > 0) this.#claimSoon(FIRST_GROUP)
    return hasMore || this.#pauseMs(IDLE_DISPATCH_MS, DISPATCH_INTERVAL_MS)
  }

  /** Claims as many deliveries as there are free slots and begins to send them. @returns as `PollLoopSpec.runOnce` */
  async sendOnce(): Promise<boolean | number> {
    let hasMore = false
    for (const group of GROUPS) {
      this.#inFlight.updateSlow(this.#deps.clock.monotonicMs())
      const limit = this.#claimable(group)
      if (limit <= 0 || this.#stop.signal.aborted) continue
      const found = await this.#claim(group, limit)
      if (found > 0) this.#activeMs = this.#deps.clock.monotonicMs()
      hasMore ||= found === limit
    }
    const isWorthwhile = this.#inFlight.free >= this.#deps.concurrency * CLAIM_SHARE
    return (hasMore && isWorthwhile) || this.#pauseMs(IDLE_SEND_MS)
  }

  /** Takes back leases that expired. @returns as `PollLoopSpec.runOnce` */
  async reapOnce(): Promise<boolean> {
    const expired = await this.#queue.reap()
    this.#counts.leasesExpired += expired
    return expired > 0
  }

  /** Ends the work: claims nothing more, waits for attempts until the deadline, interrupts and releases the rest. */
  async drain(deadlineMs: number): Promise<void> {
    const finished = this.#sending.finish(deadlineMs, () => this.#stop.abort())
    await Promise.all([this.#dispatch[Symbol.asyncDispose](), finished])
    await this.#sending[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.drain(0)
  }

  /** There is, or was a moment ago, something to do. */
  #pauseMs(idleMs: number, activeMs = ACTIVE_INTERVAL_MS): number {
    const isActive = this.#inFlight.count > 0 || this.#deps.clock.monotonicMs() - this.#activeMs < ACTIVE_MS
    return (isActive ? activeMs : idleMs) * (1 + 0.1 * this.#deps.random())
  }

  #group(name: string): GroupState {
    return this.#groups.get(name) ?? { isExhausted: false, claimedMs: 0, additions: 0 }
  }

  /** There may be more in the group than the last claim found, also than one under way finds. */
  #claimSoon(name: string): void {
    const group = this.#group(name)
    group.isExhausted = false
    group.additions++
    this.#sending.wake()
  }

  /** So many deliveries were sent and wait to be settled that no more are claimed. */
  #isSettlingLate(): boolean {
    return this.#sending.count - this.#inFlight.count > this.#deps.concurrency * UNSETTLED_FACTOR
  }

  /** A delivery was settled. */
  #resumeClaims(): void {
    if (!this.#isPausedForSettling || this.#isSettlingLate()) return
    this.#isPausedForSettling = false
    for (const group of GROUPS) this.#claimSoon(group)
  }

  /** How many deliveries of the group to claim now. */
  #claimable(group: string): number {
    const { concurrency } = this.#deps
    const { isExhausted, claimedMs } = this.#group(group)
    this.#isPausedForSettling = this.#isSettlingLate()
    if (this.#isPausedForSettling) return 0
    if (isExhausted && this.#deps.clock.monotonicMs() < claimedMs + ACTIVE_INTERVAL_MS / 2) return 0
    const other = group === FIRST_GROUP ? RETRY_GROUP : FIRST_GROUP
    const share = this.#group(other).isExhausted ? 1 - RESERVED_SHARE : OWN_SHARE
    return Math.min(this.#inFlight.free, Math.ceil(concurrency * share) - this.#inFlight.usedBy(group))
  }

  async #claim(group: string, limit: number): Promise<number> {
    const { holder } = this.#deps
    const requestedMs = this.#deps.clock.monotonicMs()
    const keyLimits = this.#inFlight.limits(requestedMs)
    const state = this.#group(group)
    const { additions } = state
    const claimed = await this.#queue.claim({ group, holder, limit, keyLimits })
    state.isExhausted = claimed.length < limit && additions === state.additions
    state.claimedMs = this.#deps.clock.monotonicMs()
    if (claimed.length === 0) return 0
    for (const delivery of claimed) this.#inFlight.begin(delivery, group, requestedMs)
    const parts = this.#loadParts(claimed)
    const leaseEndsMs = requestedMs + this.#queue.leaseMs
    for (const delivery of claimed) {
      const fields = { delivery_id: delivery.id, webhook_id: delivery.concurrencyKey }
      this.#sending.begin(fields, this.#attempt(delivery, group, parts, leaseEndsMs), () => this.#resumeClaims())
    }
    await parts.catch(() => undefined) // each delivery handles it
    return claimed.length
  }

  /** Webhooks and events of claimed deliveries, in two statements. */
  async #loadParts(
    claimed: readonly Lease<QueuedDelivery>[],
  ): Promise<(delivery: Lease<QueuedDelivery>) => DeliveryParts> {
    const { pool } = this.#deps.database
    const webhooks = new Map<string, DeliveryParts['webhook']>()
    const events = new Map(claimed.map(({ environmentId, eventId }) => [eventId, { environmentId, eventId }]))
    for (const { concurrencyKey } of claimed) webhooks.set(concurrencyKey, this.#webhooks.get(concurrencyKey))
    const unknown = claimed.filter(({ concurrencyKey }) => webhooks.get(concurrencyKey) === undefined)
    const refs = new Map(
      unknown.map(({ environmentId, concurrencyKey: webhookId }) => [webhookId, { environmentId, webhookId }]),
    )
    const [loaded, found] = await Promise.all([
      this.#loadWebhooks([...refs.values()]),
      findEventsByRefs(pool, [...events.values()]),
    ])
    for (const [webhookId, webhook] of loaded) {
      webhooks.set(webhookId, webhook)
      if (webhook === 'unreadable') continue
      this.#webhooks.set(webhookId, webhook)
      if (webhook.state === 'failing') this.#inFlight.probe(webhookId)
    }
    const eventOf = new Map<string, EventRecord>(found.map((event) => [event.id, event]))
    return ({ concurrencyKey, eventId }) => ({ webhook: webhooks.get(concurrencyKey), event: eventOf.get(eventId) })
  }

  /** Webhooks that are not cached. One that cannot be loaded, because a key is missing, holds up none of the others. */
  async #loadWebhooks(refs: readonly WebhookRef[]): Promise<ReadonlyMap<string, LoadedWebhook | 'unreadable'>> {
    const { pool } = this.#deps.database
    if (refs.length === 0) return new Map()
    try {
      return await loadWebhooks(this.#deps, pool, refs)
    } catch (error) {
      if (!(error instanceof Failure) || error.reason !== 'SECRET_UNREADABLE') throw error
      const [ref] = refs
      if (refs.length === 1 && ref !== undefined) {
        this.#deps.logger.error({ webhook_id: ref.webhookId, ...describeError(error) }, 'a webhook cannot be loaded')
        return new Map([[ref.webhookId, 'unreadable']])
      }
      const loaded = await Promise.all(refs.map((each) => this.#loadWebhooks([each])))
      return new Map(loaded.flatMap((each) => [...each]))
    }
  }

  /** Sends a delivery, leaves its slot, and settles it. */
  async #attempt(
    delivery: Lease<QueuedDelivery>,
    group: string,
    parts: Promise<(delivery: Lease<QueuedDelivery>) => DeliveryParts>,
    leaseEndsMs: number,
  ): Promise<void> {
    const settlement = await this.#send(delivery, parts, leaseEndsMs)
    this.#learn(settlement)
    this.#inFlight.end(delivery, hasKeptUp(settlement))
    const isClaimDue = !this.#group(group).isExhausted && this.#inFlight.free >= this.#deps.concurrency * CLAIM_SHARE
    if (isClaimDue) this.#sending.wake()
    try {
      const state = await this.#sending.settle(leaseEndsMs, () => this.#settlements.run(settlement))
      if (state === undefined) this.#counts.leasesLost++
      else this.#outcomes[state]++
    } finally {
      if (this.#inFlight.endLease(delivery, group)) this.#claimSoon(group)
    }
  }

  async #send(
    delivery: Lease<QueuedDelivery>,
    parts: Promise<(delivery: Lease<QueuedDelivery>) => DeliveryParts>,
    leaseEndsMs: number,
  ): Promise<DeliverySettlement> {
    const { signal } = this.#stop
    try {
      const partsOf = await parts
      // A process that was suspended may hold the lease no more when the attempt ends.
      if (signal.aborted || this.#deps.clock.monotonicMs() > leaseEndsMs - ATTEMPT_TIMEOUT_MS) return released(delivery)
      return await sendDelivery(this.#deps, delivery, partsOf(delivery), signal)
    } catch (error) {
      if (!signal.aborted && !isDatabaseUnavailable(error))
        this.#deps.logger.error({ delivery_id: delivery.id, ...describeError(error) }, 'a delivery was not sent')
      const isDefect = !signal.aborted && !isDatabaseUnavailable(error)
      return isDefect ? { delivery, outcome: UNEXPECTED } : released(delivery)
    }
  }

  /** What an attempt says about how to send to its webhook from now on. */
  #learn({ delivery, outcome }: DeliverySettlement): void {
    const nowMs = this.#deps.clock.monotonicMs()
    const afterMs = outcome.kind === 'rate_limited' || outcome.kind === 'retry' ? outcome.afterMs : undefined
    if (afterMs !== undefined) this.#inFlight.pause(delivery.concurrencyKey, nowMs + afterMs, nowMs)
  }
}

const UNEXPECTED: DeliverySettlement['outcome'] = {
  kind: 'retry',
  error: { reason: 'INTERNAL', message: 'the attempt failed unexpectedly' },
}

function released(delivery: Lease<QueuedDelivery>): DeliverySettlement {
  return { delivery, outcome: { kind: 'released' } }
}

/** True: the receiver accepted it; false: it took too long; undefined: neither, or there was no attempt. */
function hasKeptUp({ attempt }: DeliverySettlement): boolean | undefined {
  if (attempt === undefined) return undefined
  if (attempt.errorClass === null) return true
  return attempt.errorClass.startsWith('timeout') ? false : undefined
}
