/** A value of a statement's parameter. JSON goes through `jsonb()`; a flat array becomes a PostgreSQL array. */
type SqlValue =
  | string
  | number
  | boolean
  | null
  | Date
  | Uint8Array
  | readonly (string | number | boolean | null | Date)[]

/** The parameters of a statement by name, for `:name`. */
export type SqlParameters = Readonly<Record<string, SqlValue>>

/** A statement as the driver takes it: `$n` for each parameter, and the name it is prepared under. */
interface PreparedStatement {
  readonly text: string
  /** The names of the parameters, `$1` first. */
  readonly keys: readonly string[]
  /** Absent for a statement without parameters, which the driver sends as it is. */
  readonly name: string | undefined
}

/** Cache size: texts beyond it run unprepared, since a connection keeps every statement it has prepared. */
const STATEMENTS_MAX = 500
/** Literals, quoted names and comments, whose colons mean nothing; casts; then the placeholders. */
const TOKEN = /'(?:[^']|'')*'|"[^"]*"|--[^\n]*|::|:([a-z]\w*)/gi

/** The prepared statements of one pool, whose connections all know them under the same names. */
export class StatementCache {
  readonly #statements = new Map<string, PreparedStatement>()
  #namesGiven = 0

  /** The prepared statement of a text, compiled once. */
  get(sql: string): PreparedStatement {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const { text, keys } = compile(sql)
    if (this.#statements.size >= STATEMENTS_MAX) return { text, keys, name: undefined }
    const statement = { text, keys, name: keys.length === 0 ? undefined : `pb${this.#namesGiven++}` }
    this.#statements.set(sql, statement)
    return statement
  }

  /** Makes the next use of a text prepare it anew, under another name. */
  forget(sql: string): void {
    this.#statements.delete(sql)
  }
}

/**
 * The values of a statement's parameters in order, as they are sent.
 *
 * @throws Error when one is missing or undefined: what is meant to be NULL is null
 * @throws TypeError when one is no `SqlValue`
 */
export function bindParameters(keys: readonly string[], parameters: SqlParameters): (string | Buffer | null)[] {
  return keys.map((key) => {
    const value = parameters[key]
    if (value === undefined) throw new Error(`the statement's parameter ${key} has no value`)
    const sent = toWire(value)
    if (sent === undefined) throw new TypeError(`the statement's parameter ${key} is of no type that is sent`)
    return sent
  })
}

function toWire(value: SqlValue): string | Buffer | null | undefined {
  if (value === null || typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value instanceof Date) return isoTime(value)
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  return arrayLiteral(value)
}

function compile(sql: string): Pick<PreparedStatement, 'text' | 'keys'> {
  const keys: string[] = []
  const text = sql.replace(TOKEN, (token, key: string | undefined) => {
    if (key === undefined) return token
    if (!keys.includes(key)) keys.push(key)
    return `$${keys.indexOf(key) + 1}`
  })
  return { text, keys }
}

/** Needs no quotes in an array literal: ids, numbers, times, names. */
const UNQUOTED = /^[\w.:+-]+$/
const NULL = /^null$/i
const ESCAPED = /["\\]/g

/**
 * A flat array as an array literal of PostgreSQL, such as `{a,"b c",NULL}`; undefined for an array of anything else.
 *
 * pg's own writer quotes every element and appends it to what it has so far. The statements of ticks carry thousands of
 * ids, of which this writes as many in a third of the time and without garbage.
 */
export function arrayLiteral(values: readonly unknown[]): string | undefined {
  const elements: string[] = []
  for (const value of values) {
    const element = arrayElement(value)
    if (element === undefined) return undefined
    elements.push(element)
  }
  return `{${elements.join(',')}}`
}

function arrayElement(value: unknown): string | undefined {
  if (value === null) return 'NULL'
  if (typeof value === 'string')
    return UNQUOTED.test(value) && !NULL.test(value) ? value : `"${value.replace(ESCAPED, '\\$&')}"`
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return value instanceof Date ? isoTime(value) : undefined
}

let lastMs = Number.NaN
let lastText = ''

/** Memoizes the last time: the ticks of a batch mostly share one, and formatting it costs more than an id does. */
function isoTime(date: Date): string {
  const ms = date.getTime()
  if (ms !== lastMs) {
    lastText = date.toISOString()
    lastMs = ms
  }
  return lastText
}
