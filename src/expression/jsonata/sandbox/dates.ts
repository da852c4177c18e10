/** Seconds until the year 5138; a larger epoch is in milliseconds. */
const EPOCH_SECONDS_MAX = 100_000_000_000

const EPOCH = /^\d{9,14}(\.\d+)?$/
const ISO_DATE = /^\d{4}-\d{2}-\d{2}$/
const ISO_TIME = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)\s?(Z|[+-]\d{2}:?\d{2})?$/i
const HTTP_DATE = /^[A-Z][a-z]{2,8}, \d{1,2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} (?:GMT|UTC|[+-]\d{4})$/

/**
 * Epoch milliseconds of what third parties write as a time: ISO 8601 (UTC when no offset is given), an HTTP or mail date,
 * or an epoch in seconds or milliseconds, told apart by size. `undefined` for anything else.
 */
export function parseDate(value: string | number | undefined): number | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'number') return fromEpoch(value)
  const text = value.trim()
  if (EPOCH.test(text)) return fromEpoch(Number(text))
  if (ISO_DATE.test(text) || HTTP_DATE.test(text)) return finite(Date.parse(text))
  const [, date, time, offset = 'Z'] = ISO_TIME.exec(text) ?? []
  return date === undefined ? undefined : finite(Date.parse(`${date}T${time}${withColon(offset)}`))
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
