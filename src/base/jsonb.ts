import { isStorableNumber, type Json } from './json.ts'
import { JsonNumber } from './json-number.ts'

/** What PostgreSQL cannot hold in `jsonb`, as JSON spells it: NUL, half a character. */
const UNSTORABLE_CHARACTER = /\\u(?:0000|d[89a-f][0-9a-f]{2})/i
/** And numbers out of all proportion. */
const UNSTORABLE_NUMBER = /(?:^|[:,[])-?(?:[\d.]{9999}|\d[\d.]*e[+-]?\d{3})/i
const NUMBER_LENGTH_MAX = 9_999
const REPLACEMENT = '\ufffd'

/**
 * JSON text that `jsonb` takes. Characters it cannot hold become U+FFFD and numbers it cannot hold texts: one of them must not
 * keep a run from ending. `jsonb` keeps every digit of a number and writes it without exponent: `1E5` reads `100000`.
 */
export function toJsonbText(value: Json): string {
  const text = JSON.stringify(value)
  // A text that only looks like it, such as a backslash before `u0000`, is looked at and left alone.
  return isUnstorable(text) ? JSON.stringify(replaceUnstorable(value)) : text
}

/** Hardly any text has an escape, and looking for one first takes a hundredth of the time of the pattern. */
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
