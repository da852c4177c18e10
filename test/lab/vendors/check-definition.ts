import { isDeepStrictEqual } from 'node:util'
import { isJsonObject, type Json, type JsonObject } from '../../../src/foundation/json/index.ts'
import type { GoldenCall } from '../../unit/engine/catalog/golden-file.ts'
import { isNamed } from './check-request.ts'
import { entriesOf, type Operation } from './operations.ts'
import { viewSchema } from './schemas.ts'

/** A resolvable path: names, joined with dots. All others are left to the golden files. */
const PLAIN_PATH = /^[\w-]+(?:\.[\w-]+)*$/
const BODY_DEPTH_MAX = 4

/** What a method of a definition says that its operation does not: names, types, values and required fields of its schemas, where the records of its answer are. */
export function checkMethod(operation: Operation, method: JsonObject, call: GoldenCall): string[] {
  return [
    ...checkQuerySchema(operation, method, call),
    ...checkBodySchema(operation, method, call),
    ...checkAnswer(operation, method, call),
  ]
}

function checkQuerySchema(operation: Operation, method: JsonObject, call: GoldenCall): string[] {
  const { query_schema, body_schema: _, ...rest } = method
  const templates = JSON.stringify(rest)
  const parameters = operation.parameters.filter((parameter) => parameter.in === 'query')
  const sent = new URL(call.request.url).searchParams
  return entriesOf(isJsonObject(query_schema) ? query_schema.properties : undefined).flatMap(([name, schema]) => {
    if (new RegExp(`query\\.(?:\\W*)${RegExp.escape(name)}\\b`).test(templates)) return []
    const parameter = parameters.find((candidate) => isNamed(name, candidate.name) || isNamed(candidate.name, name))
    if (parameter === undefined)
      return parameters.some(({ schema: any }) => viewSchema(operation.root, any).types.has('object'))
        ? []
        : [`query_schema unknown: ${name}`]
    if (!isNamed(name, parameter.name) || name.includes('[')) return []
    return [
      ...checkField(operation.root, schema, parameter.schema, `query_schema ${name}`, true),
      ...(parameter.isRequired && !isRequired(query_schema, name) && !sent.has(name)
        ? [`query_schema not required: ${name}`]
        : []),
    ]
  })
}

function checkBodySchema(
  { root, body }: Operation,
  method: JsonObject,
  { body: given, request }: GoldenCall,
): string[] {
  const [schema] = body?.types.values() ?? []
  const { body_schema } = method
  // The fields of a multipart body are files and texts, whatever the caller gives for them.
  if (schema === undefined || !isJsonObject(body_schema) || method.body_format === 'multipart') return []
  const place = placeOf(request.body, given)
  if (place === undefined) return []
  const target = place.reduce<Json | undefined>((at, name) => viewSchema(root, at).properties.get(name), schema)
  return target === undefined ? [] : checkFields(root, body_schema, target, 'body_schema', 0)
}

/** Where in the sent body the caller's body is: definitions wrap some. `undefined` where it is changed. */
function placeOf(sent: Json | undefined, given: Json | undefined): string[] | undefined {
  if (given === undefined || !isJsonObject(sent)) return typeof sent === 'string' ? [] : undefined
  if (Object.entries(isJsonObject(given) ? given : {}).every(([key, value]) => isDeepStrictEqual(sent[key], value)))
    return []
  const [wrapper] = entriesOf(sent).filter(([, value]) => isDeepStrictEqual(value, given))
  return wrapper === undefined ? undefined : [wrapper[0]]
}

function checkFields(root: JsonObject, ours: JsonObject, theirs: Json, at: string, depth: number): string[] {
  const view = viewSchema(root, theirs)
  const own = entriesOf(ours.properties)
  if (own.length === 0 || depth > BODY_DEPTH_MAX) return []
  const names = new Set(own.map(([name]) => name))
  const missing = [...view.required].filter((name) => names.has(name) && !isRequired(ours, name))
  return [
    ...missing.map((name) => `${at} not required: ${name}`),
    ...own.flatMap(([name, schema]) => {
      const known = view.properties.get(name)
      if (known === undefined) return view.isOpen ? [] : [`${at} unknown: ${name}`]
      return checkField(root, schema, known, `${at} ${name}`, false, depth)
    }),
  ]
}

/** Type and values of one field; those of its own fields too. Texts stand for any scalar of a query. */
function checkField(root: JsonObject, ours: Json, theirs: Json, at: string, isText: boolean, depth = 0): string[] {
  if (!isJsonObject(ours)) return []
  const view = viewSchema(root, theirs)
  const inner = view.types.has('array') && isJsonObject(ours.items) ? view.items : undefined
  const allowed = view.values ?? (isText && view.items !== undefined ? viewSchema(root, view.items).values : undefined)
  const unknown = Array.isArray(ours.enum)
    ? ours.enum.filter((value) => allowed !== undefined && !allowed.has(String(value)))
    : []
  return [
    ...(hasType(view.types, ours.type, isText)
      ? []
      : [`${at} type: ${ours.type} where it is ${[...view.types].join(' or ')}`]),
    ...unknown.map((value) => `${at} value: ${value}`),
    ...(inner === undefined ? [] : checkField(root, ours.items as Json, inner, `${at}[]`, isText, depth + 1)),
    ...(isText ? [] : checkFields(root, ours, theirs, at, depth + 1)),
  ]
}

function hasType(types: ReadonlySet<string>, ours: Json | undefined, isText: boolean): boolean {
  const names = (Array.isArray(ours) ? ours : [ours]).filter((type) => type !== 'null' && type !== undefined)
  if (types.size === 0) return true
  return names.every((type) => {
    if (types.has(String(type))) return true
    if (type === 'integer' || type === 'number')
      return types.has('number') || types.has('integer') || (isText && types.has('string'))
    return isText && (type === 'string' || type === 'array' || types.has('string') || types.has('array'))
  })
}

function isRequired(schema: Json | undefined, name: string): boolean {
  return isJsonObject(schema) && Array.isArray(schema.required) && schema.required.includes(name)
}

/** Where the records are said to be there is a list, or a record, and it has an id. */
function checkAnswer({ root, answers }: Operation, method: JsonObject, { call }: GoldenCall): string[] {
  const schema = [...answers].find(([type]) => type.includes('json'))?.[1]
  const { response_path: path = '', id_path = 'id' } = method
  if (schema === undefined || (path !== '' && !PLAIN_PATH.test(String(path)))) return []
  const isList = /\.(?:list|search|all)$/.test(call)
  let at: Json = schema
  for (const name of path === '' ? [] : String(path).split('.')) {
    const { properties, isOpen } = viewSchema(root, at)
    const next = properties.get(name)
    if (next === undefined) return isOpen ? [] : [`response_path: no ${name} in the answer`]
    at = next
  }
  const { types, items } = viewSchema(root, at)
  if (!isList) return []
  if (types.size > 0 && !types.has('array')) return [`response_path: ${[...types].join(' or ')}, no array`]
  return checkId(root, items, String(id_path))
}

function checkId(root: JsonObject, items: Json | undefined, path: string): string[] {
  if (!PLAIN_PATH.test(path)) return []
  let at = items
  for (const name of path.split('.')) {
    const { properties, isOpen } = viewSchema(root, at)
    if (properties.size === 0 || (isOpen && !properties.has(name))) return []
    if (!properties.has(name))
      return [`id_path: no ${path} in a record (${[...properties.keys()].slice(0, 8).join(', ')})`]
    at = properties.get(name)
  }
  return []
}
