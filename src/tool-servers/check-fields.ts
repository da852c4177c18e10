import { isJsonObject, type Json, type JsonObject, suggest, type Violation } from '../base/index.ts'

/** A model repairs a few fields at a time. */
const VIOLATIONS_MAX = 20
const NAME_LENGTH_MAX = 100
/** Of records that are mapped: what did not fit, and the third party's value of a field. */
const WARNINGS_FIELD = '_warnings'
const RAW_SUFFIX = '_raw'

/**
 * Checks the fields of a projection against the schema of the records. What the schema leaves open is valid, such as the names
 * below `custom_fields`.
 *
 * @param argument the argument that has the fields, named in the violations
 * @returns at most 20 violations
 */
export function checkFields(record: JsonObject, fields: readonly string[], argument: string): readonly Violation[] {
  const found: Violation[] = []
  for (const [at, field] of fields.entries()) {
    const unknown = findUnknown(record, field.split('.'))
    if (unknown === undefined) continue
    const description = `${field.slice(0, NAME_LENGTH_MAX)} is not a field of these records${unknown.hint}`
    found.push({ field: `${argument}[${at}]`, description, rule: 'unknown_field' })
    if (found.length === VIOLATIONS_MAX) break
  }
  return found
}

/** What is wrong with a path, if anything: the names to suggest are those beside the unknown one. */
function findUnknown(schema: Json | undefined, path: readonly string[]): { readonly hint: string } | undefined {
  const [name, ...rest] = path
  if (name === undefined || !isJsonObject(schema)) return undefined
  if (schema.items !== undefined) return findUnknown(schema.items, path)
  const { properties } = schema
  if (!isJsonObject(properties)) return isScalar(schema) ? { hint: '' } : undefined
  if (Object.hasOwn(properties, name)) return findUnknown(properties[name], rest)
  const isRaw = name.endsWith(RAW_SUFFIX) && Object.hasOwn(properties, name.slice(0, -RAW_SUFFIX.length))
  if (isRaw || name === WARNINGS_FIELD) return undefined
  return { hint: suggest(name.slice(0, NAME_LENGTH_MAX), Object.keys(properties)) }
}

function isScalar({ type }: JsonObject): boolean {
  const types = Array.isArray(type) ? type : [type]
  return type !== undefined && !types.includes('object') && !types.includes('array')
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
