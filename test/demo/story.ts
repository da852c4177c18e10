import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 50
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Why a demonstration ended before its end; `exitCode` is what the process answers with. */
export class StoryEnded extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}

/**
 * The one thing everything waits on: what is awaited comes true, or the story ends early because time is up, somebody
 * pressed Ctrl-C or something broke.
 */
export class Story implements Disposable {
  readonly #end = new AbortController()
  readonly #timer: NodeJS.Timeout
  readonly #waiting = new Set<() => void>()

  constructor(limitMs: number) {
    this.#timer = setTimeout(() => this.end(`the time limit of ${limitMs / 1000} s is reached`), limitMs)
    for (const signal of SIGNALS) process.on(signal, this.#interrupt)
  }

  /** Ends the story early; the first reason counts. */
  end(reason: string, exitCode = 1): void {
    this.#end.abort(new StoryEnded(reason, exitCode))
  }

  /** Why the story ended early; undefined while it goes on. */
  get ended(): StoryEnded | undefined {
    return this.#end.signal.reason
  }

  /** Fails when the story ended: between two steps, so that none is begun in vain. */
  check(): void {
    if (this.ended !== undefined) throw this.ended
  }

  /** Says that something happened which somebody may wait for. */
  changed(): void {
    for (const look of [...this.#waiting]) look()
  }

  /** Resolves with what `find` finds, looking again whenever something happened. */
  async until<Found>(what: string, find: () => Found | undefined): Promise<Found> {
    const { promise, resolve, reject } = Promise.withResolvers<Found>()
    const look = (): void => {
      const found = find()
      if (this.ended !== undefined) reject(endedWaitingFor(this.ended, what))
      else if (found !== undefined) resolve(found)
    }
    this.#waiting.add(look)
    this.#end.signal.addEventListener('abort', look)
    try {
      look()
      return await promise
    } finally {
      this.#waiting.delete(look)
      this.#end.signal.removeEventListener('abort', look)
    }
  }

  /** Like `until`, for what only asking tells. */
  async untilAnswer<Found>(what: string, ask: () => Promise<Found | undefined>): Promise<Found> {
    for (;;) {
      if (this.ended !== undefined) throw endedWaitingFor(this.ended, what)
      const found = await ask()
      if (found !== undefined) return found
      await delay(POLL_MS)
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    for (const signal of SIGNALS) process.off(signal, this.#interrupt)
  }

  #interrupt = (signal: NodeJS.Signals): void => {
    if (this.ended === undefined) process.stdout.write('\n   stopping …\n')
    this.end(`interrupted by ${signal}`, 130)
  }
}

function endedWaitingFor({ message, exitCode }: StoryEnded, what: string): StoryEnded {
  return new StoryEnded(`${message}, while waiting for ${what}`, exitCode)
}
