/** An ISO 8601 duration; years and months are calendar units, all others fixed lengths in UTC. */
export interface IsoDuration {
  readonly months: number
  readonly ms: number
}

const DURATION =
  /^P(?=.)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** The duration, `undefined` when the text is not one or is zero. */
export function parseIsoDuration(text: string): IsoDuration | undefined {
  const match = DURATION.exec(text)
  if (match === null) return undefined
  const [years, months, weeks, days, hours, minutes, seconds] = match.slice(1).map((part) => Number(part ?? 0))
  const ms =
    ((weeks ?? 0) * 7 + (days ?? 0)) * DAY_MS + (hours ?? 0) * HOUR_MS + (minutes ?? 0) * 60_000 + (seconds ?? 0) * 1000
  const duration = { months: (years ?? 0) * 12 + (months ?? 0), ms }
  return duration.months === 0 && duration.ms === 0 ? undefined : duration
}

/** The moment one duration later. A day that the month lacks becomes its last day, as 31 January plus a month. */
export function addIsoDuration(date: Date, { months, ms }: IsoDuration): Date {
  if (months === 0) return new Date(date.getTime() + ms)
  const shifted = new Date(date)
  shifted.setUTCDate(1)
  shifted.setUTCMonth(shifted.getUTCMonth() + months)
  const lastDay = new Date(Date.UTC(shifted.getUTCFullYear(), shifted.getUTCMonth() + 1, 0)).getUTCDate()
  shifted.setUTCDate(Math.min(date.getUTCDate(), lastDay))
  return new Date(shifted.getTime() + ms)
}
