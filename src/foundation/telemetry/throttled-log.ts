import type { Logger } from './logger.ts'

interface Repeated {
  count: number
  fields: Readonly<Record<string, unknown>>
}

const INTERVAL_MS = 60_000
/** Keys of which lines are counted apart; further ones share one. */
const KEYS_MAX = 1_000
const SHARED_KEY = ''

/**
 * Rate limit of log lines that others can cause: the first of a key at once, then one line a minute that says how many there were,
 * with the fields of the last.
 */
export class ThrottledLog {
  readonly #logger: Pick<Logger, 'warn'>
  readonly #message: string
  readonly #repeated = new Map<string, Repeated>()

  constructor(logger: Pick<Logger, 'warn'>, message: string) {
    this.#logger = logger
    this.#message = message
  }

  /** @param key what has a line of its own, such as an installation; nothing that a sender chooses */
  warn(key: string, fields: Readonly<Record<string, unknown>>): void {
    const known = this.#repeated.get(key)
    if (known !== undefined) {
      known.count++
      known.fields = fields
      return
    }
    if (this.#repeated.size >= KEYS_MAX && key !== SHARED_KEY) {
      this.warn(SHARED_KEY, fields)
      return
    }
    this.#repeated.set(key, { count: 0, fields })
    this.#write(key, fields, 1)
  }

  #write(key: string, fields: Readonly<Record<string, unknown>>, count: number): void {
    this.#logger.warn({ ...fields, count }, this.#message)
    setTimeout(() => this.#reportRepeated(key), INTERVAL_MS).unref()
  }

  #reportRepeated(key: string): void {
    const { count = 0, fields = {} } = this.#repeated.get(key) ?? {}
    if (count === 0) {
      this.#repeated.delete(key)
      return
    }
    this.#repeated.set(key, { count: 0, fields })
    this.#write(key, fields, count)
  }
}
