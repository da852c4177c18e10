import {
  create,
  type DescField,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  type MessageShape,
  toBinary,
  toJson,
} from '@bufbuild/protobuf'
import { Failure, isJsonObject, JSON_VALUES_MAX, type Json, type JsonObject } from '../../base/index.ts'
import type { Finding, ResultInit } from '../operation.ts'
import { hasMoreFields } from './binary.ts'
import {
  asDoubles,
  fillJson,
  fillMessage,
  freeFormFields,
  mapFreeForm,
  placeholderOf,
  withoutFreeForm,
} from './free-form.ts'
import { validateJsonShape } from './json-shape.ts'
import { tooManyValues } from './json-text.ts'

/** JSON has the field names of the contract, and fields without presence also when they have their default. */
export const JSON_WRITE_OPTIONS = { useProtoFieldName: true, alwaysEmitImplicit: true } as const

/** A decoded request: the message with everything that could be read, and findings about the rest. */
export interface DecodedRequest {
  readonly message: Message
  readonly findings: readonly Finding[]
}

/**
 * Reads a binary message of at most 50 000 fields. Unknown fields are left out.
 *
 * @throws Failure MALFORMED_BODY, REQUEST_TOO_LARGE
 */
export function decodeBinary(desc: DescMessage, bytes: Uint8Array): DecodedRequest {
  try {
    if (hasMoreFields(desc, bytes, JSON_VALUES_MAX)) throw tooManyValues()
    return { message: fromBinary(desc, bytes, { readUnknownFields: false }), findings: [] }
  } catch (cause) {
    if (cause instanceof Failure) throw cause
    throw new Failure('MALFORMED_BODY', `the body is not a ${desc.typeName} in protobuf encoding`, { cause })
  }
}

/**
 * Reads a message from JSON with field names in snake_case or lowerCamelCase. Every value that does not fit is a finding.
 *
 * @throws Failure MALFORMED_BODY when the value cannot be read for a reason that no field carries
 */
export function decodeJson(desc: DescMessage, json: Json): DecodedRequest {
  if (!isJsonObject(json)) throw new Failure('MALFORMED_BODY', 'the body must be a JSON object')
  try {
    return { message: readJson(desc, json), findings: [] }
  } catch (cause) {
    const { findings, rest } = validateJsonShape(desc, json)
    if (findings.length > 0) return { message: readJson(desc, rest), findings }
    throw new Failure('MALFORMED_BODY', `the body is not a ${desc.typeName}`, { cause })
  }
}

/** The message of a JSON object. @throws Error for JSON that does not fit the type */
export function readJson<Desc extends DescMessage>(desc: Desc, json: Json): MessageShape<Desc> {
  if (!isJsonObject(json)) throw new Error(`${desc.typeName} is written as a JSON object`)
  // protobuf's JSON type is ours without `readonly`, and it changes nothing it reads.
  const message = fromJson(desc, withoutFreeForm(desc, json) as never)
  fillMessage(freeFormFields(desc), message, json)
  return message
}

/** The message in protobuf encoding, numbers of free-form values as the nearest doubles; `init` is what a handler returned. */
export function encodeBinary(desc: DescMessage, init: ResultInit): Uint8Array {
  const doubles = mapFreeForm(freeFormFields(desc), init, asDoubles)
  return toBinary(desc, create(desc, doubles))
}

/** The message as JSON: field names of the contract, defaults included, times with milliseconds, free-form values unchanged. */
export function encodeJson(desc: DescMessage, init: ResultInit): JsonObject {
  const fields = freeFormFields(desc)
  const json = toJson(desc, create(desc, mapFreeForm(fields, init, placeholderOf)), JSON_WRITE_OPTIONS) as JsonObject
  formatTimestamps(desc, json as JsonValue)
  fillJson(fields, json, init)
  return json
}

type JsonRecord = Record<string, JsonValue>
type TimestampFormatter = (json: JsonValue) => JsonValue

const timestampFormatters = new Map<DescMessage, TimestampFormatter | undefined>()

/**
 * Gives every timestamp in a message's JSON exactly three decimals (`…:00.000Z`); protobuf writes none, three, six or
 * nine. Digits beyond milliseconds are dropped.
 *
 * Changes the JSON, which has the field names of the contract, in place. The paths of timestamps are computed once per message type.
 */
function formatTimestamps(desc: DescMessage, json: JsonValue): void {
  timestampFormatterFor(desc)?.(json)
}

function timestampFormatterFor(desc: DescMessage): TimestampFormatter | undefined {
  if (!timestampFormatters.has(desc)) timestampFormatters.set(desc, compileTimestampFormatter(desc))
  return timestampFormatters.get(desc)
}

function compileTimestampFormatter(desc: DescMessage): TimestampFormatter | undefined {
  if (desc.typeName === 'google.protobuf.Timestamp') return formatTimestamp
  if (desc.typeName.startsWith('google.protobuf.')) return undefined
  // A recursive type finds this entry while it is compiled, and its final one when it runs.
  timestampFormatters.set(desc, (json) => timestampFormatters.get(desc)?.(json) ?? json)
  const fields = desc.fields.flatMap((field) => {
    const fix = field.message === undefined ? undefined : timestampFormatterFor(field.message)
    return fix === undefined ? [] : [{ name: field.name, fix: overItems(field, fix) }]
  })
  if (fields.length === 0) return undefined
  return (json) => {
    const record = json as JsonRecord
    for (const { name, fix } of fields) {
      const value = record[name]
      if (value !== undefined) record[name] = fix(value)
    }
    return record
  }
}

function overItems(field: DescField, fix: TimestampFormatter): TimestampFormatter {
  if (field.fieldKind === 'list') return (items) => (items as JsonValue[]).map(fix)
  if (field.fieldKind !== 'map') return fix
  return (entries) => Object.fromEntries(Object.entries(entries as JsonRecord).map(([key, item]) => [key, fix(item)]))
}

const SECONDS_LENGTH = '2026-01-31T08:00:00'.length

function formatTimestamp(json: JsonValue): JsonValue {
  const text = String(json)
  const fraction = text.slice(SECONDS_LENGTH + 1, -1)
  return `${text.slice(0, SECONDS_LENGTH)}.${fraction.slice(0, 3).padEnd(3, '0')}Z`
}
