import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 50
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Why the demo was aborted, and the exit code of the process. */
export class DemoAborted extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}

/**
 * Waits for conditions under one time limit. Every wait rejects when the demo is aborted: by the time limit, a signal or an
 * unexpected event.
 */
export class DemoSession implements Disposable {
  readonly #abort = new AbortController()
  readonly #timer: NodeJS.Timeout
  readonly #waiting = new Set<() => void>()

  constructor(limitMs: number) {
    this.#timer = setTimeout(() => this.abort(`the time limit of ${limitMs / 1000} s is reached`), limitMs)
    for (const signal of SIGNALS) process.on(signal, this.#interrupt)
  }

  /** Aborts the demo; the first reason counts. */
  abort(reason: string, exitCode = 1): void {
    this.#abort.abort(new DemoAborted(reason, exitCode))
  }

  /** Why the demo was aborted; undefined while it runs. */
  get aborted(): DemoAborted | undefined {
    return this.#abort.signal.reason
  }

  /** Called between two steps. */
  throwIfAborted(): void {
    if (this.aborted !== undefined) throw this.aborted
  }

  /** Makes every `waitFor` check its condition again. */
  notify(): void {
    for (const check of [...this.#waiting]) check()
  }

  /** Resolves with the result of `find` once it is defined; checks after every `notify`. */
  async waitFor<Found>(what: string, find: () => Found | undefined): Promise<Found> {
    const { promise, resolve, reject } = Promise.withResolvers<Found>()
    const check = (): void => {
      const found = find()
      if (this.aborted !== undefined) reject(abortedWaitingFor(this.aborted, what))
      else if (found !== undefined) resolve(found)
    }
    this.#waiting.add(check)
    this.#abort.signal.addEventListener('abort', check)
    try {
      check()
      return await promise
    } finally {
      this.#waiting.delete(check)
      this.#abort.signal.removeEventListener('abort', check)
    }
  }

  /** Like `waitFor`, by polling a call. */
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
