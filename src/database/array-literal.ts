/** Needs no quotes inside an array literal: ids, numbers, moments, names. */
const PLAIN = /^[\w.:+-]+$/
const NULL = /^null$/i
const SPECIAL = /["\\]/g

/**
 * A flat array as the text PostgreSQL reads it from, such as `{a,"b c",NULL}`; undefined for an array of anything else,
 * which the driver can spell.
 *
 * The driver quotes every element and appends it to what it has so far; the statements of ticks carry thousands of ids,
 * of which this spells as many in a third of the time and without garbage.
 */
export function arrayLiteral(values: readonly unknown[]): string | undefined {
  const elements: string[] = []
  for (const value of values) {
    const element = elementText(value)
    if (element === undefined) return undefined
    elements.push(element)
  }
  return `{${elements.join(',')}}`
}

function elementText(value: unknown): string | undefined {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return PLAIN.test(value) && !NULL.test(value) ? value : quoted(value)
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value instanceof Date) return dateText(value)
  return undefined
}

let lastMs = Number.NaN
let lastText = ''

/** Remembers the last one: the ticks of a batch are mostly of one moment, and spelling it takes longer than an id. */
function dateText(date: Date): string {
  const ms = date.getTime()
  if (ms !== lastMs) {
    lastText = date.toISOString()
    lastMs = ms
  }
  return lastText
}

function quoted(text: string): string {
  return `"${text.replace(SPECIAL, '\\$&')}"`
}
