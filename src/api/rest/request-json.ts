import { Failure, isJsonObject, type Json } from '../../base/index.ts'
import { parseJson } from '../message/json-text.ts'
import { fieldNamed, unknownField } from '../message/shape.ts'
import type { OpenCall } from '../open-call.ts'
import type { Finding } from '../service.ts'
import type { Binding } from './bindings.ts'
import { isTextual, type JsonDraft, jsonOfText, parameterAt, setAt } from './parameter.ts'
import type { PathVariable } from './router.ts'

/** A REST request taken apart: its binding, the variables of its path and its query. */
export interface RestRequest {
  readonly binding: Binding
  readonly variables: readonly PathVariable[]
  /** The text after `?`, or empty. */
  readonly query: string
}

/** The request as one JSON value, and what was wrong with path and query. */
export interface RequestJson {
  readonly json: Json
  readonly findings: readonly Finding[]
}

/**
 * Puts the request message together from body, query, headers and path, in this order: a later one wins.
 *
 * @throws Failure MALFORMED_BODY
 */
export function requestJson(request: RestRequest, body: Buffer, call: OpenCall): RequestJson {
  const findings: Finding[] = []
  const fromBody = bodyJson(request, body)
  // A body that is no object is judged by the shape check, which needs it as it is.
  if (!isJsonObject(fromBody)) return { json: fromBody, findings }
  const json: JsonDraft = { ...fromBody }
  addQuery(json, request, findings)
  addHeaders(json, request, call)
  addPath(json, request, findings)
  return { json, findings }
}

function bodyJson({ binding: { body } }: RestRequest, bytes: Buffer): Json {
  if (body.kind === 'request') return parseJson(bytes)
  if (body.kind === 'field') return bytes.length === 0 ? {} : { [body.name]: parseJson(bytes) }
  if (/^\s*(\{\s*\})?\s*$/.test(bytes.toString('latin1'))) return {}
  throw new Failure('MALFORMED_BODY', 'this operation takes no body; its parameters go into the query')
}

function addQuery(json: JsonDraft, { binding, query, variables }: RestRequest, findings: Finding[]): void {
  const { operation, body } = binding
  const parameters = new URLSearchParams(query)
  for (const name of new Set(parameters.keys())) {
    const path = name.split('.')
    const field = body.kind === 'request' ? undefined : parameterAt(operation.input, path)
    const isTaken = body.kind === 'field' && path[0] === body.name
    const isInPath = variables.some(({ variable }) => variable.fieldPath.join('.') === name)
    if (field === undefined || isTaken || isInPath || !isTextual(field)) {
      findings.push(unknownParameter(binding, name))
      continue
    }
    const texts = parameters.getAll(name).map((text) => jsonOfText(field, text))
    const [only = ''] = texts
    if (field.fieldKind === 'list') setAt(json, path, texts)
    else if (texts.length === 1) setAt(json, path, only)
    else findings.push({ field: name, description: 'is given more than once', rule: 'duplicate_parameter' })
  }
}

function unknownParameter({ operation, body }: Binding, name: string): Finding {
  const rule = 'unknown_parameter'
  if (body.kind === 'request')
    return { field: name, description: 'cannot be a query parameter here; it belongs into the body', rule }
  const { description } = unknownField(operation.input, name, name)
  return { field: name, description: description.replace('known field', 'known query parameter'), rule }
}

/** Headers that stand for a field which the request has and the client did not fill. */
const FIELD_HEADERS = [
  { header: 'idempotency-key', field: 'request_id', value: (text: string) => text },
  // An entity tag is quoted, and weak ones are marked: W/"abc". `*` matches anything, as no tag does.
  { header: 'if-match', field: 'etag', value: (text: string) => /^(?:W\/)?"(.*)"$/.exec(text)?.[1] ?? text },
] as const

function addHeaders(json: JsonDraft, { binding }: RestRequest, call: OpenCall): void {
  for (const { header, field: name, value } of FIELD_HEADERS) {
    const text = call.requestHeader(header)
    if (text === undefined || text === '*') continue
    const field = fieldNamed(binding.operation.input, name)
    if (field === undefined || json[field.name] !== undefined || json[field.jsonName] !== undefined) continue
    json[field.name] = value(text)
  }
}

function addPath(json: JsonDraft, { binding, variables }: RestRequest, findings: Finding[]): void {
  for (const { variable, text } of variables) {
    const path = variable.fieldPath
    const name = path.join('.')
    const decoded = percentDecode(text, variable.isMulti)
    const field = parameterAt(binding.operation.input, path)
    if (decoded === undefined || field === undefined) {
      findings.push({ field: name, description: 'is not valid percent-encoding', rule: 'percent_encoding' })
      continue
    }
    const value = jsonOfText(field, decoded)
    const given = path.length === 1 ? (json[field.name] ?? json[field.jsonName]) : undefined
    if (given !== undefined && given !== null && given !== value)
      findings.push({ field: name, description: 'differs from the one in the path', rule: 'path_conflict' })
    if (field.jsonName !== field.name) delete json[field.jsonName]
    setAt(json, path, value)
  }
}

/** Decodes a variable; one over several segments keeps `%2F`, or its slashes would be lost among those that separate. */
function percentDecode(text: string, isMulti: boolean): string | undefined {
  try {
    return isMulti
      ? text
          .split(/(%2f)/i)
          .map((part, at) => (at % 2 === 0 ? decodeURIComponent(part) : part))
          .join('')
      : decodeURIComponent(text)
  } catch {
    return undefined
  }
}
