import type { Clock } from '../base/clock.ts'
import { Failure } from '../base/errors.ts'
import type { RequestScope, RequestSlot } from '../base/request-scope.ts'
import { yieldToEventLoop } from './event-loop-turns.ts'
import { FairQueue } from './fair-queue.ts'

/** The sizes of `FairSlots`. */
export interface FairSlotLimits {
  /** Work of all owners under way at the same time; one owner alone has half of it. */
  readonly slotsMax: number
  /** Most work of one owner that waits. */
  readonly waitingPerOwnerMax: number
  /** Work that has waited longer is rejected instead of begun. */
  readonly waitMsMax: number
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** What there is too much of, at the beginning of the message of RATE_LIMITED. */
  readonly rejection: string
}

/** The request that work is for. */
interface SlotRequest extends Pick<RequestScope, 'slot'> {
  /**
   * Calls back when the request is interrupted, at once when it was: work that still waits is dropped. With an
   * `AbortSignal` for each request, waiting took a quarter longer.
   *
   * @returns removes the listener
   */
  onInterrupt(listener: () => void): () => void
}

interface WaitingWork {
  readonly owner: string
  readonly sinceMs: number
  readonly begin: () => void
  readonly reject: (failure: Failure) => void
}

const RETRY_AFTER_SECONDS = 2

/**
 * Slots for work of requests, shared fairly between owners: as in `FairSemaphore` an owner holds no more slots than are free,
 * so that a new owner finds one; further work waits, and owners take turns.
 *
 * Work that waits for something outside of the process leaves its slot meanwhile (`releaseSlotWhile`) and has it again afterwards,
 * also beyond the share of its owner: it may hold what other work waits for, so it must not queue. An owner with so much of it
 * begins nothing new, and continues one piece of work per turn of the event loop.
 */
export class FairSlots {
  readonly #limits: FairSlotLimits
  readonly #held = new Map<string, number>()
  readonly #waiting: FairQueue<WaitingWork>
  readonly #countedMax: number
  /** Slots of all owners, of each no more than the share of one that is alone. */
  #taken = 0

  constructor(limits: FairSlotLimits) {
    this.#limits = limits
    this.#waiting = new FairQueue(limits.waitingPerOwnerMax)
    this.#countedMax = Math.ceil(limits.slotsMax / 2)
  }

  /** Work that waits, of all owners. */
  get waiting(): number {
    return this.#waiting.size
  }

  /**
   * Runs the work of a request in a slot; work inside of other work is in the slot of that.
   *
   * @throws Failure RATE_LIMITED when too much of the owner waits, or this work waited too long; CANCELLED; errors of the work
   */
  async run<Result>(owner: string, request: SlotRequest, work: () => Promise<Result>): Promise<Result> {
    if (request.slot !== undefined) return await work()
    if (this.#hasShareLeft(owner)) this.#hold(owner, 1)
    else await this.#wait(owner, request)
    const slot = new Slot(owner, (change) => this.#hold(owner, change))
    request.slot = slot
    try {
      return await work()
    } finally {
      slot.end()
    }
  }

  /** Holds a slot for what is left of a request after its work, also beyond the share of its owner. @returns releases it */
  keep(owner: string): () => void {
    this.#hold(owner, 1)
    return () => void this.#hold(owner, -1)
  }

  async #wait(owner: string, request: SlotRequest): Promise<void> {
    if (this.#waiting.isFull(owner)) throw this.#tooMuch('as many requests as may wait here are waiting already')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const sinceMs = this.#limits.clock.monotonicMs()
    const waiting: WaitingWork = { owner, sinceMs, begin: resolve, reject }
    this.#waiting.push(waiting)
    const removeListener = request.onInterrupt(() => {
      if (this.#waiting.remove(waiting)) reject(new Failure('CANCELLED', 'the request has ended'))
    })
    try {
      await promise
    } finally {
      removeListener()
    }
    // Work that computes without a pause would else begin one after the other in one turn.
    await yieldToEventLoop(owner)
  }

  #hasShareLeft(owner: string): boolean {
    return (this.#held.get(owner) ?? 0) < this.#limits.slotsMax - this.#taken
  }

  /** @returns whether the owner has more than its share */
  #hold(owner: string, change: 1 | -1): boolean {
    const before = this.#held.get(owner) ?? 0
    const after = before + change
    if (after > 0) this.#held.set(owner, after)
    else this.#held.delete(owner)
    this.#taken += Math.min(after, this.#countedMax) - Math.min(before, this.#countedMax)
    if (change < 0 && this.#waiting.size > 0) this.#beginWaiting()
    return after > this.#countedMax
  }

  #beginWaiting(): void {
    for (;;) {
      const next = this.#waiting.shift((owner) => this.#hasShareLeft(owner))
      if (next === undefined) return
      if (this.#limits.clock.monotonicMs() - next.sinceMs > this.#limits.waitMsMax)
        next.reject(this.#tooMuch('this request waited too long for its turn behind the others'))
      else {
        this.#hold(next.owner, 1)
        next.begin()
      }
    }
  }

  #tooMuch(why: string): Failure {
    const message = `${this.#limits.rejection}: ${why}`
    return new Failure('RATE_LIMITED', message, { retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
}

/** The slot of one piece of work. */
class Slot implements RequestSlot {
  readonly owner: string
  readonly #hold: (change: 1 | -1) => boolean
  /** Waits under way; the slot is held while there is none. */
  #waits = 0
  #hasEnded = false

  constructor(owner: string, hold: (change: 1 | -1) => boolean) {
    this.owner = owner
    this.#hold = hold
  }

  async releaseWhile<Result>(wait: () => Promise<Result>): Promise<Result> {
    if (this.#waits++ === 0 && !this.#hasEnded) this.#hold(-1)
    try {
      return await wait()
    } finally {
      if (--this.#waits === 0 && !this.#hasEnded && this.#hold(1)) await yieldToEventLoop()
    }
  }

  end(): void {
    this.#hasEnded = true
    if (this.#waits === 0) this.#hold(-1)
  }
}
