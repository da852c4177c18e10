import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import { Failure, suggest } from '../../../foundation/base/index.ts'
import { isJsonObject, type Json } from '../../../foundation/json/index.ts'
import { FINDINGS_MAX, fieldNamed, isPlainMessage } from '../messages/json-shape.ts'
import { parseRequestJson, parseRequestJsonInSlices } from '../messages/json-text.ts'
import { readQuery } from '../messages/query-string.ts'
import type { Finding, UnaryOperation } from '../operation.ts'
import type { RequestContext } from '../request-context.ts'
import type { PathVariable } from './router.ts'

/** A JSON object under construction. */
type JsonDraft = Record<string, Json>

/**
 * The fields along a path through nested messages, each in snake_case or lowerCamelCase; absent when one is unknown.
 *
 * @param path at least one name
 */
function fieldsAt(desc: DescMessage, path: readonly string[]): readonly DescField[] | undefined {
  const [name = '', ...inner] = path
  const field = fieldNamed(desc, name)
  if (field === undefined) return undefined
  if (inner.length === 0) return [field]
  if (field.fieldKind !== 'message' || !isPlainMessage(field.message)) return undefined
  const rest = fieldsAt(field.message, inner)
  return rest && [field, ...rest]
}

/** A field path in errors: `part.made_at`. */
function nameOfPath(fields: readonly DescField[]): string {
  return fields.map(({ name }) => name).join('.')
}

/** Free-form messages, whose text in a path or query is JSON. */
const FREE_FORM = /^google\.protobuf\.(?:Struct|Value|ListValue)$/

/** Tells whether the field can be written as text in a path or a query: everything but maps and other messages. */
function isTextual(field: DescField): boolean {
  if (field.fieldKind === 'map') return false
  return field.message === undefined || !(isPlainMessage(field.message) || field.message.typeName.endsWith('.Any'))
}

/** Tells whether a segment of the path can give the field: one scalar, enum or message written as one text. */
export function isPathVariable(field: DescField | undefined): boolean {
  if (field === undefined || field.fieldKind === 'list' || !isTextual(field)) return false
  return !FREE_FORM.test(field.message?.typeName ?? '')
}

/**
 * The JSON of a text in the path or query. Text that does not fit stays text, and is then rejected like any value of the wrong
 * type.
 *
 * @returns undefined for a free-form field whose text is not JSON
 */
function jsonOfText(field: DescField, text: string): Json | undefined {
  const typeName = field.message?.typeName ?? ''
  if (FREE_FORM.test(typeName)) return jsonOrUndefined(text)
  if (field.scalar === ScalarType.BOOL || typeName === 'google.protobuf.BoolValue') return booleanOfText(text)
  // Enums go by name or by number, as in JSON.
  if (field.enum !== undefined && /^-?\d{1,10}$/.test(text)) return Number(text)
  if (typeName !== 'google.protobuf.FieldMask') return text
  return text.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function booleanOfText(text: string): Json {
  return text === 'true' ? true : text === 'false' ? false : text
}

function jsonOrUndefined(text: string): Json | undefined {
  try {
    return text === '' ? undefined : parseRequestJson(Buffer.from(text))
  } catch {
    return undefined
  }
}

/** Sets the value at a field path, adds the objects in between, and renames fields on the way to snake_case. */
function setAt(target: JsonDraft, fields: readonly DescField[], value: Json): void {
  const [field, ...inner] = fields
  if (field === undefined) return
  const { name, jsonName } = field
  const below = target[name] ?? target[jsonName]
  if (jsonName !== name) delete target[jsonName]
  if (inner.length === 0) {
    target[name] = value
    return
  }
  const child: JsonDraft = isJsonObject(below) ? { ...below } : {}
  setAt(child, inner, value)
  target[name] = child
}

/** Longest part of a parameter's name that is repeated to its sender. */
const NAME_LENGTH_MAX = 200

/** A REST request taken apart: its binding, the variables of its path and its query. */
export interface RestRequest {
  readonly binding: RestBinding
  readonly variables: readonly PathVariable[]
  /** The text after `?`, or empty. */
  readonly query: string
}

/** The request as one JSON value, and findings about path and query. */
export interface RequestJson {
  readonly json: Json
  readonly findings: readonly Finding[]
}

/**
 * Merges body, query, headers and path into the JSON of the request message, in this order: a later one wins.
 *
 * @throws Failure MALFORMED_BODY
 */
export async function requestJson(request: RestRequest, body: Buffer, context: RequestContext): Promise<RequestJson> {
  const findings: Finding[] = []
  const fromBody = await bodyJson(request, body)
  // The shape check rejects a body that is no object.
  if (!isJsonObject(fromBody)) return { json: fromBody, findings }
  // Changed in place: nothing else has the parsed value, and a copy of many members takes as long as parsing them.
  const json = fromBody as JsonDraft
  addQuery(json, request, findings)
  addHeaders(json, request, context)
  addPath(json, request, findings)
  return { json, findings }
}

async function bodyJson({ binding }: RestRequest, bytes: Buffer): Promise<Json> {
  if (binding.hasBody) return parseRequestJsonInSlices(bytes)
  if (/^(?:\{\s*\})?$/.test(bytes.toString('latin1').trim())) return {}
  throw new Failure('MALFORMED_BODY', 'this operation takes no body; its parameters go into the query')
}

/** Prefix of system parameters such as `$alt` and `$prettyPrint`, which generated Google-style clients add. */
const SYSTEM_PARAMETER_PREFIX = '$'

/** The texts of one field in the query, and the name that the client used first. */
interface GivenField {
  readonly name: string
  readonly fields: readonly DescField[]
  readonly texts: string[]
}

/** Adds the fields of the query. System parameters are ignored: there is one response format. */
function addQuery(json: JsonDraft, request: RestRequest, findings: Finding[]): void {
  if (request.query === '') return
  const given = new Map<string, GivenField>()
  const unknown = new Set<string>()
  for (const [name, value] of readQuery(request.query, findings)) {
    if (name.startsWith(SYSTEM_PARAMETER_PREFIX)) continue
    const fields = queryField(request, name)
    if (fields === undefined) unknown.add(name)
    else {
      const key = nameOfPath(fields)
      const known = given.get(key)
      if (known === undefined) given.set(key, { name, fields, texts: [value] })
      else known.texts.push(value)
    }
  }
  for (const name of [...unknown].slice(0, FINDINGS_MAX)) findings.push(unknownParameter(request, name))
  for (const field of given.values()) addGivenField(json, field, findings)
}

/**
 * The fields that a query parameter names; undefined when it names none, or one that body or path give. Dots lead into nested
 * messages; where there is none, `integration.name` is the filter `integration_name`.
 */
function queryField({ binding, variables }: RestRequest, name: string): readonly DescField[] | undefined {
  const { operation, hasBody } = binding
  if (hasBody) return undefined
  const path = name.split('.')
  const fields = fieldsAt(operation.input, path) ?? fieldsAt(operation.input, [path.join('_')])
  const last = fields?.at(-1)
  if (fields === undefined || last === undefined || !isTextual(last)) return undefined
  const field = nameOfPath(fields)
  return variables.some((variable) => variable.field === field) ? undefined : fields
}

function addGivenField(json: JsonDraft, { name, fields, texts }: GivenField, findings: Finding[]): void {
  const field = fields.at(-1)
  if (field === undefined) return
  const values = texts.map((text) => jsonOfText(field, text))
  const [only] = values
  if (values.includes(undefined) || only === undefined)
    findings.push({ field: name, description: 'must be JSON, percent-encoded', rule: 'type' })
  else if (field.fieldKind === 'list') setAt(json, fields, values as readonly Json[])
  else if (values.length === 1) setAt(json, fields, only)
  else findings.push({ field: name, description: 'is given more than once', rule: 'duplicate_parameter' })
}

function unknownParameter(request: RestRequest, name: string): Finding {
  const { operation, hasBody } = request.binding
  const rule = 'unknown_parameter'
  const field = name.slice(0, NAME_LENGTH_MAX)
  if (hasBody) return { field, description: 'cannot be a query parameter here; it belongs into the body', rule }
  const known = fieldsAt(operation.input, name.split('.'))?.at(-1)
  if (known === undefined)
    return { field, description: `is not a known query parameter${suggestParameter(name, request)}`, rule }
  if (isTextual(known)) return { field, description: 'is given by the path or the body of this operation', rule }
  const isNested = known.message !== undefined && isPlainMessage(known.message) && known.fieldKind === 'message'
  const instead = isNested ? `; name one of its fields, as in ${field}.${known.message.fields[0]?.name ?? '…'}` : ''
  return { field, description: `is an object, which a query cannot carry${instead}`, rule }
}

/** Names of other APIs for the parameters of lists, which are too different to be found by their spelling. */
const PAGING_NAMES: ReadonlyMap<string, string> = new Map([
  ['limit', 'page_size'],
  ['per_page', 'page_size'],
  ['cursor', 'page_token'],
  ['next_cursor', 'page_token'],
])

function suggestParameter(name: string, request: RestRequest): string {
  const names = parameterNames(request)
  const meant = PAGING_NAMES.get(name)
  return meant !== undefined && names.includes(meant) ? `, did you mean ${meant}?` : suggest(name, names)
}

/** The parameters that the query of a request can have: fields, and those a level below (`part.made_at`). */
function parameterNames(request: RestRequest): readonly string[] {
  const names = request.binding.operation.input.fields.flatMap(({ name, fieldKind, message }) =>
    fieldKind === 'message' && isPlainMessage(message)
      ? message.fields.map((inner) => `${name}.${inner.name}`)
      : [name],
  )
  return names.filter((name) => queryField(request, name) !== undefined)
}

/** Headers that fill a field of the request when the client left it out. */
const FIELD_HEADERS = [
  // Quoted by the standard that is being made of it, bare by most clients.
  { header: 'idempotency-key', field: 'request_id', value: (text: string) => /^"(.*)"$/.exec(text)?.[1] ?? text },
  // An entity tag is quoted, and weak ones are marked: W/"abc". `*` matches anything, as no tag does.
  { header: 'if-match', field: 'etag', value: (text: string) => /^(?:W\/)?"(.*)"$/.exec(text)?.[1] ?? text },
] as const

function addHeaders(json: JsonDraft, { binding }: RestRequest, context: RequestContext): void {
  for (const { header, field: name, value } of FIELD_HEADERS) {
    const text = context.header(header)
    if (text === undefined || text === '*') continue
    const field = fieldNamed(binding.operation.input, name)
    if (field === undefined || json[field.name] !== undefined || json[field.jsonName] !== undefined) continue
    json[field.name] = value(text)
  }
}

function addPath(json: JsonDraft, { binding, variables }: RestRequest, findings: Finding[]): void {
  for (const { field: name, text } of variables) {
    const field = fieldNamed(binding.operation.input, name)
    const decoded = percentDecode(text)
    const value = field && decoded !== undefined ? jsonOfText(field, decoded) : undefined
    if (field === undefined || value === undefined) {
      findings.push({ field: name, description: 'is not valid percent-encoding', rule: 'percent_encoding' })
      continue
    }
    const given = json[field.name] ?? json[field.jsonName]
    if (given !== undefined && given !== null && given !== value)
      findings.push({ field: field.name, description: 'differs from the one in the path', rule: 'path_conflict' })
    setAt(json, [field], value)
  }
}

function percentDecode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The REST form of an operation. */
export interface RestBinding {
  readonly operation: UnaryOperation
  /** Whether the body holds the request message; otherwise the query does. */
  readonly hasBody: boolean
}
