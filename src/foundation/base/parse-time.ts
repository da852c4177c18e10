/** Longer than any time with its zone written out: what comes from elsewhere may be of any length. */
const TIME_LENGTH_MAX = 128

/** How a text ends that names its offset or zone. */
const ZONE = /(?:Z|GMT|UTC?|[ECMP][SD]T|[+-]\d{2}:?\d{2})\s*(?:\([^)]*\))?\s*$/i
const DATE_ONLY = /^\s*[+-]?\d{4,6}(?:-\d{2}){0,2}\s*$/

/**
 * Epoch milliseconds of a time from elsewhere, as `Date.parse` reads it, except that a time without an offset is in UTC
 * whatever the machine's zone is. `NaN` for anything else.
 */
export function parseTime(text: string): number {
  if (text.length > TIME_LENGTH_MAX) return Number.NaN
  if (ZONE.test(text) || DATE_ONLY.test(text)) return Date.parse(text)
  const inUtc = Date.parse(`${text.trimEnd()}Z`)
  return Number.isNaN(inUtc) ? Date.parse(`${text} UTC`) : inUtc
}
