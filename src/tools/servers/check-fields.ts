import { suggest, type Violation } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject, typesOf } from '../../foundation/json/index.ts'

/** A model repairs a few fields at a time. */
const VIOLATIONS_MAX = 20
const NAME_LENGTH_MAX = 100
/** Of records that are mapped: what did not fit, and the third party's value of a field. */
const WARNINGS_FIELD = '_warnings'
const RAW_SUFFIX = '_raw'

/** The fields of one value that a projection may choose; `undefined` where any name is valid. */
export type FieldLevel = ChoosableFields | undefined

interface ChoosableFields {
  /** To suggest in place of an unknown one. */
  readonly names: readonly string[]
  readonly has: (name: string) => boolean
  readonly below: (name: string) => FieldLevel
}

/** The level of a value without fields. */
export const NO_FIELDS: FieldLevel = { names: [], has: () => false, below: () => undefined }

/**
 * Checks the fields of a projection, dotted paths, against what they are chosen from.
 *
 * @param argument the argument that has the fields, named in the violations
 * @returns at most 20 violations
 */
export function checkFields(from: FieldLevel, fields: readonly string[], argument: string): readonly Violation[] {
  const found: Violation[] = []
  for (const [at, field] of fields.entries()) {
    const near = findUnknown(from, field)
    if (near === undefined) continue
    const description = `${field.slice(0, NAME_LENGTH_MAX)} is not a field of the answer${near}`
    found.push({ field: `${argument}[${at}]`, description, rule: 'unknown_field' })
    if (found.length === VIOLATIONS_MAX) break
  }
  return found
}

/** What to write in place of the unknown name of a path, or nothing; `undefined`: all are known. */
function findUnknown(from: FieldLevel, path: string): string | undefined {
  let level = from
  for (const name of path.split('.')) {
    if (level === undefined) return undefined
    if (!level.has(name)) return suggest(name.slice(0, NAME_LENGTH_MAX), level.names)
    level = level.below(name)
  }
  return undefined
}

/** The fields of records with this schema. What it leaves open is valid, such as the names below `custom_fields`. */
export function fieldsOfSchema(schema: Json | undefined): FieldLevel {
  if (!isJsonObject(schema)) return undefined
  if (schema.items !== undefined) return fieldsOfSchema(schema.items)
  const { properties } = schema
  if (!isJsonObject(properties)) return isScalar(schema) ? NO_FIELDS : undefined
  const has = (name: string) => Object.hasOwn(properties, name)
  return {
    names: Object.keys(properties),
    has: (name) =>
      has(name) || name === WARNINGS_FIELD || (name.endsWith(RAW_SUFFIX) && has(name.slice(0, -RAW_SUFFIX.length))),
    below: (name) => (has(name) ? fieldsOfSchema(properties[name]) : undefined),
  }
}

function isScalar(schema: JsonObject): boolean {
  const types = typesOf(schema)
  return types.length > 0 && !types.includes('object') && !types.includes('array')
}

/** The fields of a projection that no record has; an empty list and `null` could have any. */
export function absentFields(records: Json, fields: readonly string[]): readonly string[] {
  return fields.filter((field) => !mayHave(records, field.split('.')))
}

function mayHave(value: Json | undefined, path: readonly string[]): boolean {
  const [name, ...rest] = path
  if (name === undefined || value === null) return true
  if (Array.isArray(value)) return value.length === 0 || value.some((each) => mayHave(each, path))
  return isJsonObject(value) && Object.hasOwn(value, name) && mayHave(value[name], rest)
}
