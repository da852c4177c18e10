import { Ajv } from 'ajv'
import { isJsonObject, type Json, type JsonObject } from '../../../src/foundation/json/index.ts'
import type { GoldenRequest } from '../../unit/engine/catalog/golden-file.ts'
import type { Operation, Parameter } from './operations.ts'
import { viewSchema } from './schemas.ts'
import { Validator } from './validator.ts'

const JSON_TYPE = /\/(?:.*\+)?json$/
const FORM_TYPE = 'application/x-www-form-urlencoded'
/** Headers that every request has, and that documents describe elsewhere or not at all. */
const GENERAL_HEADERS = new Set(['accept', 'authorization', 'content-type', 'user-agent'])

const OPTIONS = { strict: false, allErrors: true, validateFormats: false, logger: false } as const
/** Texts of forms and queries are read as what the schema wants. */
const texts = new Validator(new Ajv({ ...OPTIONS, coerceTypes: 'array' }))
const values = new Validator(new Ajv(OPTIONS))

/** What the document does not allow in a request, one text each. */
export function checkRequest(operation: Operation, request: GoldenRequest): string[] {
  return [
    ...(operation.isDeprecated ? ['operation deprecated'] : []),
    ...checkQuery(operation, new URL(request.url).searchParams),
    ...checkHeaders(operation, request.headers),
    ...checkAccept(operation, request.headers.accept ?? ''),
    ...checkBody(operation, request),
  ]
}

function checkQuery(operation: Operation, sent: URLSearchParams): string[] {
  const known = operation.parameters.filter((parameter) => parameter.in === 'query')
  const names = [...new Set(sent.keys())]
  const missing = known.filter(({ name, isRequired }) => isRequired && !names.some((key) => isNamed(key, name)))
  return [
    ...missing.map(({ name }) => `query missing: ${name}`),
    ...names.flatMap((name) => {
      const parameter = known.find((candidate) => isNamed(name, candidate.name))
      if (parameter === undefined) return known.some(isFreeForm(operation)) ? [] : [`query unknown: ${name}`]
      return isSameName(name, parameter.name) ? checkValue(operation, parameter, sent.getAll(name)) : []
    }),
  ]
}

/** The parameter of that name, also as one entry of a list or object: `ids[]`, `filter[name]`. */
export function isNamed(key: string, name: string): boolean {
  return isSameName(key, name) || key.startsWith(`${name.replace(/\[\]$/, '')}[`)
}

function isSameName(key: string, name: string): boolean {
  return key.replace(/\[\]$/, '') === name.replace(/\[\]$/, '')
}

/** A parameter that stands for any names: an object whose keys are parameters of their own. */
function isFreeForm({ root }: Operation): (parameter: Parameter) => boolean {
  return ({ schema }) => {
    const { types, properties, isOpen } = viewSchema(root, schema)
    return types.has('object') && properties.size === 0 && isOpen
  }
}

function checkValue({ root }: Operation, { name, schema }: Parameter, values: readonly string[]): string[] {
  const { types } = viewSchema(root, schema)
  if (types.has('object')) return []
  const value = types.has('array') ? values.flatMap((text) => text.split(',')) : (values[0] ?? '')
  return texts.check(root, schema, value).map((problem) => `query value: ${name}${problem}`)
}

function checkHeaders({ parameters }: Operation, headers: GoldenRequest['headers']): string[] {
  const sent = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
  return parameters
    .filter((parameter) => parameter.in === 'header' && parameter.isRequired)
    .map(({ name }) => name.toLowerCase())
    .filter((name) => !sent.has(name) && !GENERAL_HEADERS.has(name))
    .map((name) => `header missing: ${name}`)
}

function checkAccept({ answers }: Operation, accept: string): string[] {
  const offered = [...answers.keys()]
  const accepted = accept.split(',').map((type) => type.split(';')[0]?.trim().toLowerCase() ?? '')
  if (offered.length === 0 || accepted.some((type) => offered.some((offer) => isServedBy(type, offer)))) return []
  return [`accept: ${accept} where the answer is ${offered.join(', ')}`]
}

/** A media type of the definition against one of the document, which often says JSON of any kind of JSON. */
function isServedBy(type: string, offer: string): boolean {
  if (type === offer || type === '*/*' || offer === '*/*' || type === '') return true
  return offer === 'application/json' && type.endsWith('+json')
}

function checkBody(operation: Operation, request: GoldenRequest): string[] {
  const { root, body } = operation
  if (request.body === undefined || request.body === null) return body?.isRequired ? ['body missing'] : []
  if (body === undefined || body.types.size === 0) return ['body unexpected']
  const [type = ''] = (request.headers['content-type'] ?? '').split(';')
  const offered = [...body.types].find(([offer]) => isServedBy(type, offer))
  if (offered === undefined) return [`body type: ${type} where ${[...body.types.keys()].join(', ')} is taken`]
  const value = JSON_TYPE.test(type) ? request.body : type === FORM_TYPE ? readForm(String(request.body)) : undefined
  if (value === undefined) return []
  const [, schema] = offered
  return [
    ...unknownProperties(root, schema, value, '').map((path) => `body unknown: ${path}`),
    ...(type === FORM_TYPE ? texts : values).check(root, schema, value).map((problem) => `body value: ${problem}`),
  ]
}

/** Form fields with brackets, as the object that they mean. */
function readForm(text: string): Json {
  const result: Record<string, Json> = {}
  for (const [key, value] of new URLSearchParams(text)) {
    const path = [key.replace(/\[.*/, ''), ...[...key.matchAll(/\[([^\]]*)\]/g)].map(([, name]) => name ?? '')]
    setAt(result, path, value)
  }
  return withLists(result)
}

function setAt(target: Record<string, Json>, [name = '', ...rest]: readonly string[], value: string): void {
  const key = name === '' ? String(Object.keys(target).length) : name
  if (rest.length === 0) {
    target[key] = value
    return
  }
  const inner = { ...(target[key] as JsonObject | undefined) }
  setAt(inner, rest, value)
  target[key] = inner
}

/** Objects whose keys are numbers are lists. */
function withLists(value: Json): Json {
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).map(([key, entry]) => [key, withLists(entry)] as const)
  return entries.every(([key]) => /^\d+$/.test(key)) ? entries.map(([, entry]) => entry) : Object.fromEntries(entries)
}

/** Paths of the properties of a value that its schema does not know, as deep as the schema names properties. */
function unknownProperties(root: JsonObject, schema: Json, value: Json, at: string): string[] {
  const view = viewSchema(root, schema)
  if (Array.isArray(value)) {
    if (view.items === undefined) return []
    return [...new Set(value.flatMap((entry) => unknownProperties(root, view.items ?? {}, entry, `${at}[]`)))]
  }
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([name, entry]) => {
    const path = at === '' ? name : `${at}.${name}`
    const known = view.properties.get(name)
    if (known === undefined) return view.isOpen ? [] : [path]
    return unknownProperties(root, known, entry as Json, path)
  })
}
