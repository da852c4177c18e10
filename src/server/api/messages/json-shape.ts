import { type DescEnum, type DescField, type DescMessage, fromJson, getOption, ScalarType } from '@bufbuild/protobuf'
import { field as fieldRules } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { suggest } from '../../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject, toDoubles } from '../../../foundation/json/index.ts'
import type { Finding } from '../operation.ts'

/** Most findings in one error; a body of garbage would yield millions. */
export const FINDINGS_MAX = 100

/** Longest part of an unknown key that is repeated to its sender. */
const PATH_LENGTH_MAX = 200

/** The parts of a JSON value that fit a message type, and findings about the others. */
export interface ShapeReport {
  readonly findings: readonly Finding[]
  /** The parts that fit, which can be decoded and validated by the rules. */
  readonly rest: JsonObject
}

/**
 * Validates the shape of JSON against a message type and reports everything that does not fit: unknown fields, wrong types, one
 * field as snake_case and as lowerCamelCase, two members of a oneof.
 *
 * `fromJson` stops at the first problem and says little: this runs after it has failed. Single values are checked by
 * `fromJson` itself, so the two cannot disagree.
 */
export function validateJsonShape(desc: DescMessage, value: Json): ShapeReport {
  const findings: Finding[] = []
  const rest = validateMessage(desc, value, '', findings)
  return { findings, rest: rest ?? {} }
}

function validateMessage(desc: DescMessage, value: Json, path: string, findings: Finding[]): JsonObject | undefined {
  if (!isJsonObject(value)) {
    findings.push({ field: path, description: 'must be a JSON object', rule: 'type' })
    return undefined
  }
  const rest: Record<string, Json> = {}
  const firstKeys = new Map<string, string>()
  for (const key of Object.keys(value)) {
    if (findings.length >= FINDINGS_MAX) break
    const item = value[key] ?? null
    const field = fieldNamed(desc, key)
    const name = field?.name ?? key
    const at = path === '' ? name : `${path}.${name}`
    const finding =
      field === undefined ? unknownField(desc, key, at) : duplicateFinding(field, key, item, at, firstKeys)
    if (finding !== undefined) findings.push(finding)
    if (finding !== undefined || field === undefined) continue
    const kept = validateField(field, item, at, findings)
    if (kept !== undefined) rest[field.name] = kept
  }
  return rest
}

/** The field of this name in snake_case or lowerCamelCase. */
export function fieldNamed(desc: DescMessage, key: string): DescField | undefined {
  return desc.fields.find(({ name, jsonName }) => name === key || jsonName === key)
}

/** The finding for an unknown key, with the field that was probably meant. */
function unknownField(desc: DescMessage, key: string, at: string): Finding {
  const names = desc.fields.map(({ name }) => name)
  return {
    field: at.slice(0, PATH_LENGTH_MAX),
    description: `is not a known field${suggest(key, names)}`,
    rule: 'unknown_field',
  }
}

/** The finding for a field given twice or beside another member of its oneof. `firstKeys` has the first key of fields and oneofs. */
function duplicateFinding(
  field: DescField,
  key: string,
  item: Json,
  at: string,
  firstKeys: Map<string, string>,
): Finding | undefined {
  const firstKey = firstKeys.get(field.name)
  if (firstKey !== undefined)
    return { field: at, description: `is given twice, as ${firstKey} and ${key}`, rule: 'duplicate_field' }
  firstKeys.set(field.name, key)
  if (field.oneof === undefined || item === null) return undefined
  const group = `oneof ${field.oneof.name}`
  const other = firstKeys.get(group)
  if (other === undefined) {
    firstKeys.set(group, field.name)
    return undefined
  }
  const conflict = { field: at, description: `cannot be given together with ${other}`, rule: 'oneof' }
  return field.oneof.name === 'destination' ? { ...conflict, reason: 'DESTINATION_CONFLICT' } : conflict
}

/**
 * A finding for a destination that is null while the other is absent: that would leave records without a place to go. Beside
 * the other, null counts as absent, and both as null say nothing, as clients do that write null for every absent field.
 */
export function nullChoices(desc: DescMessage, json: JsonObject): readonly Finding[] {
  const destination = desc.oneofs.find(({ name }) => name === 'destination')
  if (destination === undefined) return []
  const given = destination.fields.filter(
    ({ name, jsonName }) => Object.hasOwn(json, name) || Object.hasOwn(json, jsonName),
  )
  const [field] = given
  if (field === undefined || given.length > 1 || (json[field.name] ?? json[field.jsonName]) != null) return []
  const names = destination.fields.map(({ name }) => name).join(' or ')
  const description = `cannot be null alone: records need a destination, give ${names}`
  return [{ field: field.name, description, rule: 'destination.required', reason: 'DESTINATION_REQUIRED' }]
}

/** The part of a field's value that fits, or `undefined` when nothing does. */
function validateField(field: DescField, item: Json, at: string, findings: Finding[]): Json | undefined {
  if (item === null) return item
  if (field.fieldKind === 'list' && Array.isArray(item)) return validateList(field, item, at, findings)
  if (field.fieldKind === 'map' && isJsonObject(item)) return validateMap(field, item, at, findings)
  if (field.fieldKind === 'message' && isPlainMessage(field.message))
    return validateMessage(field.message, item, at, findings)
  return validateValue(field, item, item, at, findings)
}

/** A list is kept whole or not at all, so that the indexes of later findings stay true. */
function validateList(field: DescField & { fieldKind: 'list' }, items: readonly Json[], at: string, out: Finding[]) {
  const message = field.listKind === 'message' && isPlainMessage(field.message) ? field.message : undefined
  const before = out.length
  const kept = items.flatMap((item, index) => {
    if (out.length >= FINDINGS_MAX) return []
    const itemPath = `${at}[${index}]`
    const fit = message
      ? validateMessage(message, item, itemPath, out)
      : validateValue(field, item, [item], itemPath, out)
    return fit === undefined ? [] : [fit]
  })
  return out.length === before ? kept : undefined
}

function validateMap(field: DescField & { fieldKind: 'map' }, entries: JsonObject, at: string, out: Finding[]) {
  const message = field.mapKind === 'message' && isPlainMessage(field.message) ? field.message : undefined
  const kept = Object.entries(entries).flatMap(([key, item]) => {
    if (out.length >= FINDINGS_MAX) return []
    const itemPath = `${at}.${key}`
    const value = message
      ? validateMessage(message, item, itemPath, out)
      : validateValue(field, item, { [key]: item }, itemPath, out)
    return value === undefined ? [] : [[key, value] as const]
  })
  return Object.fromEntries(kept)
}

/** Checks one value with `fromJson`, wrapped as the field requires. */
function validateValue(field: DescField, item: Json, wrapped: Json, at: string, findings: Finding[]): Json | undefined {
  try {
    fromJson(field.parent, { [field.name]: toDoubles(wrapped) as never })
    return item
  } catch {
    findings.push({ field: at, description: expectedType(field), rule: 'type' })
    return undefined
  }
}

/** Tells whether JSON writes a message as an object of its fields; well-known types have JSON forms of their own. */
export function isPlainMessage(desc: DescMessage): boolean {
  return !desc.typeName.startsWith('google.protobuf.') || desc.typeName === 'google.protobuf.Empty'
}

/** The expected type of a field, or of one item of a list or map, in words: `must be true or false`. */
export function expectedType(field: DescField): string {
  if (field.fieldKind === 'message') return `must be ${messageNoun(field.message)}`
  if (field.fieldKind === 'enum') return `must be ${enumNoun(field.enum)}`
  if (field.fieldKind === 'scalar') return `must be ${boundedNoun(field) ?? scalarNoun(field.scalar)}`
  if (field.fieldKind === 'list') return `must be a list, each item ${itemNoun(field)}`
  return `must be an object, each value ${itemNoun(field)}`
}

/** An integer within the bounds of its rules (`buf.validate`), where the contract gives both or the lower one. */
function boundedNoun(field: DescField): string | undefined {
  const { type } = getOption(field, fieldRules)
  if (type.case !== 'int32') return undefined
  const { greaterThan, lessThan } = type.value
  if (greaterThan.case !== 'gte') return undefined
  const max = lessThan.case === 'lte' ? lessThan.value : INT32_MAX
  return `an integer from ${greaterThan.value} to ${max}`
}

const INT32_MAX = 2 ** 31 - 1

function itemNoun(field: DescField & { fieldKind: 'list' | 'map' }): string {
  if (field.message !== undefined) return messageNoun(field.message)
  if (field.enum !== undefined) return enumNoun(field.enum)
  return scalarNoun(field.scalar)
}

function enumNoun(desc: DescEnum): string {
  return `one of ${desc.values.map(({ name }) => name).join(', ')}`
}

/** Messages that are one scalar in JSON. */
const WRAPPER = /^google\.protobuf\.(?:Bool|String|Bytes|Double|Float|U?Int(?:32|64))Value$/

function messageNoun(desc: DescMessage): string {
  if (WRAPPER.test(desc.typeName)) return scalarNoun(desc.fields[0]?.scalar)
  switch (desc.typeName) {
    case 'google.protobuf.Timestamp':
      return 'an RFC 3339 time such as 2026-01-31T08:00:00Z'
    case 'google.protobuf.Duration':
      return 'a duration in seconds such as "1.5s"'
    case 'google.protobuf.FieldMask':
      return 'field names separated by commas'
    case 'google.protobuf.ListValue':
      return 'a list'
    case 'google.protobuf.Value':
      return 'a JSON value'
    default:
      return 'a JSON object'
  }
}

function scalarNoun(scalar: ScalarType | undefined): string {
  switch (scalar) {
    case ScalarType.BOOL:
      return 'true or false'
    case ScalarType.STRING:
      return 'a string'
    case ScalarType.BYTES:
      return 'a string in base64'
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return 'a number'
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return 'an integer from 0 to 4294967295'
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return 'an integer from -2147483648 to 2147483647'
    default:
      return 'an integer of 64 bits'
  }
}
