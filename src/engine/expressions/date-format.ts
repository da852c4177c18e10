/** How the cast `date` writes a date where nothing is said. */
export const DATE_FORMAT_DEFAULT = 'YYYY-MM-DD'

/** The parts of a date format, in UTC. */
const PARTS: Readonly<Record<string, (iso: string) => string>> = {
  YYYY: (iso) => iso.slice(0, 4),
  MM: (iso) => iso.slice(5, 7),
  DD: (iso) => iso.slice(8, 10),
  HH: (iso) => iso.slice(11, 13),
  mm: (iso) => iso.slice(14, 16),
  ss: (iso) => iso.slice(17, 19),
  SSS: (iso) => iso.slice(20, 23),
  ZZ: () => '+0000',
  Z: () => '+00:00',
}
const PART = new RegExp(Object.keys(PARTS).join('|'), 'g')
/** Letters that stand for themselves: of `YYYY-MM-DDTHH:mm:ss`. */
const LITERAL = /^[T\d\s.,:;/_+-]*$/

/** Writes a date as an API wants it: `YYYY-MM-DD HH:mm:ss`. @param epochMs of the years 0 to 9999 */
export function formatDate(epochMs: number, format: string): string {
  const iso = new Date(epochMs).toISOString()
  return format.replace(PART, (part) => PARTS[part]?.(iso) ?? part)
}

/** The problem of a date format; undefined when it is one. */
export function findDateFormatProblem(format: string): string | undefined {
  const isKnown = LITERAL.test(format.replace(PART, ''))
  if (isKnown && format.includes('YYYY')) return undefined
  return `has the date format "${format}": its parts are ${Object.keys(PARTS).join(', ')}, and YYYY is one of them`
}
