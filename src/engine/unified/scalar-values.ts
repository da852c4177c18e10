import { isJsonNumber, type Json, JsonNumber, toDouble } from '../../foundation/json/index.ts'
import { dateOnly, isoDate } from '../expressions/sandbox/dates.ts'
import { decimal } from '../expressions/sandbox/decimals.ts'

/** Longest text that is read as a number, characters. */
const NUMBER_LENGTH_MAX = 128
const WITH_FRACTION = /^\d{4}-\d\d-\d\d.{1,12}\.(\d{1,9})/
/** As Ruby prints times. */
const NAMED_UTC = /^(\d.{0,40}?) ?(?:UTC|GMT)$/

/**
 * A time in UTC (RFC 3339), of everything that `$isoDate` reads. Fractions of a second stay as they are written; without one
 * there is none, nor of zeros where the time is not in UTC yet. `undefined` when it is no time.
 */
export function toDateTime(value: Json): string | undefined {
  if (typeof value !== 'string') return isJsonNumber(value) ? shortened(isoDate(toDouble(value))) : undefined
  if (isUtcTime(value)) return isRealTime(value) ? value : undefined
  const iso = isoDate(value.length > NUMBER_LENGTH_MAX ? undefined : value.replace(NAMED_UTC, '$1Z'))
  const fraction = WITH_FRACTION.exec(value)?.[1]
  return fraction === undefined || Number(fraction) === 0 ? shortened(iso) : iso?.replace(/\.\d{3}Z$/, `.${fraction}Z`)
}

function shortened(iso: string | undefined): string | undefined {
  return iso?.replace('.000Z', 'Z')
}

/** A date as `YYYY-MM-DD`, of everything that `$dateOnly` reads. `undefined` when it is none. */
export function toDateOnly(value: Json): string | undefined {
  return dateOnly(toDouble(value))
}

const FORM = 'dddd-dd-ddTdd:dd:dd'
const FORM_LENGTH = FORM.length
const FRACTION_LENGTH_MAX = '.123456789'.length
const DIGIT = 'd'.charCodeAt(0)
const DOT = '.'.charCodeAt(0)
const ZED = 'Z'.charCodeAt(0)

/** `YYYY-MM-DDTHH:MM:SS` with up to nine digits of a fraction, and `Z`, by its characters: what most APIs send. */
function isUtcTime(text: string): boolean {
  const end = text.length - 1
  if (end < FORM_LENGTH || end > FORM_LENGTH + FRACTION_LENGTH_MAX || text.charCodeAt(end) !== ZED) return false
  for (let at = 0; at < FORM_LENGTH; at++) {
    const unit = FORM.charCodeAt(at)
    if (unit === DIGIT ? !isDigit(text.charCodeAt(at)) : text.charCodeAt(at) !== unit) return false
  }
  if (end === FORM_LENGTH) return true
  if (text.charCodeAt(FORM_LENGTH) !== DOT || end === FORM_LENGTH + 1) return false
  for (let at = FORM_LENGTH + 1; at < end; at++) if (!isDigit(text.charCodeAt(at))) return false
  return true
}

function isDigit(unit: number): boolean {
  return unit >= ZERO && unit < ZERO + 10
}

const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Whether day and time of `YYYY-MM-DDTHH:MM:SS…` exist: without a `Date`, which takes 1 µs and February 30 for March 1. */
function isRealTime(text: string): boolean {
  const [year, month, day] = [digitsAt(text, 0) * 100 + digitsAt(text, 2), digitsAt(text, 5), digitsAt(text, 8)]
  const isLeap = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  const isDay = year >= 1 && day >= 1 && day <= (isLeap ? 29 : (DAYS[month - 1] ?? 0))
  return isDay && digitsAt(text, 11) <= 23 && digitsAt(text, 14) <= 59 && digitsAt(text, 17) <= 59
}

const ZERO = 48

/** The number of two digits. */
function digitsAt(text: string, at: number): number {
  return (text.charCodeAt(at) - ZERO) * 10 + text.charCodeAt(at + 1) - ZERO
}

const DECIMAL = /^[+-]?\d{1,60}(?:\.\d{1,60})?(?:[eE][+-]?\d{1,2})?$/

/** A decimal number as text without exponent, as `$decimal` writes it. `undefined` when it is none. */
export function toDecimal(value: Json): string | undefined {
  const text = typeof value === 'string' ? value : isJsonNumber(value) ? String(value) : ''
  if (text.length > NUMBER_LENGTH_MAX) return undefined
  return DECIMAL.test(text.trim()) ? decimal(text) : undefined
}

const NUMBER = /^-?(?:0|[1-9]\d{0,40})(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3})?$/

/** A number: as it is, or of a text that is one. `undefined` when it is none, or beyond the range of a double. */
export function toNumber(value: Json): number | JsonNumber | undefined {
  if (value instanceof JsonNumber) return Number.isFinite(value.valueOf()) ? value : undefined
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value !== 'string') return undefined
  const text = value.length > NUMBER_LENGTH_MAX ? '' : value.trim()
  if (!NUMBER.test(text)) return undefined
  const double = Number(text)
  return Number.isFinite(double) ? double : undefined
}

/** A whole number: `3`, `3.0`, `"3"`. `undefined` when it is none. */
export function toInteger(value: Json): number | JsonNumber | undefined {
  const number = toNumber(value)
  if (number === undefined) return undefined
  if (number instanceof JsonNumber) {
    if (/^-?\d+$/.test(number.text)) return number
    return Number.isSafeInteger(number.valueOf()) ? number.valueOf() : undefined
  }
  return Number.isInteger(number) ? number : undefined
}

const BOOLEANS: ReadonlyMap<Json, boolean> = new Map<Json, boolean>([
  [true, true],
  [false, false],
  [1, true],
  [0, false],
  ['true', true],
  ['false', false],
  ['1', true],
  ['0', false],
  ['yes', true],
  ['no', false],
])

/** A truth value: also of 0, 1, and the texts true, false, yes, no, 1, 0 in any case. `undefined` when it is none. */
export function toBoolean(value: Json): boolean | undefined {
  if (typeof value === 'boolean') return value
  return BOOLEANS.get(typeof value === 'string' ? value.trim().toLowerCase() : value)
}

/** A scalar as text. `undefined` for lists, objects and null. */
export function toText(value: Json): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || isJsonNumber(value)) return String(value)
  return undefined
}

const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,255}$/
const EMAIL_LENGTH_MAX = 512
const URL_LENGTH_MAX = 8_192

/** An email address; international ones too. `undefined` when it is none. */
export function toEmail(value: Json): string | undefined {
  if (typeof value !== 'string') return undefined
  const text = value.length > EMAIL_LENGTH_MAX ? '' : value.trim()
  return EMAIL.test(text) ? text : undefined
}

const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:/

/** An absolute URL, also one with characters beyond ASCII. `undefined` when it is none. */
export function toUri(value: Json): string | undefined {
  if (typeof value !== 'string' || value.length > URL_LENGTH_MAX) return undefined
  const text = value.trim()
  return SCHEME.test(text) && URL.canParse(text) ? text : undefined
}
