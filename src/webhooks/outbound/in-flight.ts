import { HOUR_MS } from '../../foundation/base/index.ts'
import type { KeyLimit, Lease } from '../../foundation/queue/index.ts'
import type { QueuedDelivery } from './delivery-queue.ts'
import { IN_FLIGHT_PER_WEBHOOK_MAX } from './sql/queue.ts'

/** An attempt that takes longer leaves its slot to others: its receiver hangs. */
const SLOW_AFTER_MS = 2_000
/** All attempts of a process, slow ones included, as a multiple of its slots. */
const OVERALL_FACTOR = 4
const SLOW_HALVINGS_MAX = 10
/** Longest time for which a process sends nothing to a webhook, because its receiver or its rate limit asks to wait. */
const PAUSE_MS_MAX = 60_000

/** What is known of a webhook is forgotten when no attempt began for so long: it was disabled or deleted, or has no events. */
const FORGET_MS = HOUR_MS

/** An attempt under way. */
interface Attempt {
  readonly webhookId: string
  readonly group: string
  readonly startedMs: number
}

/** Leases of one webhook from one queue group: attempts under way, and those that wait to be settled. */
interface Share {
  leases: number
  /** It had as many as it may have: there may be more in the queue. */
  isFull: boolean
}

/** What this process knows of a webhook. */
interface SendingState {
  /** Deliveries that it may be sent at once from each queue group. */
  limit: number
  slow: number
  pausedUntilMs: number
  /** When its last attempt began. */
  usedMs: number
}

/**
 * The slots of a process, and how many of them each webhook may use: additive increase, multiplicative decrease by how its
 * receiver answers.
 *
 * A slot is for an attempt that is answered in time. One that is not within `SLOW_AFTER_MS` no longer counts, so that receivers
 * that hang use no slots of others; their number is bounded by `OVERALL_FACTOR` and by one per webhook.
 */
export class InFlight {
  readonly #slots: number
  /** In the order in which they began. */
  readonly #prompt = new Map<string, Attempt>()
  readonly #slow = new Map<string, Attempt>()
  /** Only webhooks that may use other than the usual number of slots. */
  readonly #states = new Map<string, SendingState>()
  /** Attempts in slots, by queue group. */
  readonly #promptOf = new Map<string, number>()
  /** By queue group and webhook. */
  readonly #shares = new Map<string, Share>()
  /** When an attempt last began. */
  #nowMs = 0

  /** @param slots attempts at once at most, not counting slow ones */
  constructor(slots: number) {
    this.#slots = slots
  }

  get count(): number {
    return this.#prompt.size + this.#slow.size
  }

  /** Slots that are free. */
  get free(): number {
    return Math.max(0, Math.min(this.#slots - this.#prompt.size, this.#slots * OVERALL_FACTOR - this.count))
  }

  /** Slots that a queue group uses. */
  usedBy(group: string): number {
    return this.#promptOf.get(group) ?? 0
  }

  begin({ leaseId, concurrencyKey: webhookId }: Lease<QueuedDelivery>, group: string, nowMs: number): void {
    this.#nowMs = nowMs
    const state = this.#states.get(webhookId)
    if (state !== undefined) state.usedMs = nowMs
    this.#prompt.set(leaseId, { webhookId, group, startedMs: nowMs })
    this.#promptOf.set(group, this.usedBy(group) + 1)
    const share = this.#shares.get(`${group}/${webhookId}`) ?? { leases: 0, isFull: false }
    share.leases++
    share.isFull ||= share.leases >= this.#limitOf(webhookId)
    this.#shares.set(`${group}/${webhookId}`, share)
  }

  /**
   * An attempt ended: it leaves its slot.
   *
   * @param hasKeptUp true: the receiver accepted it; false: it took too long; undefined: neither
   */
  end({ leaseId }: Lease<QueuedDelivery>, hasKeptUp: boolean | undefined): void {
    const attempt = this.#prompt.get(leaseId) ?? this.#slow.get(leaseId)
    if (attempt === undefined) return
    const { webhookId, group } = attempt
    if (this.#prompt.delete(leaseId)) this.#promptOf.set(group, this.usedBy(group) - 1)
    const state = this.#states.get(webhookId)
    if (this.#slow.delete(leaseId) && state !== undefined) state.slow--
    if (hasKeptUp === false || (hasKeptUp === true && state !== undefined)) this.#adjust(webhookId, hasKeptUp)
  }

  /**
   * The lease of an attempt ended, some time after the attempt.
   *
   * @returns whether its webhook had all leases it may, and now has half of them: there may be more for it in the queue
   */
  endLease({ concurrencyKey: webhookId }: Lease<QueuedDelivery>, group: string): boolean {
    const key = `${group}/${webhookId}`
    const share = this.#shares.get(key)
    if (share === undefined) return false
    share.leases--
    if (share.leases === 0) this.#shares.delete(key)
    const hasRoom = share.isFull && share.leases <= this.#limitOf(webhookId) / 2
    if (hasRoom) share.isFull = false
    return hasRoom
  }

  /** Moves attempts that take too long out of the slots. */
  updateSlow(nowMs: number): void {
    for (const [leaseId, attempt] of this.#prompt) {
      if (attempt.startedMs > nowMs - SLOW_AFTER_MS) break
      this.#prompt.delete(leaseId)
      this.#promptOf.set(attempt.group, this.usedBy(attempt.group) - 1)
      this.#slow.set(leaseId, attempt)
      this.#stateOf(attempt.webhookId).slow++
    }
  }

  /** Sends a webhook one delivery at a time, until one is accepted. */
  probe(webhookId: string): void {
    this.#stateOf(webhookId).limit = 1
  }

  /** Sends a webhook nothing for a while. */
  pause(webhookId: string, untilMs: number, nowMs: number): void {
    this.#nowMs = Math.max(this.#nowMs, nowMs)
    const state = this.#stateOf(webhookId)
    state.pausedUntilMs = Math.max(state.pausedUntilMs, Math.min(untilMs, nowMs + PAUSE_MS_MAX))
  }

  /** The webhooks that may use other than `IN_FLIGHT_PER_WEBHOOK_MAX` slots. */
  limits(nowMs: number): readonly KeyLimit[] {
    const limits: KeyLimit[] = []
    for (const [key, { limit, slow, pausedUntilMs, usedMs }] of this.#states) {
      const isForgotten = limit === IN_FLIGHT_PER_WEBHOOK_MAX || usedMs <= nowMs - FORGET_MS
      if (pausedUntilMs > nowMs) limits.push({ key, leases: 0 })
      else if (isForgotten && slow === 0) this.#states.delete(key)
      else limits.push({ key, leases: this.#limitOf(key) })
    }
    return limits
  }

  #limitOf(webhookId: string): number {
    const state = this.#states.get(webhookId)
    if (state === undefined) return IN_FLIGHT_PER_WEBHOOK_MAX
    // Each attempt that hangs halves what is left: one slow response does not throttle, a receiver that is down is only probed.
    return Math.max(1, state.limit >> Math.min(state.slow, SLOW_HALVINGS_MAX))
  }

  #adjust(webhookId: string, hasKeptUp: boolean): void {
    const state = this.#stateOf(webhookId)
    state.limit = hasKeptUp
      ? Math.min(IN_FLIGHT_PER_WEBHOOK_MAX, state.limit + 1)
      : Math.max(1, Math.floor(state.limit / 2))
  }

  #stateOf(webhookId: string): SendingState {
    const known = this.#states.get(webhookId)
    if (known !== undefined) return known
    const state = { limit: IN_FLIGHT_PER_WEBHOOK_MAX, slow: 0, pausedUntilMs: 0, usedMs: this.#nowMs }
    this.#states.set(webhookId, state)
    return state
  }
}
