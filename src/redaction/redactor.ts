import { createHash } from 'node:crypto'
import { isJsonNumber, isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import { patternsOf } from './encodings.ts'
import { createSecretMatcher, type SecretMatcher } from './matcher.ts'

/** What stands where a secret was, or is stored. It is never accepted as a value. */
export const SECRET_MASK = '***'

/** A text is cut to this many characters. */
const TEXT_LENGTH_MAX = 256 * 1024
/** Characters looked at in all texts of one JSON value; what comes after them is left out. A value costs at least `LEAF_COST`. */
const JSON_COST_MAX = 256 * 1024
const LEAF_COST = 16
/** Deeper parts of a JSON value are masked whole. */
const JSON_DEPTH_MAX = 64
/** Causes of an error that are kept. */
const CAUSES_MAX = 5

const PLACEHOLDER_SECRET_LENGTH_MIN = 8
/** 48 bits tell the secrets of a call apart, and say too little to test guesses at a good secret. */
const DIGEST_LENGTH = 12

/** Asked for when a text is looked at, because most calls meet no error. */
export type SecretSource = () => readonly string[]

/**
 * Takes known secrets out of what third parties and libraries say, before it is stored, sent or logged.
 *
 * A secret is found as it is, percent-encoded (also `+` for a blank), escaped as in JSON, XML and HTML, several of these over
 * one another, as base64 and base64url at any offset, and as hexadecimal; in any case of letters. Values of fewer than
 * 4 characters are found only where they stand alone, base64 and hexadecimal only of values with 6 bytes or more. Of a longer
 * value its first 64 characters are compared. Two secrets beside one another may become one mask.
 *
 * Time is linear in the text plus the secrets. The secrets are indexed when a text is first looked at, and again only after
 * they have changed, so that a call which meets no error pays nothing.
 */
export class Redactor {
  readonly #secrets = new Map<string, SecretSource>()
  #matcher: SecretMatcher | undefined
  #known: ReadonlySet<string> | undefined

  /** @param secrets that stay */
  constructor(secrets: SecretSource) {
    this.setSecrets('initial', secrets)
  }

  /** Sets the secrets that come from one source; what it contributed before is forgotten. */
  setSecrets(source: string, secrets: SecretSource): void {
    this.#secrets.set(source, secrets)
    this.#matcher = undefined
    this.#known = undefined
  }

  /** The text with every secret replaced by the mask, at most 256 Ki characters of it. */
  redactText(text: string): string {
    const matcher = this.#index()
    const looked = text.length > TEXT_LENGTH_MAX ? text.slice(0, TEXT_LENGTH_MAX) : text
    const hidden = matcher.find(looked)
    // A secret may begin just before the cut.
    const shownTo = looked.length < text.length ? looked.length - matcher.longest : looked.length
    if (hidden.length === 0 && shownTo === text.length) return text
    let result = ''
    let from = 0
    for (const { start, end } of hidden) {
      if (start >= shownTo) break
      result += looked.slice(from, start) + SECRET_MASK
      from = end
    }
    return result + looked.slice(from, Math.max(from, shownTo)) + (shownTo < text.length ? '…' : '')
  }

  /**
   * What stands for a text that is itself one of the secrets, of 8 characters or more: the mask and a digest, by which
   * `reveal` finds it. Undefined for other texts; much cheaper than looking for secrets in a text.
   */
  placeholderFor(text: string): string | undefined {
    return text.length >= PLACEHOLDER_SECRET_LENGTH_MIN && this.#redactMap().has(text)
      ? SECRET_MASK + digestOf(text)
      : undefined
  }

  /** The secret that a reference stands for; undefined when it is none of the present ones. */
  resolvePlaceholder(reference: string): string | undefined {
    return [...this.#redactMap()].find((text) => SECRET_MASK + digestOf(text) === reference)
  }

  /** The value with every text, number and key in it redacted. Very large or very deep values lose what is beyond the limits. */
  redactJson(value: Json): Json {
    return this.#value(value, 0, { spent: 0 })
  }

  /** A JSON object of whatever size with every text, number and key in it redacted. */
  redactObject(value: JsonObject): JsonObject {
    const redacted = this.#value(value, 0, { spent: Number.NEGATIVE_INFINITY })
    return isJsonObject(redacted) ? redacted : {}
  }

  /** The values of a map, each redacted. */
  redactMap(values: Readonly<Record<string, string>>): Record<string, string> {
    return Object.fromEntries(
      Object.entries(values).map(([name, value]) => [this.redactText(name), this.redactText(value)]),
    )
  }

  /** A copy of an error for the log: kind, message, stack and causes, redacted. */
  redactError(error: unknown, depth = 0): unknown {
    if (!(error instanceof Error)) return error === undefined ? undefined : this.redactText(String(error))
    const causes =
      error.cause === undefined || depth >= CAUSES_MAX ? {} : { cause: this.redactError(error.cause, depth + 1) }
    const copy = new Error(this.redactText(error.message), causes)
    copy.name = error.name
    copy.stack = error.stack === undefined ? '' : this.redactText(error.stack)
    return copy
  }

  #value(value: Json, depth: number, budget: { spent: number }): Json {
    if (typeof value === 'string') return this.#leaf(value, budget)
    if (isJsonNumber(value)) {
      const text = String(value)
      return this.#leaf(text, budget) === text ? value : SECRET_MASK
    }
    if (typeof value !== 'object' || value === null) return value
    if (depth >= JSON_DEPTH_MAX) return SECRET_MASK
    budget.spent += LEAF_COST
    if (Array.isArray(value)) {
      const items: Json[] = []
      for (const item of value as readonly Json[]) {
        items.push(this.#value(item, depth + 1, budget))
        // All further items would be masked.
        if (budget.spent > JSON_COST_MAX) break
      }
      return items
    }
    if (!isJsonObject(value)) return value
    const entries: [string, Json][] = []
    for (const key of Object.keys(value)) {
      entries.push([this.#leaf(key, budget), this.#value(value[key] ?? null, depth + 1, budget)])
      // All further keys would be masked, and so be one.
      if (budget.spent > JSON_COST_MAX) break
    }
    return Object.fromEntries(entries)
  }

  #leaf(text: string, budget: { spent: number }): string {
    budget.spent += text.length + LEAF_COST
    return budget.spent > JSON_COST_MAX ? SECRET_MASK : this.redactText(text)
  }

  #redactMap(): ReadonlySet<string> {
    this.#known ??= new Set([...this.#secrets.values()].flatMap((list) => list()))
    return this.#known
  }

  #index(): SecretMatcher {
    this.#matcher ??= createSecretMatcher([...this.#redactMap()].flatMap(patternsOf))
    return this.#matcher
  }
}

function digestOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex').slice(0, DIGEST_LENGTH)
}
