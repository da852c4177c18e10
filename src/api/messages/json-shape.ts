import { type DescEnum, type DescField, type DescMessage, fromJson, getOption, ScalarType } from '@bufbuild/protobuf'
import { field as fieldRules } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { isJsonObject, type Json, type JsonObject, suggest, toDoubles } from '../../base/index.ts'
import type { Finding } from '../operation.ts'

/** Findings reported of one body; a body of garbage would yield millions. */
export const FINDINGS_MAX = 100

/** A key that nobody knows may be of any length; no more than this of it is repeated to its sender. */
const PATH_LENGTH_MAX = 200

/** What of a JSON value fits its message, and everything that does not. */
export interface ShapeReport {
  readonly findings: readonly Finding[]
  /** The value without its misfits, so that the rest can be decoded and checked against the rules. */
  readonly rest: JsonObject
}

/**
 * Compares JSON with a message type and reports every misfit: unknown fields, wrong types, one field in both spellings,
 * two members of a oneof.
 *
 * It is the slow twin of `fromJson`, which stops at the first misfit and says little: run it when `fromJson` refused.
 * Single values are judged by `fromJson` itself, so the two cannot disagree.
 */
export function validateJsonShape(desc: DescMessage, value: Json): ShapeReport {
  const findings: Finding[] = []
  const rest = inspectMessage(desc, value, '', findings)
  return { findings, rest: rest ?? {} }
}

function inspectMessage(desc: DescMessage, value: Json, path: string, findings: Finding[]): JsonObject | undefined {
  if (!isJsonObject(value)) {
    findings.push({ field: path, description: 'must be a JSON object', rule: 'type' })
    return undefined
  }
  const rest: Record<string, Json> = {}
  const taken = new Map<string, string>()
  for (const key of Object.keys(value)) {
    if (findings.length >= FINDINGS_MAX) break
    const item = value[key] ?? null
    const field = fieldNamed(desc, key)
    const name = field?.name ?? key
    const at = path === '' ? name : `${path}.${name}`
    const misfit = field === undefined ? unknownField(desc, key, at) : collision(field, key, item, at, taken)
    if (misfit !== undefined) findings.push(misfit)
    if (misfit !== undefined || field === undefined) continue
    const kept = inspectField(field, item, at, findings)
    if (kept !== undefined) rest[field.name] = kept
  }
  return rest
}

/** The field of this name, in the contract's spelling or in lower camel case. */
export function fieldNamed(desc: DescMessage, key: string): DescField | undefined {
  return desc.fields.find(({ name, jsonName }) => name === key || jsonName === key)
}

/** A key that names no field, with the one that was probably meant. */
export function unknownField(desc: DescMessage, key: string, at: string): Finding {
  const names = desc.fields.map(({ name }) => name)
  return {
    field: at.slice(0, PATH_LENGTH_MAX),
    description: `is not a known field${suggest(key, names)}`,
    rule: 'unknown_field',
  }
}

/** The field given twice, or beside another member of its oneof. `taken` maps fields and oneofs to the key that won. */
function collision(
  field: DescField,
  key: string,
  item: Json,
  at: string,
  taken: Map<string, string>,
): Finding | undefined {
  const twin = taken.get(field.name)
  if (twin !== undefined)
    return { field: at, description: `is given twice, as ${twin} and ${key}`, rule: 'duplicate_field' }
  taken.set(field.name, key)
  if (field.oneof === undefined || item === null) return undefined
  const group = `oneof ${field.oneof.name}`
  const rival = taken.get(group)
  if (rival === undefined) {
    taken.set(group, field.name)
    return undefined
  }
  const conflict = { field: at, description: `cannot be given together with ${rival}`, rule: 'oneof' }
  return field.oneof.name === 'destination' ? { ...conflict, reason: 'DESTINATION_CONFLICT' } : conflict
}

/** The part of a field's value that fits, or `undefined` when nothing does. */
function inspectField(field: DescField, item: Json, at: string, findings: Finding[]): Json | undefined {
  if (item === null) return item
  if (field.fieldKind === 'list' && Array.isArray(item)) return inspectList(field, item, at, findings)
  if (field.fieldKind === 'map' && isJsonObject(item)) return inspectMap(field, item, at, findings)
  if (field.fieldKind === 'message' && isPlainMessage(field.message))
    return inspectMessage(field.message, item, at, findings)
  return probe(field, item, item, at, findings)
}

/** A list is kept whole or not at all, so that the indexes of later findings stay true. */
function inspectList(field: DescField & { fieldKind: 'list' }, items: readonly Json[], at: string, out: Finding[]) {
  const message = field.listKind === 'message' && isPlainMessage(field.message) ? field.message : undefined
  const before = out.length
  const kept = items.flatMap((item, index) => {
    if (out.length >= FINDINGS_MAX) return []
    const place = `${at}[${index}]`
    const fit = message ? inspectMessage(message, item, place, out) : probe(field, item, [item], place, out)
    return fit === undefined ? [] : [fit]
  })
  return out.length === before ? kept : undefined
}

function inspectMap(field: DescField & { fieldKind: 'map' }, entries: JsonObject, at: string, out: Finding[]) {
  const message = field.mapKind === 'message' && isPlainMessage(field.message) ? field.message : undefined
  const kept = Object.entries(entries).flatMap(([key, item]) => {
    if (out.length >= FINDINGS_MAX) return []
    const place = `${at}.${key}`
    const value = message ? inspectMessage(message, item, place, out) : probe(field, item, { [key]: item }, place, out)
    return value === undefined ? [] : [[key, value] as const]
  })
  return Object.fromEntries(kept)
}

/** Lets `fromJson` judge one value, wrapped as the field wants it. */
function probe(field: DescField, item: Json, wrapped: Json, at: string, findings: Finding[]): Json | undefined {
  try {
    fromJson(field.parent, { [field.name]: toDoubles(wrapped) as never })
    return item
  } catch {
    findings.push({ field: at, description: expectedType(field), rule: 'type' })
    return undefined
  }
}

/** A message written as an object of its fields; the well-known types have spellings of their own. */
export function isPlainMessage(desc: DescMessage): boolean {
  return !desc.typeName.startsWith('google.protobuf.') || desc.typeName === 'google.protobuf.Empty'
}

/** What a value of the field, or one item of a list or map, must be: `must be true or false`. */
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

/** Messages that stand for one scalar in JSON. */
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
