import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  type MessageShape,
  toJson,
} from '@bufbuild/protobuf'
import { Failure } from '../../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import type { Finding, ResultInit } from '../operation.ts'
import { fillJson, fillMessage, freeFormFields, mapFreeForm, placeholderOf, withoutFreeForm } from './free-form.ts'
import { nullChoices, validateJsonShape } from './json-shape.ts'
import { parseRequestJsonInSlices } from './json-text.ts'

/** JSON has the field names of the contract, and fields without presence also when they have their default. */
export const JSON_WRITE_OPTIONS = { useProtoFieldName: true, alwaysEmitImplicit: true } as const

/** A decoded request: the message with everything that could be read, and findings about the rest. */
export interface DecodedRequest {
  readonly message: Message
  readonly findings: readonly Finding[]
}

/**
 * Reads a message from the text of a body; a large one is parsed in slices, between which other requests run.
 *
 * @throws Failure as `decodeJson` and `parseRequestJson` do
 */
export async function decodeJsonBody(desc: DescMessage, body: Buffer): Promise<DecodedRequest> {
  return decodeJson(desc, await parseRequestJsonInSlices(body))
}

/**
 * Reads a message from JSON with field names in snake_case or lowerCamelCase. Every value that does not fit is a finding.
 *
 * @throws Failure MALFORMED_BODY when the value cannot be read for a reason that no field carries
 */
export function decodeJson(desc: DescMessage, json: Json): DecodedRequest {
  if (!isJsonObject(json)) throw new Failure('MALFORMED_BODY', 'the body must be a JSON object')
  try {
    return { message: withEmptyLists(desc, readJson(desc, json), json), findings: nullChoices(desc, json) }
  } catch (cause) {
    const { findings, rest } = validateJsonShape(desc, json)
    if (findings.length > 0) return { message: readJson(desc, rest), findings }
    throw new Failure('MALFORMED_BODY', `the body is not a ${desc.typeName}`, { cause })
  }
}

/**
 * Notes an empty or null list where the message has a flag for it: `resources: []` is `resources_inherited: true`, because
 * protobuf cannot tell an empty list from an absent one.
 */
function withEmptyLists<Read extends Message>(desc: DescMessage, message: Read, json: JsonObject): Read {
  for (const { name, jsonName, fieldKind } of desc.fields) {
    const flag = fieldKind === 'list' ? desc.field[`${name}Inherited`] : undefined
    if (flag === undefined) continue
    const given = json[name] === undefined ? json[jsonName] : json[name]
    const isEmpty = given === null || (Array.isArray(given) && given.length === 0)
    if (isEmpty && Reflect.get(message, flag.localName) === undefined) Reflect.set(message, flag.localName, true)
  }
  return message
}

/** The message of a JSON object. @throws Error for JSON that does not fit the type */
export function readJson<Desc extends DescMessage>(desc: Desc, json: Json): MessageShape<Desc> {
  if (!isJsonObject(json)) throw new Error(`${desc.typeName} is written as a JSON object`)
  // protobuf's JSON type is ours without `readonly`, and it changes nothing it reads.
  const message = fromJson(desc, withoutFreeForm(desc, json) as never)
  fillMessage(freeFormFields(desc), message, json)
  return message
}

/**
 * The message as JSON: field names of the contract, defaults included, times with milliseconds, null for what was not chosen,
 * free-form values unchanged.
 */
export function encodeJson(desc: DescMessage, init: ResultInit): JsonObject {
  const fields = freeFormFields(desc)
  const json = toJson(desc, create(desc, mapFreeForm(fields, init, placeholderOf)), JSON_WRITE_OPTIONS) as JsonObject
  formatJson(desc, json as JsonValue)
  fillJson(fields, json, init)
  return json
}

type JsonRecord = Record<string, JsonValue>
type JsonFormatter = (json: JsonValue) => JsonValue

const formatters = new Map<DescMessage, JsonFormatter | undefined>()

/**
 * Gives a message's JSON what protobuf's leaves open: every timestamp has exactly three decimals (`…:00.000Z`; protobuf writes
 * none, three, six or nine, and digits beyond milliseconds are dropped), and the unset members of a choice between scalars are
 * null, so that an answer says what was not chosen.
 *
 * Changes the JSON, which has the field names of the contract, in place. What to change is computed once per message type.
 */
function formatJson(desc: DescMessage, json: JsonValue): void {
  formatterFor(desc)?.(json)
}

function formatterFor(desc: DescMessage): JsonFormatter | undefined {
  if (!formatters.has(desc)) formatters.set(desc, compileFormatter(desc))
  return formatters.get(desc)
}

function compileFormatter(desc: DescMessage): JsonFormatter | undefined {
  if (desc.typeName === 'google.protobuf.Timestamp') return formatTimestamp
  if (desc.typeName.startsWith('google.protobuf.')) return undefined
  // A recursive type finds this entry while it is compiled, and its final one when it runs.
  formatters.set(desc, (json) => formatters.get(desc)?.(json) ?? json)
  const fields = desc.fields.flatMap((field) => {
    const fix = field.message === undefined ? undefined : formatterFor(field.message)
    return fix === undefined ? [] : [{ name: field.name, fix: overItems(field, fix) }]
  })
  const choices = choiceMembers(desc)
  if (fields.length === 0 && choices.length === 0) return undefined
  return (json) => {
    const record = json as JsonRecord
    for (const { name, fix } of fields) {
      const value = record[name]
      if (value !== undefined) record[name] = fix(value)
    }
    for (const name of choices) record[name] ??= null
    return record
  }
}

/** The members of choices (`oneof`) between scalars; none of a request, whose absent fields are not given. */
function choiceMembers(desc: DescMessage): readonly string[] {
  if (desc.name.endsWith('Request')) return []
  return desc.oneofs
    .filter(({ fields }) => fields.every(({ fieldKind }) => fieldKind === 'scalar'))
    .flatMap(({ fields }) => fields.map(({ name }) => name))
}

function overItems(field: DescField, fix: JsonFormatter): JsonFormatter {
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
