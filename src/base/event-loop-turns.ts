import { setImmediate } from 'node:timers'
import { FairQueue } from './fair-queue.ts'
import { workOwner } from './request-scope.ts'

interface WaitingTurn {
  readonly owner: string
  readonly begin: () => void
}

/** The event loop is one for the whole process, and so is its queue. */
const waiting = new FairQueue<WaitingTurn>(Number.POSITIVE_INFINITY)
let isScheduled = false

/**
 * Yields to the event loop: resolves in a later turn of it. Each turn continues one piece of work, of the next owner, so that
 * long work of many requests delays a short one of another owner by one slice, and never by all of them.
 */
export function yieldToEventLoop(owner = workOwner()): Promise<void> {
  return new Promise((begin) => {
    waiting.push({ owner, begin })
    scheduleTurn()
  })
}

function scheduleTurn(): void {
  if (isScheduled) return
  isScheduled = true
  setImmediate(() => {
    isScheduled = false
    waiting.shift()?.begin()
    if (waiting.size > 0) scheduleTurn()
  })
}
