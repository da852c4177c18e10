import pg from 'pg'
import { camelCase } from '../base/text.ts'

/** A statement that is prepared under its name, with each value as text, bytes or null; without a name (empty) it is parsed anew. */
interface NamedStatement {
  readonly text: string
  readonly name: string
  readonly values: readonly unknown[]
}

/** An INSERT that is sent with another statement, before the same Sync: what commits the one commits the other. */
export interface Companion {
  readonly text: string
  readonly values: readonly unknown[]
  /** Whether it comes before the statement, as before a COMMIT, or after it. */
  readonly isFirst: boolean
  /** Called when both have been executed and the row was inserted. */
  onInserted(): void
}

/** A statement with what is sent with it. */
type Called = NamedStatement & { readonly companion?: Companion | undefined }

/** The messages of the protocol that the driver's connection can send; its declared types differ. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void }
  /** By name, what the server has parsed, and what it was sent. */
  readonly parsedStatements: Readonly<Record<string, string>>
  readonly submittedNamedStatements: Record<string, string>
  parse(message: { readonly text: string; readonly name: string }): void
  close(message: { readonly type: 'S'; readonly name: string }): void
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
  const companions = new Set<string>()
  connection.query = (statement, callback) =>
    callback === undefined && isNamed(statement)
      ? new Promise((resolve, reject) => send(new PreparedCall(statement, { shapes, companions, resolve, reject })))
      : send(statement, callback)
}

/** The driver's connection to the server; its declared types do not have its events. */
interface DriverClient {
  readonly connection: {
    prependListener(event: 'rowDescription', listener: (message: { readonly fields: { name: string }[] }) => void): void
    prependListener(event: 'errorMessage', listener: (message: { readonly code?: string }) => void): void
  }
}

/** Conditions of which the server ends a connection: of the protocol, access, configuration, shutdowns and idle sessions. */
const ENDS_CONNECTION = /^(08|28|3D|F0|57P|25P0[345]|53300)/

/**
 * Calls back when the server says that it ends the connection, before the statement that it is said of fails: the socket closes
 * later, and a statement that was sent meanwhile would fail without saying why.
 */
export function onConnectionEnding(raw: object, listener: () => void): void {
  const { connection } = raw as DriverClient
  connection.prependListener('errorMessage', ({ code = '' }) => {
    if (ENDS_CONNECTION.test(code)) listener()
  })
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

function isNamed(statement: unknown): statement is Called {
  return typeof statement === 'object' && statement !== null && 'name' in statement && statement.name !== undefined
}

interface CallOptions {
  /** Of the statements of the connection, by name. */
  readonly shapes: Map<string, RowShape>
  /** Texts of companions that the connection has prepared. */
  readonly companions: Set<string>
  readonly resolve: (result: StatementResult) => void
  readonly reject: (error: unknown) => void
}

/** What is sent before one Sync. */
type Part = 'companion' | 'statement'

/**
 * One call of a statement, which is prepared when it has a name. The driver calls `submit` when it is its turn, then a method for
 * each message of the answer. What shares its Sync is one transaction with it, also where that is of the statement alone: in a
 * transaction of three round trips a statement took twice as long.
 */
class PreparedCall {
  /** The driver keeps name and text of what the server has parsed: of the part that is answered next. */
  name = ''
  text = ''
  readonly #statement: Called
  readonly #options: CallOptions
  readonly #parts: readonly Part[]
  readonly #result: StatementResult = { rows: [], rowCount: null }
  /** Parts of which the end has been received. */
  #completed = 0
  #isInserted = false
  #shape: RowShape | undefined
  #parserError: { readonly cause: unknown } | undefined

  constructor(statement: Called, options: CallOptions) {
    const { companion } = statement
    this.#statement = statement
    this.#options = options
    if (companion === undefined) this.#parts = ['statement']
    else this.#parts = companion.isFirst ? ['companion', 'statement'] : ['statement', 'companion']
    this.#shape = options.shapes.get(statement.name)
    this.#nameNext()
  }

  submit(wire: Wire): void {
    wire.stream.cork()
    try {
      for (const part of this.#parts) this.#send(wire, part)
      wire.sync()
    } finally {
      wire.stream.uncork()
    }
  }

  #send(wire: Wire, part: Part): void {
    const { companion } = this.#statement
    if (part === 'statement') sendCall(wire, this.#statement, this.#shape === undefined)
    else if (companion !== undefined) this.#sendCompanion(wire, companion)
  }

  #sendCompanion(wire: Wire, { text, values }: Companion): void {
    if (!this.#options.companions.has(text)) {
      // It may have been parsed by a call that failed after that; closing what is not there is no error.
      wire.close({ type: 'S', name: COMPANION })
      wire.parse({ text, name: COMPANION })
      this.#options.companions.clear()
    }
    wire.bind({ statement: COMPANION, values })
    wire.execute({})
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#shape = {
      columns: fields.map(({ name, dataTypeID }) => ({ name, parse: pg.types.getTypeParser(dataTypeID) })),
      empty: Object.fromEntries(fields.map(({ name }) => [name, null])),
    }
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    if (this.#parts[this.#completed] !== 'statement' || this.#parserError !== undefined) return
    try {
      this.#result.rows.push(toRow(this.#shape ?? NO_COLUMNS, fields))
    } catch (cause) {
      this.#parserError = { cause }
    }
  }

  /** @param message its text ends with the number of rows, as in `INSERT 0 5` */
  handleCommandComplete({ text }: { readonly text: string }): void {
    const count = text.slice(text.lastIndexOf(' ') + 1)
    const part = this.#parts[this.#completed++]
    this.#nameNext()
    if (part === 'companion') this.#isInserted = count !== '0'
    if (part !== 'statement') return
    const { name } = this.#statement
    this.#result.rowCount = DIGITS.test(count) ? Number(count) : null
    if (name !== '') this.#options.shapes.set(name, this.#shape ?? NO_COLUMNS)
  }

  #nameNext(): void {
    const part = this.#parts[this.#completed]
    const { name, text } = this.#statement
    // The driver has nothing to do with the name of a companion.
    this.name = part === 'companion' ? '' : name
    this.text = text
  }

  handleReadyForQuery(): void {
    const { companion } = this.#statement
    if (companion !== undefined) this.#options.companions.add(companion.text)
    if (this.#isInserted) companion?.onInserted()
    if (this.#parserError === undefined) this.#options.resolve(this.#result)
    else this.#options.reject(this.#parserError.cause)
  }

  /** Of the server, or of a connection that ended. */
  handleError(error: unknown, wire?: Wire): void {
    // The driver forgets that of the first that failed; what comes after it was not parsed either.
    if (wire !== undefined) delete wire.submittedNamedStatements[this.#statement.name]
    this.#options.reject(error)
  }
}

function sendCall(wire: Wire, { name, text, values }: NamedStatement, isDescribed: boolean): void {
  if (name === '') wire.parse({ text, name })
  else if (wire.parsedStatements[name] === undefined && wire.submittedNamedStatements[name] === undefined) {
    wire.parse({ text, name })
    wire.submittedNamedStatements[name] = text
  }
  wire.bind({ statement: name, values })
  if (isDescribed) wire.describe({ type: 'P' })
  wire.execute({})
}

const DIGITS = /^\d+$/
/** Name of the companion that a connection has prepared. */
const COMPANION = 'companion'
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
