import { createHash } from 'node:crypto'
import { isJsonObject, type Json, type JsonObject } from '../json/json.ts'
import { isJsonNumber } from '../json/json-number.ts'
import { patternsOf } from './encodings.ts'
import { createSecretMatcher, type SecretMatcher } from './matcher.ts'

/** The mask: replaces a secret in texts and in stored configs. Never accepted as the value of a secret. */
export const SECRET_MASK = '***'

/** A text is truncated to this many characters. */
const TEXT_LENGTH_MAX = 256 * 1024
/** Characters scanned in all texts of one JSON value; the rest is masked or left out. A leaf counts as at least `LEAF_COST`. */
const JSON_COST_MAX = 256 * 1024
const LEAF_COST = 16
/** Deeper parts of a JSON value are masked whole. */
const JSON_DEPTH_MAX = 64
/** Length of an error's chain of causes that is copied. */
const CAUSES_MAX = 5

/** Shorter secrets have no placeholder. */
const PLACEHOLDER_SECRET_LENGTH_MIN = 8
/** Hexadecimal digits of a placeholder's digest: 48 bits distinguish the secrets of a call, and are too few to test guesses at a strong secret. */
const DIGEST_LENGTH = 12

/** Lists secrets. Called when the first text is redacted, because most calls see no error. */
export type SecretSource = () => readonly string[]

/**
 * Redacts known secrets in what upstreams and libraries return, before it is stored, sent or logged.
 *
 * A secret is found verbatim, percent-encoded (also `+` for a space), escaped as in JSON, XML and HTML, in several of these
 * layers, as base64 and base64url at any offset, and as hexadecimal; case-insensitively. Secrets of fewer than 4 characters
 * are found as whole words only, base64 and hexadecimal of secrets with 6 bytes or more. The first 64 characters of a secret
 * are compared. Two adjacent secrets may become one mask. A text that ends with 8 or more characters of the beginning of a secret
 * was cut in its middle: they are masked too.
 *
 * A text that is shortened is redacted first, with `redactCut`.
 *
 * Time is linear in the text plus the secrets. The secrets are indexed when the first text is redacted, and again only after
 * they have changed, so that a call without errors costs nothing.
 */
export class Redactor {
  readonly #secrets = new Map<string, SecretSource>()
  #matcher: SecretMatcher | undefined
  #known: ReadonlySet<string> | undefined

  /** @param secrets those that are known from the beginning */
  constructor(secrets: SecretSource) {
    this.setSecrets('initial', secrets)
  }

  /** Sets the secrets of one source; replaces those it had before. */
  setSecrets(source: string, secrets: SecretSource): void {
    this.#secrets.set(source, secrets)
    this.#matcher = undefined
    this.#known = undefined
  }

  /** The text with every secret replaced by the mask, at most 256 Ki characters of it. */
  redactText(text: string): string {
    const matcher = this.#index()
    const scanned = text.length > TEXT_LENGTH_MAX ? text.slice(0, TEXT_LENGTH_MAX) : text
    const secrets = matcher.find(scanned)
    // A secret may begin just before the truncation.
    const shownTo = scanned.length < text.length ? scanned.length - matcher.longest : scanned.length
    if (secrets.length === 0 && shownTo === text.length) return text
    let result = ''
    let from = 0
    for (const { start, end } of secrets) {
      if (start >= shownTo) break
      result += scanned.slice(from, start) + SECRET_MASK
      from = end
    }
    return result + scanned.slice(from, Math.max(from, shownTo)) + (shownTo < text.length ? '…' : '')
  }

  /** The redacted text, at most `lengthMax` characters of it with a mark where it was cut. */
  redactCut(text: string, lengthMax: number): string {
    const redacted = this.redactText(text)
    return redacted.length > lengthMax ? `${redacted.slice(0, lengthMax - 1)}…` : redacted
  }

  /**
   * The placeholder of a text that is itself one of the secrets, of 8 characters or more: the mask and a digest, by which
   * `resolvePlaceholder` finds it. Undefined for other texts. Much cheaper than `redactText`.
   */
  placeholderFor(text: string): string | undefined {
    return text.length >= PLACEHOLDER_SECRET_LENGTH_MIN && this.#redactMap().has(text)
      ? SECRET_MASK + digestOf(text)
      : undefined
  }

  /** The secret of a placeholder; undefined when it is none of the current ones. */
  resolvePlaceholder(placeholder: string): string | undefined {
    return [...this.#redactMap()].find((text) => SECRET_MASK + digestOf(text) === placeholder)
  }

  /** The value with every text, number and key in it redacted; truncated at the limits of size and depth. */
  redactJson(value: Json): Json {
    return this.#value(value, 0, { spent: 0 })
  }

  /** A JSON object with every text, number and key in it redacted, without a limit of size. */
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
