import type { Knex } from 'knex'
import type { JsonObject } from '../../foundation/json/index.ts'
import { type ViewColumn, viewColumns, viewDigest, viewName } from './typed-view.ts'

/** Where the table of a unified resource is. */
interface ViewedTable {
  readonly schema: string
  readonly table: string
  /** `crm/contacts` */
  readonly resource: string
}

/** Begins the comment on every view that daemons own; what follows is the digest of its columns. */
const COMMENT_PREFIX = 'Created by a daemon: '
/** SQLSTATEs of `create or replace view`: the columns before the new ones have changed. */
const CHANGED_COLUMNS_CODE = '42P16'
/** SQLSTATE of a drop on which other objects depend. */
const IN_USE_CODE = '2BP01'

/** The existing relation of a view's name. */
interface FoundRelation {
  readonly kind: string
  readonly comment: string | null
  /** Its columns in their order. */
  readonly columns: readonly string[]
}

/**
 * Makes the typed view of a unified resource what its schema says: created when it is missing, replaced when columns were added,
 * dropped and created anew when columns have changed otherwise. A view that is right already costs one statement.
 *
 * The lock on the table orders daemons that do this at the same time; writers do not wait for it.
 *
 * @returns why the view is not what it should be, when something else has its name or depends on it; absent: it is
 */
export async function ensureTypedView(
  database: Knex,
  target: ViewedTable,
  recordSchema: JsonObject,
): Promise<string | undefined> {
  const columns = viewColumns(recordSchema)
  const comment = COMMENT_PREFIX + viewDigest(columns)
  const found = await findRelation(database, target)
  if (found?.comment === comment) return undefined
  return await database.transaction(async (tx) => {
    await tx.raw('lock table ?? in share update exclusive mode', [`${target.schema}.${target.table}`])
    const current = await findRelation(tx, target)
    if (current?.comment === comment) return undefined
    if (current !== undefined && !isOwn(current))
      return `${viewName(target.resource)} exists and is no view of a daemon`
    const problem = await replaceView(tx, target, selectOf(columns, current?.columns ?? []))
    if (problem === undefined) await commentOnView(tx, target, comment)
    return problem
  })
}

function isOwn({ kind, comment }: FoundRelation): boolean {
  return kind === 'v' && comment?.startsWith(COMMENT_PREFIX) === true
}

async function findRelation(tx: Knex, { schema, resource }: ViewedTable): Promise<FoundRelation | undefined> {
  const { rows } = await tx.raw<{ rows: FoundRelation[] }>(
    `select c.relkind as kind, obj_description(c.oid, 'pg_class') as comment,
       array(select attname::text from pg_attribute where attrelid = c.oid and attnum > 0 order by attnum) as columns
     from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = ? and c.relname = ?`,
    [schema, viewName(resource)],
  )
  return rows[0]
}

/** Replaces the view, which keeps its privileges; where its columns do not allow that, drops it first. */
async function replaceView(tx: Knex, target: ViewedTable, select: string): Promise<string | undefined> {
  const name = `${target.schema}.${viewName(target.resource)}`
  const create = `create or replace view ?? as ${select}`
  const bindings = [name, `${target.schema}.${target.table}`]
  const isReplaced = await attempt(tx, CHANGED_COLUMNS_CODE, (inner) => inner.raw(create, bindings))
  if (isReplaced) return undefined
  const isDropped = await attempt(tx, IN_USE_CODE, (inner) => inner.raw('drop view ??', [name]))
  if (!isDropped)
    return `${name} keeps its columns, since other objects depend on it: drop them, or the view with cascade`
  await tx.raw(create, bindings)
  return undefined
}

/** Whether a statement succeeds; the error of the code leaves the transaction as it was. */
async function attempt(tx: Knex, code: string, work: (inner: Knex) => PromiseLike<unknown>): Promise<boolean> {
  try {
    await tx.transaction(async (inner) => await work(inner))
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === code) return false
    throw error
  }
}

/** The select of a view: columns that it has already first, in their order, so that it can be replaced. */
function selectOf(columns: readonly ViewColumn[], current: readonly string[]): string {
  const ofTable = (name: string) => ({ name, sql: name })
  const own = ['run_id', 'first_seen_at', 'last_seen_at', 'record'].map(ofTable)
  const all = [ofTable('integrated_account_id'), ...columns, ...own]
  const placeOf = ({ name }: { readonly name: string }) => {
    const index = current.indexOf(name)
    return index === -1 ? current.length : index
  }
  const sorted = all.toSorted((one, other) => placeOf(one) - placeOf(other))
  const items = sorted.map(({ name, sql }) => `${sql.replaceAll('?', '\\?')} as "${name.replaceAll('"', '""')}"`)
  return `select ${items.join(', ')} from ??`
}

async function commentOnView(tx: Knex, { schema, resource }: ViewedTable, comment: string): Promise<void> {
  await tx.raw(`comment on view ?? is '${comment}'`, [`${schema}.${viewName(resource)}`])
}
