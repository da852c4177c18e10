import { setImmediate } from 'node:timers'
import { workOwner } from '../base/request-scope.ts'
import { FairQueue } from './fair-queue.ts'

interface WaitingTurn {
  readonly owner: string
  readonly begin: () => void
}

/** Short pieces of work share a turn, since a turn of its own for each costs a busy server a tenth of its processor time. */
const TURN_MS = 1

/** The event loop is one for the whole process, and so is its queue. */
const waiting = new FairQueue<WaitingTurn>(Number.POSITIVE_INFINITY)
/** When the first piece of work of the present turn was continued; undefined before it. */
let turnBeganAt: number | undefined

/**
 * Yields to the event loop: resolves in a later turn of it. A turn continues the work of owners one after another, and none any more
 * once that has taken a millisecond: long work of many requests delays a short one of another owner by one slice, never by all.
 */
export function yieldToEventLoop(owner = workOwner()): Promise<void> {
  return new Promise((begin) => {
    waiting.push({ owner, begin })
    setImmediate(continueNext)
  })
}

/** Is called once for each that waits. */
function continueNext(): void {
  if (turnBeganAt === undefined) {
    turnBeganAt = performance.now()
    // The first of the next turn: what is called in this one was there before.
    setImmediate(() => {
      turnBeganAt = undefined
    })
  } else if (performance.now() - turnBeganAt > TURN_MS) {
    setImmediate(continueNext)
    return
  }
  waiting.shift()?.begin()
}

/** Longest time for which a loop over many records holds the event loop. */
const SLICE_MS = 5

/** The time that a long loop may take before it yields to the event loop. */
export class TimeSlice {
  #until = performance.now() + SLICE_MS

  get isOver(): boolean {
    return performance.now() > this.#until
  }

  /** Yields; the next slice begins when the loop goes on. */
  async pause(): Promise<void> {
    await yieldToEventLoop()
    this.#until = performance.now() + SLICE_MS
  }
}
