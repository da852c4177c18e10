import { PAYLOAD_FIELDS } from '../../../gen/payload-fields.ts'
import { type CamelCase, camelCase } from '../../foundation/base/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'

type Messages = typeof PAYLOAD_FIELDS
type PayloadName = keyof Messages

interface Scalars {
  readonly string: string
  readonly number: number
  readonly boolean: boolean
  readonly time: Date
  readonly object: JsonObject
  readonly json: Json
}

type FieldValue<Kind> = Kind extends `${infer Item}[]`
  ? readonly NonNullable<FieldValue<Item>>[] | null | undefined
  : Kind extends PayloadName
    ? Partial<PayloadRecord<Kind>> | null | undefined
    : Kind extends keyof Scalars
      ? Scalars[Kind] | null | undefined
      : never

/** A record with every field of a payload under its local name, except those left out. */
type PayloadRecord<Name extends PayloadName, LeftOut = never> = {
  readonly [Field in keyof Messages[Name] as Field extends LeftOut ? never : CamelCase<Field>]: FieldValue<
    Messages[Name][Field]
  >
}

/**
 * Makes payloads of events from records, by the fields that the contract gives the payload's message: a record has them all under
 * their local names, or does not compile. Times become RFC 3339, null stays, undefined leaves a field out.
 *
 * @param leftOut fields that the caller adds itself, or that other events of the message have
 */
export function payloadOf<Name extends PayloadName, LeftOut extends keyof Messages[Name] = never>(
  name: Name,
  leftOut: readonly LeftOut[] = [],
): (record: PayloadRecord<Name, LeftOut>) => JsonObject {
  const fields = compileFields(name, leftOut as readonly string[])
  return (record) => payloadFrom(fields, record)
}

/**
 * SQL: the payload that `payloadOf` makes, of a row whose columns have the names of the fields; those of a message within it have
 * the name of its field before their own.
 *
 * @param expressions SQL of fields whose columns do not hold them as the payload does
 */
export function payloadSql<Name extends PayloadName>(
  name: Name,
  leftOut: readonly (keyof Messages[Name])[],
  expressions: { readonly [Field in keyof Messages[Name]]?: string } = {},
): string {
  return objectSql(compileFields(name, leftOut as readonly string[]), '', expressions)
}

interface CompiledField {
  readonly name: string
  readonly localName: string
  readonly isTime: boolean
  /** Of the message in it. */
  readonly inner: readonly CompiledField[] | undefined
}

function compileFields(name: PayloadName, leftOut: readonly string[] = []): readonly CompiledField[] {
  const kinds: Readonly<Record<string, string>> = PAYLOAD_FIELDS[name]
  return Object.entries(kinds)
    .filter(([field]) => !leftOut.includes(field))
    .map(([field, kind]) => {
      const one = kind.replace('[]', '')
      return {
        name: field,
        localName: camelCase(field),
        isTime: one === 'time',
        inner: isPayloadName(one) ? compileFields(one) : undefined,
      }
    })
}

function isPayloadName(kind: string): kind is PayloadName {
  return kind in PAYLOAD_FIELDS
}

function payloadFrom(fields: readonly CompiledField[], record: object): JsonObject {
  const payload: Record<string, Json> = {}
  for (const field of fields) {
    const value: unknown = Reflect.get(record, field.localName)
    if (value === undefined) continue
    payload[field.name] = Array.isArray(value) ? value.map((item) => jsonFrom(field, item)) : jsonFrom(field, value)
  }
  return payload
}

function jsonFrom({ isTime, inner }: CompiledField, value: unknown): Json {
  if (value === null) return null
  if (isTime) return (value as Date).toISOString()
  return inner === undefined ? (value as Json) : payloadFrom(inner, value as object)
}

function objectSql(
  fields: readonly CompiledField[],
  prefix: string,
  expressions: Readonly<Record<string, string | undefined>>,
): string {
  const members = fields.map(({ name, isTime, inner }) => {
    const column = `${prefix}${name}`
    const value = isTime ? timeSql(column) : inner === undefined ? column : objectSql(inner, `${column}_`, {})
    return `'${name}', ${expressions[name] ?? value}`
  })
  return `jsonb_build_object(${members.join(', ')})`
}

/** SQL: a time as the text that `toISOString` makes of it. */
function timeSql(column: string): string {
  return `to_char(${column} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
}
