import { isJsonObject, type Json, type JsonObject } from '../../../src/foundation/json/index.ts'
import type { VendorSource } from './documents.ts'
import { resolve, viewSchema } from './schemas.ts'

/** One operation of an OpenAPI document, with everything that its path and references say. */
export interface Operation {
  /** The document, in which references are looked up. */
  readonly root: JsonObject
  readonly method: string
  /** Path with variables, servers included: `/v1/users/{id}`. */
  readonly path: string
  readonly isDeprecated: boolean
  readonly parameters: readonly Parameter[]
  /** Schemas of the body by media type; absent where it takes none. */
  readonly body: { readonly isRequired: boolean; readonly types: ReadonlyMap<string, Json> } | undefined
  /** Schemas of the first answer of status 2xx by media type. */
  readonly answers: ReadonlyMap<string, Json>
}

export interface Parameter {
  readonly in: string
  readonly name: string
  readonly isRequired: boolean
  readonly schema: Json
}

const METHODS = ['get', 'put', 'post', 'patch', 'delete', 'head']

/** All operations of a document, OpenAPI 3 or Swagger 2. */
export function listOperations(root: JsonObject, source: VendorSource): Operation[] {
  const operations: Operation[] = []
  for (const [path, item] of entriesOf(root.paths)) {
    const shared = resolve(root, item)
    if (!isJsonObject(shared)) continue
    for (const method of METHODS) {
      const operation = shared[method]
      if (!isJsonObject(operation)) continue
      const own = operation.servers ?? shared.servers ?? root.servers
      operations.push({
        root,
        method: method.toUpperCase(),
        path: fullPath(own, root, source, path),
        isDeprecated: operation.deprecated === true,
        parameters: parametersOf(root, shared.parameters, operation.parameters),
        body: bodyOf(root, operation.requestBody ?? bodyParameter(root, operation.parameters), path, source),
        answers: answersOf(root, operation.responses),
      })
    }
  }
  return operations
}

/** The operation of a request: of those that match, the one with the fewest variables. */
export function findOperation(operations: readonly Operation[], method: string, url: string): Operation | undefined {
  const segments = segmentsOf(new URL(url).pathname)
  const found = operations.filter((operation) => operation.method === method && matches(operation.path, segments))
  return found.sort(
    (a, b) => variablesIn(a.path) - variablesIn(b.path) || Number(a.isDeprecated) - Number(b.isDeprecated),
  )[0]
}

function matches(path: string, segments: readonly string[]): boolean {
  const expected = segmentsOf(path)
  if (expected.length !== segments.length) return false
  return expected.every((segment, index) => {
    if (!segment.includes('{')) return segment.toLowerCase() === decodeURIComponent(segments[index] ?? '').toLowerCase()
    const pattern = segment.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{[^}]*\}/g, '.+')
    return new RegExp(`^${pattern}$`, 'i').test(segments[index] ?? '')
  })
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '')
}

function variablesIn(path: string): number {
  return path.split('{').length - 1
}

/** A path with that of its server, which some documents say in both. */
function fullPath(servers: Json | undefined, root: JsonObject, { base_path }: VendorSource, path: string): string {
  const [server] = Array.isArray(servers) ? servers : []
  const url = isJsonObject(server) ? String(server.url ?? '') : String(root.basePath ?? '')
  const base = base_path ?? url.replace(/^(?:https?:)?\/\/[^/]*/, '').replace(/\/$/, '')
  const plain = path.replace(/[?#].*$/, '')
  return base !== '' && plain.startsWith(`${base}/`) ? plain : base + plain
}

function parametersOf(root: JsonObject, ...lists: readonly (Json | undefined)[]): Parameter[] {
  const parameters = new Map<string, Parameter>()
  for (const entry of lists.flatMap((list) => (Array.isArray(list) ? list : []))) {
    const parameter = resolve(root, entry)
    if (!isJsonObject(parameter) || typeof parameter.name !== 'string' || typeof parameter.in !== 'string') continue
    const [content] = entriesOf(parameter.content)
    const schema = parameter.schema ?? (isJsonObject(content?.[1]) ? content[1].schema : undefined) ?? {}
    parameters.set(`${parameter.in} ${parameter.name}`, {
      in: parameter.in,
      name: parameter.name,
      isRequired: parameter.required === true,
      schema,
    })
  }
  return [...parameters.values()]
}

function bodyOf(root: JsonObject, entry: Json | undefined, path: string, source: VendorSource): Operation['body'] {
  const body = resolve(root, entry)
  if (!isJsonObject(body)) return undefined
  const types = contentOf(body.content)
  const isList = source.lists_take_one_record === true
  return {
    isRequired: body.required === true,
    types: isList ? new Map([...types].map(([type, schema]) => [type, oneRecord(root, schema, path)])) : types,
  }
}

/** The body of Swagger 2 is a parameter. */
function bodyParameter(root: JsonObject, parameters: Json | undefined): Json | undefined {
  const found = (Array.isArray(parameters) ? parameters : []).find((entry) => {
    const parameter = resolve(root, entry)
    return isJsonObject(parameter) && parameter.in === 'body'
  })
  const parameter = resolve(root, found)
  if (!isJsonObject(parameter)) return undefined
  return { required: parameter.required ?? false, content: { 'application/json': { schema: parameter.schema ?? {} } } }
}

/** The record of a body that is a list of records under a name of its path: `Contacts` of `/Contacts/{id}`. */
function oneRecord(root: JsonObject, schema: Json, path: string): Json {
  const lists = segmentsOf(path).map((segment) => viewSchema(root, schema).properties.get(segment))
  const list = lists.findLast((property) => property !== undefined)
  return viewSchema(root, list).items ?? schema
}

function answersOf(root: JsonObject, responses: Json | undefined): ReadonlyMap<string, Json> {
  for (const [status, entry] of entriesOf(responses)) {
    const response = /^2/.test(status) ? resolve(root, entry) : undefined
    if (!isJsonObject(response)) continue
    // Swagger 2 has the schema beside the description.
    if (response.schema !== undefined) return new Map([['application/json', response.schema]])
    if (entriesOf(response.content).length > 0) return contentOf(response.content)
  }
  return new Map()
}

function contentOf(content: Json | undefined): ReadonlyMap<string, Json> {
  return new Map(
    entriesOf(content).map(([type, media]) => [
      type.split(';')[0]?.trim().toLowerCase() ?? '',
      (isJsonObject(media) ? media.schema : undefined) ?? {},
    ]),
  )
}

/** The entries of an object, none of anything else. */
export function entriesOf(value: Json | undefined): [string, Json][] {
  return isJsonObject(value) ? (Object.entries(value) as [string, Json][]) : []
}
