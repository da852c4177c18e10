import pg from 'pg'

/** A statement as the product sent it. */
export interface SentStatement {
  readonly text: string
  readonly values: readonly unknown[]
  /** Prepared: PostgreSQL may plan it for any values. */
  readonly isPrepared: boolean
}

/** What a statement cost. */
export interface StatementCost {
  readonly text: string
  /** Pages of 8 KiB that were read, from memory or disk. */
  readonly pages: number
  /** Rows that scans looked at, kept or not. */
  readonly rowsRead: number
  readonly rowsReturned: number
}

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Join Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly Plans?: readonly PlanNode[]
}

/** What `pg` takes: a text with values, one object, or a call of a prepared statement, which binds its values when it is sent. */
type SentQuery = string | { readonly text: string; readonly values?: readonly unknown[]; readonly name?: string }

/** A statement whose values may be yet to be bound. */
type RecordedStatement = Omit<SentStatement, 'values'> & {
  readonly name: string | undefined
  values: readonly unknown[] | undefined
}

/** Where the statements of this process are written while they are recorded. */
let recorded: RecordedStatement[] | undefined

// A connection keeps the functions that it found when it was opened, so they are replaced once, before any is.
const clients = pg.Client.prototype as unknown as { query: (this: unknown, ...args: unknown[]) => unknown }
const connections = pg.Connection.prototype as unknown as {
  bind: (this: unknown, message: { readonly statement?: string; readonly values?: readonly unknown[] }) => unknown
}
const { query } = clients
clients.query = function (...args) {
  const [given, values] = args as [SentQuery, readonly unknown[] | undefined]
  const statement = typeof given === 'string' ? { text: given, values } : given
  const name = 'name' in statement ? statement.name : undefined
  // What opens a session is sent with a callback, and reads no table.
  const isOfWork = typeof values !== 'function'
  if (isOfWork && /^\s*(with|select|update|insert|delete)\b/i.test(statement.text))
    recorded?.push({ text: statement.text, values: statement.values, isPrepared: name !== undefined, name })
  return query.apply(this, args)
}
const { bind } = connections
connections.bind = function (message) {
  const bound = recorded?.find(
    ({ name, values }) => values === undefined && name !== undefined && name === message.statement,
  )
  if (bound !== undefined) bound.values = message.values ?? []
  return bind.call(this, message)
}

/** The statements that read or change rows and are sent in this process while `work` is under way. */
export async function recordStatements(work: () => Promise<unknown>): Promise<readonly SentStatement[]> {
  const sent: RecordedStatement[] = []
  recorded = sent
  try {
    await work()
  } finally {
    recorded = undefined
  }
  return sent.map(({ text, values = [], isPrepared }) => ({ text, values, isPrepared }))
}

/** Runs statements again to see what they cost, and undoes what they change. */
export class StatementCosts {
  readonly #client: pg.Client
  readonly #measured = new Set<string>()

  constructor(url: string) {
    this.#client = new pg.Client({ connectionString: url })
  }

  async connect(): Promise<void> {
    await this.#client.connect()
  }

  /**
   * What the statement costs with its values, and, where it is prepared, after it was used often enough for a general plan. One
   * that was measured already is not again.
   */
  async measure(statement: SentStatement): Promise<readonly StatementCost[]> {
    const key = JSON.stringify(statement)
    if (this.#measured.has(key)) return []
    this.#measured.add(key)
    return await this.#measureOnce(statement)
  }

  async #measureOnce(statement: SentStatement): Promise<readonly StatementCost[]> {
    await this.#client.query('begin')
    try {
      const costs = [await this.#explain(statement.text, statement.text, statement.values)]
      if (statement.isPrepared) costs.push(await this.#explainPrepared(statement))
      return costs
    } finally {
      await this.#client.query('rollback')
    }
  }

  async #explainPrepared({ text, values }: SentStatement): Promise<StatementCost> {
    const execute = `execute measured${values.length === 0 ? '' : `(${values.map(toLiteral).join(', ')})`}`
    await this.#client.query(`prepare measured as ${text}`)
    try {
      // PostgreSQL compares a general plan with the ones for values from the sixth use on.
      for (let use = 0; use < 5; use++) {
        await this.#client.query('savepoint use')
        await this.#client.query(execute)
        await this.#client.query('rollback to use')
      }
      return await this.#explain(text, execute, [])
    } finally {
      await this.#client.query('deallocate measured')
    }
  }

  async #explain(text: string, statement: string, values: readonly unknown[]): Promise<StatementCost> {
    const { rows } = await this.#client.query(`explain (analyze, buffers, timing off, format json) ${statement}`, [
      ...values,
    ])
    const [{ Plan: plan }] = rows[0]['QUERY PLAN'] as [{ Plan: PlanNode }]
    return {
      text,
      pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
      rowsRead: rowsReadBy(plan),
      rowsReturned: plan['Actual Rows'] * plan['Actual Loops'],
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end()
  }
}

/** Rows that the scans of a plan looked at. */
function rowsReadBy(node: PlanNode): number {
  const { 'Actual Loops': loops, Plans: plans = [] } = node
  const removed =
    (node['Rows Removed by Filter'] ?? 0) +
    (node['Rows Removed by Join Filter'] ?? 0) +
    (node['Rows Removed by Index Recheck'] ?? 0)
  const own = removed * loops + (plans.length === 0 ? node['Actual Rows'] * loops : 0)
  return own + plans.reduce((sum, child) => sum + rowsReadBy(child), 0)
}

function toLiteral(value: unknown): string {
  if (value === null) return 'null'
  if (value instanceof Date) return `'${value.toISOString()}'`
  if (Buffer.isBuffer(value)) return `'\\x${value.toString('hex')}'`
  if (Array.isArray(value)) return `array[${value.map(toLiteral).join(', ')}]`
  return pg.escapeLiteral(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

/** Rows to be added to a table. */
interface AddedRows {
  readonly table: string
  /** SQL: the condition of the row that they are like. */
  readonly like: string
  /** SQL: names and values of columns that differ; `n` counts from 1, `source` is the row. */
  readonly changes: string
  /** SQL: what the first of them has instead. */
  readonly rare?: string | undefined
  readonly count: number
}

/** Adds rows like one that exists. No foreign key is checked. */
export async function addRowsLike(url: string, { table, like, changes, rare, count }: AddedRows): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('truncate figure_delta')
    await client.query('set session_replication_role = replica')
    const { rows } = await client.query(
      `select string_agg(quote_ident(attname), ', ' order by attnum) as columns from pg_attribute
       where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
      [table],
    )
    const { columns } = rows[0] as { columns: string }
    const add = (from: number, to: number) =>
      client.query(
        `insert into ${table} (${columns}) select ${columns} from (
           select (jsonb_populate_record(null::${table}, jsonb_strip_nulls(to_jsonb(source)) || jsonb_build_object(${changes}))).*
           from (select * from ${table} where ${like} limit 1) source, generate_series(${from}, ${to}) n
         ) rows returning ctid::text, tableoid`,
      )
    const [first] = (await add(1, 1)).rows as [{ ctid: string; tableoid: number }?]
    if (first === undefined) throw new Error(`${table} has no row with ${like}`)
    if (rare !== undefined)
      await client.query(`update ${table} set ${rare} where tableoid = ${first.tableoid} and ctid = '${first.ctid}'`)
    await add(2, count)
    await client.query(`analyze ${table}`)
  } finally {
    await client.end()
  }
}
