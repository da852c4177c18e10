import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 50
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Why a demonstration ended before its end; `exitCode` is what the process answers with. */
export class DemoAborted extends Error {
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
export class DemoSession implements Disposable {
  readonly #abort = new AbortController()
  readonly #timer: NodeJS.Timeout
  readonly #waiting = new Set<() => void>()

  constructor(limitMs: number) {
    this.#timer = setTimeout(() => this.abort(`the time limit of ${limitMs / 1000} s is reached`), limitMs)
    for (const signal of SIGNALS) process.on(signal, this.#interrupt)
  }

  /** Ends the story early; the first reason counts. */
  abort(reason: string, exitCode = 1): void {
    this.#abort.abort(new DemoAborted(reason, exitCode))
  }

  /** Why the story ended early; undefined while it goes on. */
  get aborted(): DemoAborted | undefined {
    return this.#abort.signal.reason
  }

  /** Fails when the story ended: between two steps, so that none is begun in vain. */
  throwIfAborted(): void {
    if (this.aborted !== undefined) throw this.aborted
  }

  /** Says that something happened which somebody may wait for. */
  notify(): void {
    for (const look of [...this.#waiting]) look()
  }

  /** Resolves with what `find` finds, looking again whenever something happened. */
  async waitFor<Found>(what: string, find: () => Found | undefined): Promise<Found> {
    const { promise, resolve, reject } = Promise.withResolvers<Found>()
    const look = (): void => {
      const found = find()
      if (this.aborted !== undefined) reject(abortedWaitingFor(this.aborted, what))
      else if (found !== undefined) resolve(found)
    }
    this.#waiting.add(look)
    this.#abort.signal.addEventListener('abort', look)
    try {
      look()
      return await promise
    } finally {
      this.#waiting.delete(look)
      this.#abort.signal.removeEventListener('abort', look)
    }
  }

  /** Like `until`, for what only asking tells. */
  async pollFor<Found>(what: string, ask: () => Promise<Found | undefined>): Promise<Found> {
    for (;;) {
      if (this.aborted !== undefined) throw abortedWaitingFor(this.aborted, what)
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
    if (this.aborted === undefined) process.stdout.write('\n   stopping …\n')
    this.abort(`interrupted by ${signal}`, 130)
  }
}

function abortedWaitingFor({ message, exitCode }: DemoAborted, what: string): DemoAborted {
  return new DemoAborted(`${message}, while waiting for ${what}`, exitCode)
}
