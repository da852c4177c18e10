import type { Json } from '../base/index.ts'
import { jsonb } from './database.ts'
import type { SqlParameters } from './prepared-statements.ts'

/** By SQL type, the values of a field. */
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

type FieldTypes = Readonly<Record<string, keyof SqlTypes>>

/** Rows as parameters of one statement: an array for each field, named as the field with an `s`. */
export interface RowSet<Types extends FieldTypes> {
  /** SQL: the columns, which are the fields in snake case. */
  readonly columns: string
  /** SQL: the function with the rows, for an alias of one's own. */
  readonly unnest: string
  /** SQL: the rows as `v`. */
  readonly rows: string
  /** The values of the placeholders; a row may have further fields. */
  of(rows: readonly { readonly [Field in keyof Types]: SqlTypes[Types[Field]] | null }[]): SqlParameters
}

/**
 * Describes rows by their fields. The arrays are read through subqueries, which hide from the planner how many rows there are:
 * one plan serves sets of any size.
 */
export function rowSet<const Types extends FieldTypes>(types: Types): RowSet<Types> {
  const fields = Object.entries(types)
  const columns = fields.map(([field]) => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)).join(', ')
  const unnest = `unnest(${fields.map(([field, type]) => `(select :${field}s::${type}[])`).join(', ')})`
  return {
    columns,
    unnest,
    rows: `${unnest} as v (${columns})`,
    of: (rows: readonly Readonly<Record<string, unknown>>[]) =>
      Object.fromEntries(
        fields.map(([field, type]) => [`${field}s`, rows.map((row) => toSql(row[field], type))]),
      ) as SqlParameters,
  }
}

function toSql(value: unknown, type: keyof SqlTypes): unknown {
  return type === 'jsonb' && value !== null ? jsonb(value as Json) : value
}

/** Rows of tables whose primary key is `(environment_id, id)`. */
export const OWNED = rowSet({ environmentId: 'uuid', id: 'uuid' })
