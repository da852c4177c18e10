import { type CamelCase, camelCase } from '../base/text.ts'
import type { Json } from '../json/json.ts'
import { jsonb } from './database.ts'
import type { SqlParameters } from './prepared-statements.ts'

/** By SQL type, the values of a column. */
interface SqlTypes {
  readonly uuid: string
  readonly text: string
  readonly integer: number
  readonly smallint: number
  readonly bigint: number
  readonly real: number
  readonly 'double precision': number
  readonly boolean: boolean
  readonly timestamptz: Date
  /** JSON, which is stored with every digit. */
  readonly jsonb: unknown
}

type Trimmed<Text> = Text extends `${' ' | '\n'}${infer Rest}` ? Trimmed<Rest> : Text
/** `'id uuid' | 'sent_at timestamptz'` of `id uuid, sent_at timestamptz`. */
type Columns<Spec> = Spec extends `${infer First},${infer Rest}` ? Trimmed<First> | Columns<Rest> : Trimmed<Spec>
type GivenRow<Spec> = {
  readonly [Column in Columns<Spec> as Column extends `${infer Name} ${string}` ? CamelCase<Name> : never]:
    | null
    | (Column extends `${string} ${infer Type extends keyof SqlTypes}` ? SqlTypes[Type] : never)
}

/** Rows as parameters of one statement: an array for each column, named as the field of records with an `s`. */
interface RowSet<Spec extends string> {
  /** SQL: the names of the columns. */
  readonly columns: string
  /** SQL: the function with the rows, for an alias of one's own. */
  readonly unnest: string
  /** SQL: the rows as `v`. */
  readonly rows: string
  /** The values of the placeholders; a row may have further fields. */
  of(rows: readonly GivenRow<Spec>[]): SqlParameters
}

/**
 * Describes rows by their columns, as in SQL: `id uuid, sent_at timestamptz`. The arrays are read through subqueries, which hide
 * from the planner how many rows there are: one plan serves sets of any size.
 */
export function rowSet<const Spec extends string>(spec: Spec): RowSet<Spec> {
  const fields = spec.split(',').map((column) => {
    const [name = '', ...type] = column.trim().split(' ')
    return { name, field: camelCase(name), type: type.join(' ') }
  })
  const columns = fields.map(({ name }) => name).join(', ')
  const unnest = `unnest(${fields.map(({ field, type }) => `(select :${field}s::${type}[])`).join(', ')})`
  return {
    columns,
    unnest,
    rows: `${unnest} as v (${columns})`,
    of: (rows: readonly Readonly<Record<string, unknown>>[]) =>
      Object.fromEntries(
        fields.map(({ field, type }) => [`${field}s`, rows.map((row) => toSql(row[field], type))]),
      ) as SqlParameters,
  }
}

function toSql(value: unknown, type: string): unknown {
  return type === 'jsonb' && value !== null ? jsonb(value as Json) : value
}

/** Rows of tables whose primary key is `(environment_id, id)`. */
export const OWNED = rowSet('environment_id uuid, id uuid')
