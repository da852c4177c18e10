/** A field of an expression: its values, and the names some of them have. */
interface Field {
  readonly min: number
  readonly max: number
  readonly names?: readonly string[]
}

const SECOND: Field = { min: 0, max: 59 }
const MINUTE: Field = { min: 0, max: 59 }
const HOUR: Field = { min: 0, max: 23 }
const DAY: Field = { min: 1, max: 31 }
const MONTH: Field = {
  min: 1,
  max: 12,
  names: ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'],
}
const WEEKDAY: Field = { min: 0, max: 7, names: ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'] }

/** Any expression of the dialect: values, names, ranges, steps, lists of all of them, `L`, `#`; it may have no tick at all. */
export function randomCron(random: () => number): string {
  const seconds = random() < 0.5 ? [plain(SECOND, random)] : []
  return [
    ...seconds,
    plain(MINUTE, random),
    plain(HOUR, random),
    day(random),
    plain(MONTH, random),
    weekday(random),
  ].join(' ')
}

function day(random: () => number): string {
  return random() < 0.05 ? 'L' : sparse(DAY, random)
}

function weekday(random: () => number): string {
  const chance = random()
  if (chance < 0.05) return `${integer(0, 6, random)}L`
  if (chance < 0.15) return Array.from({ length: integer(1, 4, random) }, () => nthWeekday(random)).join(',')
  return sparse(WEEKDAY, random)
}

function nthWeekday(random: () => number): string {
  return random() < 0.2 ? value(WEEKDAY, random) : `${integer(0, 6, random)}#${integer(1, 5, random)}`
}

/** Days are mostly any day, or hardly any expression had both of them free. */
function sparse(field: Field, random: () => number): string {
  return random() < 0.6 ? '*' : plain(field, random)
}

function plain(field: Field, random: () => number): string {
  const chance = random()
  if (chance < 0.3) return '*'
  if (chance < 0.5) return `*/${integer(1, field.max, random)}`
  if (chance < 0.65) return value(field, random)
  return Array.from({ length: integer(1, 4, random) }, () => item(field, random)).join(',')
}

/** A value, a step, a range, or a range in steps. */
function item(field: Field, random: () => number): string {
  if (random() < 0.5) return value(field, random)
  if (random() < 0.3) return `*/${integer(1, field.max, random)}`
  const [one, other] = [integer(field.min, field.max, random), integer(field.min, field.max, random)]
  const range = `${Math.min(one, other)}-${Math.max(one, other)}`
  return random() < 0.5 ? range : `${range}/${integer(1, field.max, random)}`
}

function value(field: Field, random: () => number): string {
  const number = integer(field.min, field.max, random)
  const name = field.names?.[number - (field.names.length === 12 ? 1 : 0)]
  return name !== undefined && random() < 0.3 ? name : String(number)
}

function integer(min: number, max: number, random: () => number): number {
  return min + Math.floor(random() * (max - min + 1))
}
