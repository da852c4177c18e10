import { createHash } from 'node:crypto'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { storageName, UNIFIED_PREFIX } from './store.ts'

/** A column of a view over the records of a unified resource. */
export interface ViewColumn {
  readonly name: string
  /** Type in PostgreSQL. */
  readonly type: string
  /** Expression over the column `record`. */
  readonly sql: string
}

/** Longest name in PostgreSQL, bytes. */
const NAME_LENGTH_MAX = 63
/** Names of the table's own columns, which a field of the same name does not replace. */
const TABLE_COLUMNS: ReadonlySet<string> = new Set([
  'integrated_account_id',
  'record',
  'run_id',
  'first_seen_at',
  'last_seen_at',
])

/**
 * Name of the view of a unified resource: `unified_crm_contacts`. It is readable where model and resource follow from it, which
 * they do unless the model's name has an underscore; else it ends in a digest.
 */
export function viewName(resource: string): string {
  const readable = `${UNIFIED_PREFIX}${resource.replace('/', '_')}`
  const isPlain = /^[a-z][a-z0-9]*\/[a-z][a-z0-9_]*$/.test(resource) && readable.length <= NAME_LENGTH_MAX
  return isPlain ? readable : `${UNIFIED_PREFIX}${storageName(resource)}`
}

/**
 * The columns of a schema, in its order: one per field, typed; lists and objects as `jsonb`; of an enumeration also the value of
 * the third party that it has no word for, `<field>_raw`. A value that does not have the type, as records of an older schema may,
 * is null; the column `record` has it.
 */
export function viewColumns({ properties }: JsonObject): readonly ViewColumn[] {
  const fields = isJsonObject(properties) ? Object.entries(properties) : []
  const columns = [...fields.flatMap(([name, field]) => columnsOf(name, field)), jsonColumn('_warnings')]
  const isFree = ({ name }: ViewColumn, index: number) =>
    name.length <= NAME_LENGTH_MAX &&
    !TABLE_COLUMNS.has(name) &&
    columns.findIndex((column) => column.name === name) === index
  return columns.filter(isFree)
}

/** Changes whenever the view does. */
export function viewDigest(columns: readonly ViewColumn[]): string {
  return createHash('sha256').update(JSON.stringify(columns)).digest('hex').slice(0, 32)
}

/** Days that exist, from year 1; the 29th of February is left to the second part. */
const DAY =
  '((?!0000)[0-9]{4}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)|' +
  '(?!0000)([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)'
const TIME = '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])'

/** Types of texts by format, and of other scalars, with the texts that PostgreSQL reads as such. */
const FORMATS: Readonly<Record<string, TypedText>> = {
  date: { type: 'date', pattern: `^${DAY}$` },
  'date-time': { type: 'timestamptz', pattern: `^${DAY}T${TIME}$` },
  decimal: { type: 'numeric', pattern: '^-?[0-9]+([.][0-9]+)?$' },
}
const SCALARS: Readonly<Record<string, TypedText>> = {
  integer: { type: 'bigint', pattern: '^-?[0-9]{1,18}$' },
  number: { type: 'numeric', pattern: '^-?[0-9]+([.][0-9]+)?$' },
  boolean: { type: 'boolean', pattern: '^(true|false)$' },
}

interface TypedText {
  readonly type: string
  readonly pattern: string
}

function columnsOf(name: string, field: Json): readonly ViewColumn[] {
  if (!isJsonObject(field)) return []
  const { type, format } = field
  if (type === 'array' || type === 'object') return [jsonColumn(name)]
  if (type !== 'string') return [typedColumn(name, SCALARS[String(type)])]
  const column = typedColumn(name, FORMATS[String(format)])
  return field.enum === undefined ? [column] : [column, typedColumn(`${name}_raw`, undefined)]
}

function typedColumn(name: string, typed: TypedText | undefined): ViewColumn {
  const text = `record->>${literal(name)}`
  if (typed === undefined) return { name, type: 'text', sql: `(${text})` }
  const { type, pattern } = typed
  return { name, type, sql: `case when (${text}) ~ ${literal(pattern)} then (${text})::${type} end` }
}

function jsonColumn(name: string): ViewColumn {
  return { name, type: 'jsonb', sql: `nullif(record->${literal(name)}, 'null'::jsonb)` }
}

/** A text as a literal of PostgreSQL with standard strings. */
function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
