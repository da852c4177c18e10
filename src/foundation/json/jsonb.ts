import { FORBIDDEN_KEYS, JSON_DEPTH_MAX, type Json } from './json.ts'
import { isJsonNumber, JsonNumber } from './json-number.ts'

/** Largest exponent of a number a client may store, either way; `jsonb` writes numbers in full when it is read. */
const EXPONENT_MAX = 400
const EXPONENT = /[eE]([+-]?\d+)$/

/** One reason why a JSON value may not be stored, at `path` (dotted, array indexes in brackets). */
export interface JsonFinding {
  readonly path: string
  readonly rule: 'depth' | 'exponent' | 'finite' | 'forbidden_key' | 'nul' | 'surrogate'
  readonly description: string
}

/** Findings about one value; one of garbage has as many as it has parts. */
const FINDINGS_MAX = 100

/**
 * Finds what a client may not store, the first 100 of it: nesting beyond `JSON_DEPTH_MAX`, NaN or Infinity (a binary client
 * can send them and no later answer could be written), exponents beyond `EXPONENT_MAX`, keys that reach prototypes, NUL
 * (PostgreSQL rejects it), lone surrogates.
 *
 * @param path prefix of the reported paths
 */
export function findUnstorable(value: Json, path: string, depth = 0): JsonFinding[] {
  const findings: JsonFinding[] = []
  collectUnstorable(value, path, depth, findings)
  return findings
}

function collectUnstorable(value: Json, path: string, depth: number, findings: JsonFinding[]): void {
  if (typeof value === 'string') findings.push(...findUnstorableText(value, path))
  else if (isJsonNumber(value)) findings.push(...findUnstorableNumber(value, path))
  else if (typeof value !== 'object' || value === null) return
  else if (depth >= JSON_DEPTH_MAX)
    findings.push({ path, rule: 'depth', description: `is nested deeper than ${JSON_DEPTH_MAX} levels` })
  else if (Array.isArray(value))
    for (const [index, item] of value.entries()) {
      if (findings.length >= FINDINGS_MAX) return
      collectUnstorable(item, `${path}[${index}]`, depth + 1, findings)
    }
  else
    for (const [key, item] of Object.entries(value)) {
      if (findings.length >= FINDINGS_MAX) return
      const at = path === '' ? key : `${path}.${key}`
      if (FORBIDDEN_KEYS.has(key))
        findings.push({ path: at, rule: 'forbidden_key', description: `uses the reserved key ${key}` })
      else {
        findings.push(...findUnstorableText(key, at))
        collectUnstorable(item, at, depth + 1, findings)
      }
    }
}

function findUnstorableNumber(value: number | JsonNumber, path: string): JsonFinding[] {
  if (typeof value === 'number')
    return Number.isFinite(value) ? [] : [{ path, rule: 'finite', description: 'must be a finite number' }]
  const description = `must be a number with an exponent from -${EXPONENT_MAX} to ${EXPONENT_MAX}`
  return isStorableNumber(value) ? [] : [{ path, rule: 'exponent', description }]
}

/** Whether `jsonb` can hold the number without growing out of proportion. */
export function isStorableNumber({ text }: JsonNumber): boolean {
  return Math.abs(Number(EXPONENT.exec(text)?.[1] ?? 0)) <= EXPONENT_MAX
}

/** The two kinds of text that storage or an answer cannot hold. */
export function findUnstorableText(text: string, path: string): JsonFinding[] {
  if (text.includes('\u0000')) return [{ path, rule: 'nul', description: 'must not contain the NUL character' }]
  if (!text.isWellFormed())
    return [{ path, rule: 'surrogate', description: 'must be well-formed Unicode (no lone surrogates)' }]
  return []
}

/** Characters that `jsonb` cannot hold, as JSON escapes them: NUL and lone surrogates. */
const UNSTORABLE_CHARACTER = /\\u(?:0000|d[89a-f][0-9a-f]{2})/i
/** Numbers that are too long for `numeric`. */
const UNSTORABLE_NUMBER = /(?:^|[:,[])-?(?:[\d.]{9999}|\d[\d.]*e[+-]?\d{3})/i
const NUMBER_LENGTH_MAX = 9_999
const REPLACEMENT = '\ufffd'

/**
 * JSON text that `jsonb` accepts. Characters it cannot hold become U+FFFD, numbers it cannot hold become texts: one of them
 * must not prevent a run from completing. `jsonb` keeps every digit of a number and writes it without exponent: `1E5` reads
 * `100000`.
 */
export function toJsonbText(value: Json): string {
  const text = JSON.stringify(value)
  // A false positive, such as an escaped backslash before `u0000`, is left as it is.
  return isUnstorable(text) ? JSON.stringify(replaceUnstorable(value)) : text
}

/** Few texts have an escape, and searching for one first takes a hundredth of the time of the pattern. */
function isUnstorable(text: string): boolean {
  return (text.includes('\\u') && UNSTORABLE_CHARACTER.test(text)) || UNSTORABLE_NUMBER.test(text)
}

function replaceUnstorable(value: Json): Json {
  if (typeof value === 'string') return value.replaceAll('\u0000', REPLACEMENT).toWellFormed()
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof JsonNumber)
    return isStorableNumber(value) && value.text.length < NUMBER_LENGTH_MAX ? value : value.text
  if (Array.isArray(value)) return value.map(replaceUnstorable)
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [replaceUnstorable(key), replaceUnstorable(item)]),
  )
}
