import pg from 'pg'

/** The driver's own parser: three regular expressions a value. */
const parseByDriver: (text: string) => Date | number | null = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ)

const ZERO = 0x30
/** `2026-01-31 08:00:00`, the least that a time has before its zone. */
const SECONDS_LENGTH = 19
const DASH = 0x2d
const BLANK = 0x20
const DOT = 0x2e

/**
 * A `timestamptz` as the server writes it, with the fraction of a second cut to milliseconds. One of the years 1000 to 9999 in a session in UTC
 * (`2026-01-31 08:00:00.123456+00`) is read by its positions, in a tenth of the time; any other by the driver's parser.
 *
 * @throws Error when the text is no time, as in a session whose DateStyle is not ISO
 */
export function parseTimestamp(text: string): Date {
  if (!text.endsWith('+00') || text.charCodeAt(0) === ZERO) return parseAny(text)
  if (text.charCodeAt(4) !== DASH || text.charCodeAt(10) !== BLANK) return parseAny(text)
  const year = digits(text, 0) * 100 + digits(text, 2)
  const secondsMs = Date.UTC(
    year,
    digits(text, 5) - 1,
    digits(text, 8),
    digits(text, 11),
    digits(text, 14),
    digits(text, 17),
  )
  if (Number.isNaN(secondsMs)) return parseAny(text)
  return new Date(text.charCodeAt(SECONDS_LENGTH) === DOT ? secondsMs + milliseconds(text) : secondsMs)
}

/** The driver makes null of a text that it cannot read, which would say "no time", as of a token that never expires. */
function parseAny(text: string): Date {
  const time = parseByDriver(text)
  if (time === null || Number.isNaN(Number(time)))
    throw new Error(
      `the database wrote the time ${text}, which cannot be read: DateStyle of its connections must be ISO`,
    )
  return time as Date
}

/** The number of two digits at a position. */
function digits(text: string, at: number): number {
  return (text.charCodeAt(at) - ZERO) * 10 + text.charCodeAt(at + 1) - ZERO
}

/** The first three digits of the fraction, of which the server leaves zeros at the end out. */
function milliseconds(text: string): number {
  const end = text.length - '+00'.length
  let ms = 0
  for (let at = SECONDS_LENGTH + 1; at < SECONDS_LENGTH + 4; at++)
    ms = ms * 10 + (at < end ? text.charCodeAt(at) - ZERO : 0)
  return ms
}
