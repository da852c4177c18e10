/** Largest epoch in seconds (the year 5138); a larger one is in milliseconds. */
const EPOCH_SECONDS_MAX = 100_000_000_000

const EPOCH = /^\d{9,14}(\.\d{1,9})?$/
const ISO_DATE = /^\d{4}-\d{2}-\d{2}$/
const ISO_START = /^\d{4}-\d{2}-\d{2}/
const ISO_TIME = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)\s?(Z|[+-]\d{2}:?\d{2})?$/i
const HTTP_DATE = /^[A-Z][a-z]{2,8}, \d{1,2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} (?:GMT|UTC|[+-]\d{4})$/
/** As ASP.NET writes dates in JSON: milliseconds of the epoch, with an offset that changes nothing. */
const JSON_DATE = /^\/Date\((-?\d{1,15})(?:[+-]\d{4})?\)\/$/

/** Longest text that is read as a time. */
const TIME_LENGTH_MAX = 64

/**
 * Epoch milliseconds of a time as third parties write it: ISO 8601 (UTC without an offset), an HTTP or mail date, or an
 * epoch in seconds or milliseconds, distinguished by size. `undefined` for anything else.
 */
export function parseDate(value: string | number | undefined): number | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'number') return fromEpoch(value)
  const text = value.trim()
  if (text.length > TIME_LENGTH_MAX) return undefined
  if (EPOCH.test(text)) return fromEpoch(Number(text))
  if (ISO_DATE.test(text) || HTTP_DATE.test(text)) return finite(Date.parse(text))
  const [, date, time, offset = 'Z'] = ISO_TIME.exec(text) ?? []
  return date === undefined ? undefined : finite(Date.parse(`${date}T${time}${withColon(offset)}`))
}

/** `$isoDate(value, zone?)`: the time in RFC 3339, UTC, with milliseconds; nothing when it is none. */
export function isoDate(value: unknown, zone?: unknown): string | undefined {
  const time = timeOf(value)
  if (time === undefined) return undefined
  if (typeof time === 'number') return toIso(time)
  if (ISO_START.test(time) && !isDate(time.slice(0, 10))) return undefined
  const local = parseDate(time)
  if (local === undefined || typeof zone !== 'string' || !isWithoutOffset(time)) return toIso(local)
  return toIso(fromZone(local, zone))
}

/** `$dateOnly(value)`: the date as it is written, of an epoch the one in UTC, as `YYYY-MM-DD`; nothing when it is none. */
export function dateOnly(value: unknown): string | undefined {
  const time = timeOf(value)
  if (typeof time !== 'string') return toIso(time)?.slice(0, 10)
  const written = time.slice(0, 10)
  if (!ISO_DATE.test(written)) return toIso(parseDate(time))?.slice(0, 10)
  return parseDate(time) === undefined || !isDate(written) ? undefined : written
}

/** The text, or the milliseconds of an epoch. */
function timeOf(value: unknown): string | number | undefined {
  if (typeof value === 'number') return fromEpoch(value)
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  const milliseconds = text.length > TIME_LENGTH_MAX ? undefined : JSON_DATE.exec(text)?.[1]
  return milliseconds === undefined ? text : Number(milliseconds)
}

function isWithoutOffset(text: string): boolean {
  if (ISO_DATE.test(text)) return true
  const parts = ISO_TIME.exec(text)
  return parts !== null && parts[3] === undefined
}

/** JavaScript takes `2024-02-30` for the first of March when a time follows. */
function isDate(text: string): boolean {
  return toIso(finite(Date.parse(`${text}T00:00:00Z`)))?.startsWith(text) === true
}

/** Of the years 1 to 9999: databases have no year 0. */
function toIso(milliseconds: number | undefined): string | undefined {
  if (milliseconds === undefined || Math.abs(milliseconds) > 8.64e15) return undefined
  const text = new Date(milliseconds).toISOString()
  return text.length === 24 && !text.startsWith('0000') ? text : undefined
}

function fromEpoch(value: number): number | undefined {
  if (!Number.isFinite(value)) return undefined
  return Math.round(Math.abs(value) < EPOCH_SECONDS_MAX ? value * 1_000 : value)
}

function withColon(offset: string): string {
  return offset.toUpperCase().replace(/^([+-]\d{2})(\d{2})$/, '$1:$2')
}

function finite(milliseconds: number): number | undefined {
  return Number.isNaN(milliseconds) ? undefined : milliseconds
}

/** Formatters of time zones; an entry takes some kilobytes and a tenth of a millisecond. */
const zones = new Map<string, Intl.DateTimeFormat | undefined>()
const ZONES_MAX = 200

/** The instant at which clocks of a zone show a time; in the hour that comes twice the earlier or the later one. */
function fromZone(local: number, zone: string): number | undefined {
  const format = formatOf(zone)
  if (format === undefined) return undefined
  const guess = local - offsetAt(format, local)
  return local - offsetAt(format, guess)
}

function formatOf(zone: string): Intl.DateTimeFormat | undefined {
  if (zones.has(zone)) return zones.get(zone)
  if (zone.length > TIME_LENGTH_MAX) return undefined
  if (zones.size >= ZONES_MAX) zones.clear()
  const format = createFormat(zone)
  zones.set(zone, format)
  return format
}

function createFormat(timeZone: string): Intl.DateTimeFormat | undefined {
  const two = '2-digit'
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: two,
      day: two,
      hour: two,
      minute: two,
      second: two,
    })
  } catch {
    return undefined
  }
}

function offsetAt(format: Intl.DateTimeFormat, instant: number): number {
  const part: Record<string, number> = {}
  for (const { type, value } of format.formatToParts(instant)) part[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(instant / 1_000) * 1_000
}
