import { decimalForm, isJsonNumber, type Json, JsonNumber } from '../base/index.ts'

/** Longest text that is read as a date or number. */
const TEXT_LENGTH_MAX = 64
/** Numbers below count as seconds since 1970, others as milliseconds: 100 000 000 000 ms is in 1973. */
const EPOCH_MS_MIN = 100_000_000_000
/** Year 9999, the last that RFC 3339 can write. */
const EPOCH_MS_MAX = 253_402_300_799_999

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/
const DATE_TIME =
  /^(\d{4}-\d\d-\d\d)[Tt ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,9}))?)?[ ]?([Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?)?$/
const UTC_DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/
const INTERNET_DATE = /^[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d (?:GMT|UTC|[+-]\d{4})$/
const EPOCH = /^-?\d{9,14}$/
const NET_DATE = /^\/Date\((-?\d{1,15})(?:[+-]\d{4})?\)\/$/

/**
 * A time in UTC (RFC 3339): of a text with date and time (without a zone: UTC), of a date (its midnight), of an RFC 1123 date,
 * of seconds or milliseconds since 1970, of `/Date(ms)/`. `undefined` when it is none.
 */
export function toDateTime(value: Json): string | undefined {
  if (isJsonNumber(value)) return fromEpoch(Number(value))
  if (typeof value !== 'string' || value.length > TEXT_LENGTH_MAX) return undefined
  if (UTC_DATE_TIME.test(value)) return isRealTime(value) ? value : undefined
  const text = value.trim()
  const day = DATE.exec(text)
  if (day !== null) return isRealDate(text) ? `${text}T00:00:00Z` : undefined
  const parts = DATE_TIME.exec(text)
  if (parts !== null) return fromParts(parts)
  if (EPOCH.test(text)) return fromEpoch(Number(text))
  const net = NET_DATE.exec(text)
  if (net !== null) return fromMilliseconds(Number(net[1]))
  return INTERNET_DATE.test(text) ? fromMilliseconds(Date.parse(text)) : undefined
}

/** A date as `YYYY-MM-DD`: of a time as written the date, without a change of zone. `undefined` when it is none. */
export function toDateOnly(value: Json): string | undefined {
  if (typeof value === 'string' && value.length <= TEXT_LENGTH_MAX) {
    const date = value.trim().slice(0, 10)
    if (DATE.test(date)) return isRealDate(date) && toDateTime(value) !== undefined ? date : undefined
  }
  return toDateTime(value)?.slice(0, 10)
}

function fromEpoch(value: number): string | undefined {
  return fromMilliseconds(Math.abs(value) < EPOCH_MS_MIN ? value * 1000 : value)
}

function fromMilliseconds(value: number): string | undefined {
  if (!Number.isFinite(value) || Math.abs(value) > EPOCH_MS_MAX) return undefined
  const text = new Date(value).toISOString()
  return text.startsWith('-') || text.startsWith('+') ? undefined : text.replace('.000Z', 'Z')
}

function fromParts([, date = '', hour = '', minute = '', second = '00', fraction, zone]: readonly string[]):
  | string
  | undefined {
  const time = `${date}T${hour}:${minute}:${second}`
  if (!isRealTime(`${time}Z`)) return undefined
  const subsecond = fraction === undefined || /^0+$/.test(fraction) ? '' : `.${fraction}`
  const offset = zone === undefined || /^(?:[Zz]|UTC|GMT)$/.test(zone) ? '' : zone
  if (offset === '') return `${time}${subsecond}Z`
  const digits = offset.slice(1).replace(':', '').padEnd(4, '0')
  const shifted = fromMilliseconds(Date.parse(`${time}${offset[0]}${digits.slice(0, 2)}:${digits.slice(2)}`))
  return shifted === undefined ? undefined : shifted.replace('Z', `${subsecond}Z`)
}

const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Whether the day of `YYYY-MM-DD…` exists: `Date` takes February 30 for March 1. */
function isRealDate(text: string): boolean {
  const [year, month, day] = [digitsAt(text, 0) * 100 + digitsAt(text, 2), digitsAt(text, 5), digitsAt(text, 8)]
  const isLeap = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return day >= 1 && day <= (isLeap ? 29 : (DAYS[month - 1] ?? 0))
}

/** Whether day and time of `YYYY-MM-DDTHH:MM:SS…` exist. */
function isRealTime(text: string): boolean {
  return isRealDate(text) && digitsAt(text, 11) <= 23 && digitsAt(text, 14) <= 59 && digitsAt(text, 17) <= 59
}

const ZERO = 48

/** The number of two digits. */
function digitsAt(text: string, at: number): number {
  return (text.charCodeAt(at) - ZERO) * 10 + text.charCodeAt(at + 1) - ZERO
}

const DECIMAL = /^[+-]?\d{1,40}(?:\.\d{1,40})?$/
/** Largest power of ten that is written out. */
const EXPONENT_MAX = 60

/** A decimal number as text without exponent, as written where it has none. `undefined` when it is none. */
export function toDecimal(value: Json): string | undefined {
  if (typeof value === 'string') {
    const text = value.length > TEXT_LENGTH_MAX * 2 ? '' : value.trim()
    return DECIMAL.test(text) ? text.replace(/^\+/, '') : undefined
  }
  if (!isJsonNumber(value)) return undefined
  const text = String(value)
  if (DECIMAL.test(text)) return text
  return Number.isNaN(Number(value)) ? undefined : writeOut(value)
}

function writeOut(value: number | JsonNumber): string | undefined {
  if (typeof value === 'number' && !Number.isFinite(value)) return undefined
  const { text } = decimalForm(value)
  const [, sign = '', digits = '', power = '0'] = /^(-?)(\d+)(?:e(-?\d+))?$/.exec(text) ?? []
  const exponent = Number(power)
  if (Math.abs(exponent) > EXPONENT_MAX || digits.length > EXPONENT_MAX) return undefined
  if (exponent >= 0) return `${sign}${digits}${'0'.repeat(exponent)}`
  const padded = digits.padStart(1 - exponent, '0')
  return `${sign}${padded.slice(0, exponent)}.${padded.slice(exponent)}`
}

const NUMBER = /^-?(?:0|[1-9]\d{0,40})(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3})?$/

/** A number: as it is, or of a text that is one. `undefined` when it is none, or beyond the range of a double. */
export function toNumber(value: Json): number | JsonNumber | undefined {
  if (value instanceof JsonNumber) return Number.isFinite(value.valueOf()) ? value : undefined
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value !== 'string') return undefined
  const text = value.length > TEXT_LENGTH_MAX * 2 ? '' : value.trim()
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
  return BOOLEANS.get(typeof value === 'string' ? value.trim().toLowerCase() : value)
}

/** A scalar as text. `undefined` for lists, objects and null. */
export function toText(value: Json): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || isJsonNumber(value)) return String(value)
  return undefined
}

const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,255}$/
const URL_LENGTH_MAX = 8_192

/** An email address; international ones too. `undefined` when it is none. */
export function toEmail(value: Json): string | undefined {
  if (typeof value !== 'string') return undefined
  const text = value.length > TEXT_LENGTH_MAX * 8 ? '' : value.trim()
  return EMAIL.test(text) ? text : undefined
}

/** An absolute URL. `undefined` when it is none. */
export function toUri(value: Json): string | undefined {
  return typeof value === 'string' && value.length <= URL_LENGTH_MAX && URL.canParse(value) ? value : undefined
}
