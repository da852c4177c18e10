/** The values of each field and the names some of them have, by the number of fields that follow it. */
const FIELDS_FROM_LAST: readonly { readonly max: number; readonly names?: readonly string[] }[] = [
  { max: 7, names: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] },
  {
    max: 12,
    names: ['', 'jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'],
  },
  { max: 31 },
  { max: 23 },
  { max: 59 },
  { max: 59 },
]
const ITEM = /^(?<from>\w+)(?:-(?<to>\w+))?(?:\/(?<step>\d+))?$/
const SUNDAY_AGAIN = 7

/**
 * The expression with every list spelled out so that it names each value once: the parser refuses `1-5,3`, which cron has
 * always taken. Lists of anything but values and ranges stay as they are, and so does what is no list.
 */
export function unrepeated(text: string): string {
  if (!text.includes(',')) return text
  const fields = text.trim().split(/\s+/)
  return fields.map((field, place) => unrepeatedList(field, fields.length - 1 - place)).join(' ')
}

function unrepeatedList(field: string, fromLast: number): string {
  const items = field.split(',')
  if (items.length === 1) return field
  const values = new Set<number>()
  for (const item of items) {
    const found = valuesOf(item, fromLast)
    if (found === undefined) return field
    for (const value of found) values.add(fromLast === 0 && value === SUNDAY_AGAIN ? 0 : value)
  }
  return [...values].sort((a, b) => a - b).join(',')
}

/** Undefined for what the parser has to judge. */
function valuesOf(item: string, fromLast: number): readonly number[] | undefined {
  const { from: fromText, to: toText, step: stepText } = ITEM.exec(item)?.groups ?? {}
  const { max = 0 } = FIELDS_FROM_LAST[fromLast] ?? {}
  const from = numberOf(fromText, fromLast)
  const to = toText !== undefined ? numberOf(toText, fromLast) : stepText === undefined ? from : max
  const step = Number(stepText ?? 1)
  if (from === undefined || to === undefined || to < from || to > max || step < 1) return undefined
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, count) => from + count * step)
}

function numberOf(text: string | undefined, fromLast: number): number | undefined {
  if (text === undefined) return undefined
  if (/^\d+$/.test(text)) return Number(text)
  const place = FIELDS_FROM_LAST[fromLast]?.names?.indexOf(text.toLowerCase()) ?? -1
  return place === -1 ? undefined : place
}
