import { Cron } from 'croner'

const HOUR_MS = 3_600_000
const CAUGHT_UP_MAX = 100
const OPEN_MAX = 2
/** A longer stretch is not counted to its end. */
const COUNTED_MAX = 1_000

/** What one schedule should have done, however many workers fired it and however often that was interrupted. Moments in milliseconds. */
export class ScheduleModel {
  /** Why a tick is skipped, or null, by the tick. */
  readonly ledger = new Map<number, string | null>()
  /** First tick and count of the stretches that were missed, by their last tick. */
  readonly missed = new Map<number, readonly [number, number]>()
  /** From when on the runs that are open may be executed. */
  #open: number[] = []
  #cron: Cron
  #expression: string
  #next: number
  #isPaused = false

  constructor(expression: string, now: number) {
    this.#expression = expression
    this.#cron = cronOf(expression)
    this.#next = this.#after(now)
  }

  fire(now: number): void {
    const due: number[] = []
    for (; this.#next <= now; this.#next = this.#after(this.#next)) due.push(this.#next)
    const caughtUp = due.filter(
      (tick, place) => place === due.length - 1 || (place >= due.length - CAUGHT_UP_MAX && tick >= now - HOUR_MS),
    )
    const late = due.slice(0, due.length - caughtUp.length)
    const [first, last] = [late[0], late.at(-1)]
    if (first !== undefined && last !== undefined) this.missed.set(last, [first, Math.min(late.length, COUNTED_MAX)])
    this.#make(caughtUp, now)
  }

  patch(expression: string, now: number): void {
    if (expression === this.#expression) return
    this.fire(now)
    this.#expression = expression
    this.#cron = cronOf(expression)
    if (!this.#isPaused) this.#next = this.#after(now)
  }

  pause(now: number): void {
    this.fire(now)
    this.#isPaused = true
    this.#next = Number.POSITIVE_INFINITY
  }

  resume(now: number): void {
    if (this.#isPaused) this.#next = this.#after(now)
    this.#isPaused = false
  }

  /** Every run that may be executed by now is over. */
  complete(now: number): void {
    this.#open = this.#open.filter((from) => from > now)
  }

  /** A tick that has its run already, because the clock was put back, makes no other. */
  #make(ticks: readonly number[], now: number): void {
    let open = this.#open.length
    for (const tick of ticks) {
      const reason = open >= OPEN_MAX ? 'overlap' : null
      if (reason === null) open++
      if (this.ledger.has(tick)) continue
      this.ledger.set(tick, reason)
      if (reason === null) this.#open.push(now)
    }
  }

  #after(ms: number): number {
    return this.#cron.nextRun(new Date(ms))?.getTime() ?? Number.POSITIVE_INFINITY
  }
}

function cronOf(expression: string): Cron {
  return new Cron(expression, { utcOffset: 0, mode: '5-or-6-parts' })
}
