import pg from 'pg'
import { camelCase } from '../base/index.ts'

/** A named statement, with each value as text, bytes or null. */
interface NamedStatement {
  readonly text: string
  readonly name: string
  readonly values: readonly unknown[]
}

/** The messages of the protocol that the driver's connection can send; its declared types differ. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void }
  /** By name, what the server has parsed, and what it was sent. */
  readonly parsedStatements: Readonly<Record<string, string>>
  readonly submittedNamedStatements: Record<string, string>
  parse(message: { readonly text: string; readonly name: string }): void
  bind(message: { readonly statement: string; readonly values: readonly unknown[] }): void
  describe(message: { readonly type: 'P' }): void
  execute(message: object): void
  sync(): void
}

interface ResultColumn {
  readonly name: string
  readonly parse: (text: string) => unknown
}

interface RowShape {
  readonly columns: readonly ResultColumn[]
  /** A row of nulls: copies of it have all columns in their order. */
  readonly empty: Readonly<Record<string, unknown>>
}

interface StatementResult {
  readonly rows: Record<string, unknown>[]
  /** Rows that the statement returned or changed; null for one that counts none. */
  rowCount: number | null
}

type Callback = (error: Error | null, result?: unknown) => void
/** `query` of a connection: with a callback, as Knex calls it, or returning a promise. */
export type Send = (statement: unknown, callback?: Callback) => unknown

/**
 * Makes a connection ask for the columns of a prepared statement once. The driver asks with every call, although a statement
 * whose columns have changed fails: for a row of 30 columns, asking, answering and reading the answer are two fifths of the
 * driver's processor time and a seventh of the server's.
 */
export function describeOnce(raw: object): void {
  const connection = raw as { query: Send }
  const send: Send = connection.query.bind(connection)
  const shapes = new Map<string, RowShape>()
  connection.query = (statement, callback) =>
    callback === undefined && isNamed(statement)
      ? new Promise((resolve, reject) => send(new PreparedCall(statement, { shapes, resolve, reject })))
      : send(statement, callback)
}

/** The driver's connection to the server; its declared types do not have its events. */
interface DriverClient {
  readonly connection: {
    prependListener(event: 'rowDescription', listener: (message: { readonly fields: { name: string }[] }) => void): void
  }
}

/**
 * Names the columns of results as records name their fields: `created_at` is read as `createdAt`. The names are changed where the
 * server describes the rows, once for a prepared statement of a connection, so that a row costs nothing.
 */
export function nameColumnsInCamelCase(raw: object): void {
  const { connection } = raw as DriverClient
  connection.prependListener('rowDescription', ({ fields }) => {
    for (const field of fields) field.name = camelCase(field.name)
  })
}

function isNamed(statement: unknown): statement is NamedStatement {
  return typeof statement === 'object' && statement !== null && 'name' in statement && statement.name !== undefined
}

interface CallOptions {
  /** Of the statements of the connection, by name. */
  readonly shapes: Map<string, RowShape>
  readonly resolve: (result: StatementResult) => void
  readonly reject: (error: unknown) => void
}

/** One call of a prepared statement. The driver calls `submit` when it is its turn, then a method for each message of the answer. */
class PreparedCall {
  /** The driver keeps name and text of what the server has parsed. */
  readonly name: string
  readonly text: string
  readonly #values: readonly unknown[]
  readonly #options: CallOptions
  readonly #result: StatementResult = { rows: [], rowCount: null }
  #shape: RowShape | undefined
  #parserError: { readonly cause: unknown } | undefined

  constructor({ name, text, values }: NamedStatement, options: CallOptions) {
    this.name = name
    this.text = text
    this.#values = values
    this.#options = options
    this.#shape = options.shapes.get(name)
  }

  submit(wire: Wire): void {
    const { name, text } = this
    wire.stream.cork()
    try {
      if (wire.parsedStatements[name] === undefined && wire.submittedNamedStatements[name] === undefined) {
        wire.parse({ text, name })
        wire.submittedNamedStatements[name] = text
      }
      wire.bind({ statement: name, values: this.#values })
      if (this.#shape === undefined) wire.describe({ type: 'P' })
      wire.execute({})
      wire.sync()
    } finally {
      wire.stream.uncork()
    }
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#shape = {
      columns: fields.map(({ name, dataTypeID }) => ({ name, parse: pg.types.getTypeParser(dataTypeID) })),
      empty: Object.fromEntries(fields.map(({ name }) => [name, null])),
    }
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    if (this.#parserError !== undefined) return
    try {
      this.#result.rows.push(toRow(this.#shape ?? NO_COLUMNS, fields))
    } catch (cause) {
      this.#parserError = { cause }
    }
  }

  /** @param message its text ends with the number of rows, as in `INSERT 0 5` */
  handleCommandComplete({ text }: { readonly text: string }): void {
    const count = text.slice(text.lastIndexOf(' ') + 1)
    this.#result.rowCount = DIGITS.test(count) ? Number(count) : null
    this.#options.shapes.set(this.name, this.#shape ?? NO_COLUMNS)
  }

  handleReadyForQuery(): void {
    if (this.#parserError === undefined) this.#options.resolve(this.#result)
    else this.#options.reject(this.#parserError.cause)
  }

  /** Of the server, or of a connection that ended. */
  handleError(error: unknown): void {
    this.#options.reject(error)
  }
}

const DIGITS = /^\d+$/
const NO_COLUMNS: RowShape = { columns: [], empty: {} }

function toRow({ columns, empty }: RowShape, values: readonly (string | null)[]): Record<string, unknown> {
  const row = { ...empty }
  for (let at = 0; at < columns.length; at++) {
    const column = columns[at]
    const text = values[at] ?? null
    if (column !== undefined && text !== null) row[column.name] = column.parse(text)
  }
  return row
}
