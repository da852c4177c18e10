import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { toCountry } from './countries.ts'
import { compileEnum, type EnumRule, rawText, toUnifiedValue } from './enums.ts'
import type { MappingWarning } from './mapping.ts'
import type { EnumConfig } from './mapping-schema.ts'
import {
  toBoolean,
  toDateOnly,
  toDateTime,
  toDecimal,
  toEmail,
  toInteger,
  toNumber,
  toText,
  toUri,
} from './scalar-values.ts'
import { hasRawField, isScalarNode, type ObjectNode, type ScalarNode, type SchemaNode } from './schema-node.ts'

/** Collects the warnings of one record. */
export interface Coercion {
  warnings: MappingWarning[] | undefined
  readonly includeSensitive: boolean
}

/** The value as the schema wants it; `null` when there is none or it does not fit, which is a warning. */
type Coerce = (value: Json, coercion: Coercion) => Json

/** The provider value of an enumeration, for the field beside it. */
type ReadRaw = (value: Json) => Json | undefined

/** A field of an object, compiled. */
export interface FieldCoercion {
  readonly key: string
  /** Dotted unified field. */
  readonly path: string
  readonly isSensitive: boolean
  /** Every object inherits a property of this name: `constructor`. */
  readonly isInherited: boolean
  readonly coerce: Coerce
  /** Present for enumerations whose provider value is kept. */
  readonly raw: { readonly key: string; readonly read: ReadRaw } | undefined
}

/** What mappings add to the schema. */
export interface CoercionRules {
  /** By dotted unified field. */
  readonly enums: Readonly<Record<string, EnumConfig>>
  /** Dotted fields beyond the schema that are kept as they are. */
  readonly extraFields: ReadonlySet<string>
}

/** Most warnings of one record. */
const WARNINGS_MAX = 50
/** Most elements of a list. */
const LIST_MAX = 10_000

/** Adds a warning. */
export function warn(coercion: Coercion, field: string, rule: string, message: string): void {
  coercion.warnings ??= []
  if (coercion.warnings.length < WARNINGS_MAX) coercion.warnings.push({ field, rule, message })
}

/** Compiles the fields of an object. @param path dotted, of the object itself; empty for the record */
export function compileFields(node: ObjectNode, path: string, rules: CoercionRules): readonly FieldCoercion[] {
  return [...node.properties].map(([key, child]) => {
    const at = path === '' ? key : `${path}.${key}`
    return {
      key,
      path: at,
      isSensitive: child.isSensitive,
      isInherited: key in Object.prototype,
      coerce: compileCoercion(child, at, rules),
      raw: compileRaw(key, child, rules.enums[at]),
    }
  })
}

function compileRaw(key: string, node: SchemaNode, config: EnumConfig | undefined): FieldCoercion['raw'] {
  const isKept = (hasRawField(node) || config !== undefined) && (config?.keep_raw ?? true)
  if (!isKept) return undefined
  const read: ReadRaw = node.kind === 'array' ? listRaw : (value) => rawText(only(value))
  return { key: `${key}_raw`, read: config === undefined ? readUnknown(node, read) : read }
}

/** Without a mapping a unified value is a provider value: only others are kept. */
function readUnknown(node: SchemaNode, read: ReadRaw): ReadRaw {
  const scalar = node.kind === 'array' ? node.items : node
  const known = new Set(isScalarNode(scalar) ? scalar.enum : [])
  return (value) => {
    const raw = read(value)
    if (typeof raw === 'string') return known.has(raw) ? undefined : raw
    return Array.isArray(raw) && raw.some((text) => !known.has(String(text))) ? raw : undefined
  }
}

function listRaw(value: Json): Json | undefined {
  const items: readonly Json[] = Array.isArray(value) ? value : [value]
  const texts = items.slice(0, LIST_MAX).flatMap((item) => rawText(item) ?? [])
  return texts.length === 0 ? undefined : texts
}

/** Compiles the coercion of a value. */
function compileCoercion(node: SchemaNode, path: string, rules: CoercionRules): Coerce {
  switch (node.kind) {
    case 'object':
      return node.isOpen ? coerceOpen(path) : compileObject(node, path, rules)
    case 'array':
      return compileList(compileCoercion(node.items, path, rules), path)
    case 'string':
      return compileText(node, path, rules)
    case 'number':
      return scalarCoercion(path, 'type', 'a number', toNumber)
    case 'integer':
      return scalarCoercion(path, 'type', 'a whole number', toInteger)
    case 'boolean':
      return scalarCoercion(path, 'type', 'true or false', toBoolean)
  }
}

function compileText(node: ScalarNode, path: string, rules: CoercionRules): Coerce {
  const config = rules.enums[path]
  if (node.enum !== undefined || config !== undefined) return enumCoercion(path, compileEnum(node, config))
  switch (node.format) {
    case 'date':
      return scalarCoercion(path, 'format', 'a date', toDateOnly)
    case 'date-time':
      return scalarCoercion(path, 'format', 'a time', toDateTime)
    case 'decimal':
      return scalarCoercion(path, 'format', 'a decimal number', toDecimal)
    case 'email':
      return scalarCoercion(path, 'format', 'an email address', toEmail)
    case 'uri':
      return scalarCoercion(path, 'format', 'an absolute URL', toUri)
    case 'country':
      return scalarCoercion(path, 'format', 'a country', (value) =>
        typeof value === 'string' ? toCountry(value) : undefined,
      )
    default:
      return textCoercion(path)
  }
}

/** Most values are texts, and texts of no format stay as they are. */
function textCoercion(path: string): Coerce {
  const coerceOther = scalarCoercion(path, 'type', 'a text', toText)
  return (given, coercion) => (typeof given === 'string' && given !== '' ? given : coerceOther(given, coercion))
}

/** A list of one value counts as the value; an empty text as none where no text is wanted. */
function scalarCoercion(path: string, rule: string, noun: string, convert: (value: Json) => Json | undefined): Coerce {
  return (given, coercion) => {
    if (given === null || given === '') return null
    const converted = convert(given)
    if (converted !== undefined) return converted
    const value = only(given)
    if (value === null || value === '') return null
    const inner = value === given ? undefined : convert(value)
    if (inner !== undefined) return inner
    warn(coercion, path, rule, `${describe(value)} is not ${noun}`)
    return null
  }
}

function enumCoercion(path: string, rule: EnumRule): Coerce {
  return (given, coercion) => {
    const value = only(given)
    if (value === null || value === '') return null
    const text = toText(value)
    const unified = text === undefined ? undefined : toUnifiedValue(rule, text)
    if (unified !== undefined) return unified
    warn(coercion, path, 'enum', `${describe(value)} has no counterpart`)
    return null
  }
}

function compileList(coerceItem: Coerce, path: string): Coerce {
  return (value, coercion) => {
    if (value === null) return null
    const items: readonly Json[] = Array.isArray(value) ? value : [value]
    if (items.length > LIST_MAX) warn(coercion, path, 'max', `has ${items.length} entries: only ${LIST_MAX} are kept`)
    return coerceItems(items.length > LIST_MAX ? items.slice(0, LIST_MAX) : items, coerceItem, coercion)
  }
}

/** The entries that are values; the same list when each is as the schema wants it. */
function coerceItems(items: readonly Json[], coerceItem: Coerce, coercion: Coercion): readonly Json[] {
  let coerced: Json[] | undefined
  for (let at = 0; at < items.length; at++) {
    const item = items[at] as Json
    const each = coerceItem(item, coercion)
    if (each !== item || each === null) coerced ??= items.slice(0, at)
    if (each !== null) coerced?.push(each)
  }
  return coerced ?? items
}

/** A free-form object. */
function coerceOpen(path: string): Coerce {
  return (given, coercion) => {
    const value = only(given)
    if (isJsonObject(value) || value === null) return value
    warn(coercion, path, 'type', `${describe(value)} is not an object`)
    return null
  }
}

function compileObject(node: ObjectNode, path: string, rules: CoercionRules): Coerce {
  const fields = compileFields(node, path, rules)
  const known = new Set(fields.flatMap(({ key, raw }) => (raw === undefined ? [key] : [key, raw.key])))
  const extras = [...rules.extraFields].flatMap((field) =>
    field.startsWith(`${path}.`) ? [field.slice(path.length + 1)] : [],
  )
  const kept = new Set(extras.map((field) => field.split('.')[0] ?? field))
  const needed = node.isReference ? ['id', 'name'] : [...node.required]
  return (given, coercion) => {
    const value = only(given)
    if (value === null || value === '') return null
    if (!isJsonObject(value)) return coerceToReference(node, value, path, coercion)
    const object = coerceFields(fields, value, coercion)
    if (object === undefined) return hasValue(value, needed) ? value : null
    for (const key in value) {
      if (known.has(key) || !Object.hasOwn(value, key)) continue
      if (kept.has(key)) object[key] = value[key] ?? null
      else warn(coercion, path, 'unknown_field', `${key.slice(0, 100)} is not in the schema and is left out`)
    }
    return hasValue(object, needed) ? object : null
  }
}

/** The fields of an object; `undefined` when it has no other keys and each value is as the schema wants it. */
export function coerceFields(
  fields: readonly FieldCoercion[],
  value: JsonObject,
  coercion: Coercion,
): Record<string, Json> | undefined {
  let object: Record<string, Json> | undefined
  let left = countKeys(value)
  for (let at = 0; at < fields.length; at++) {
    const field = fields[at] as FieldCoercion
    const item = ownValue(value, field)
    if (item === undefined || (field.isSensitive && !coercion.includeSensitive)) continue
    left--
    const coerced = field.coerce(item, coercion)
    const raw = field.raw === undefined ? undefined : rawOf(field.raw, item, value[field.raw.key])
    if (coerced !== item || raw !== undefined) object ??= copyFields(fields, at, value, coercion)
    if (object === undefined) continue
    object[field.key] = coerced
    if (field.raw !== undefined && raw !== undefined) object[field.raw.key] = raw
  }
  return object ?? (left === 0 ? undefined : copyFields(fields, fields.length, value, coercion))
}

/** The values of the first fields, which are as the schema wants them. */
function copyFields(
  fields: readonly FieldCoercion[],
  end: number,
  value: JsonObject,
  { includeSensitive }: Coercion,
): Record<string, Json> {
  const object: Record<string, Json> = {}
  for (let at = 0; at < end; at++) {
    const field = fields[at] as FieldCoercion
    const item = ownValue(value, field)
    if (item !== undefined && (!field.isSensitive || includeSensitive)) object[field.key] = item
  }
  return object
}

function countKeys(value: JsonObject): number {
  let count = 0
  for (const _key in value) count++
  return count
}

/** The value of a field. Asking first whether the key is the object's own takes three times as long as reading. */
function ownValue(object: JsonObject, { key, isInherited }: FieldCoercion): Json | undefined {
  return isInherited && !Object.hasOwn(object, key) ? undefined : object[key]
}

/** The provider value: as the mapping gives it, else as it was before the enumeration. */
export function rawOf(raw: NonNullable<FieldCoercion['raw']>, item: Json, given: Json | undefined): Json | undefined {
  return given === undefined || given === null ? raw.read(item) : raw.read(given)
}

/** A scalar where a reference is wanted is its id. */
function coerceToReference(node: ObjectNode, value: Json, path: string, coercion: Coercion): Json {
  const id = node.isReference ? toText(value) : undefined
  if (id !== undefined) return { id }
  warn(coercion, path, 'type', `${describe(value)} is not an object`)
  return null
}

/**
 * Whether an object says anything.
 *
 * @param needed id and name of a reference, else what the object must have: one of them must be there; if empty, any key
 */
function hasValue(object: JsonObject, needed: readonly string[]): boolean {
  for (const key of needed) if ((object[key] ?? null) !== null) return true
  if (needed.length === 0) for (const key in object) if (object[key] !== null) return true
  return false
}

/** The only element of a list of one, else the value. */
function only(value: Json): Json {
  return Array.isArray(value) && value.length === 1 ? (value[0] as Json) : value
}

const SHOWN_LENGTH_MAX = 60

/** A value for a message: scalars are shown, of others the type. */
function describe(value: Json): string {
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (isJsonObject(value)) return 'an object'
  return JSON.stringify(value).slice(0, SHOWN_LENGTH_MAX)
}
