import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import { type PageNames, plainDescription, type SearchableTool, simplifySchema } from '../../../tools/servers/index.ts'
import { type Effects, effectsOf } from '../effects.ts'
import type { Operation, UnaryOperation } from '../operation.ts'

/** An operation of the contract as a tool. */
export interface ManagementTool extends SearchableTool {
  readonly operation: UnaryOperation
  /** Of a list that is read page by page. */
  readonly page: PageNames | undefined
}

const DESCRIPTION_LENGTH_MAX = 600
/** Paragraphs of a description for callers of the REST API. */
const REST_PARAGRAPH = /^(?:Failures: |Needs )/
/** Daemons claim runs and report them under a lease: a protocol of programs. */
const DAEMON_SERVICE = 'DaemonService'

/** The argument of reads that chooses what to return; no operation has a field of this name. */
export const FIELDS_ARGUMENT = 'fields'

/** The schema of that argument. */
export const FIELDS_SCHEMA: JsonObject = {
  type: 'array',
  items: { type: 'string', maxLength: 200 },
  maxItems: 50,
  description: 'Only these fields of each record, such as id or stats.total; absent: all.',
}

/**
 * The tools of the operations that have a REST form, in the order of their names: descriptions, schemas and rules are those of
 * the OpenAPI document, which is generated from the contract; hints are its options. Left out are direct calls of third parties and
 * what daemons report; operations that show a secret
 * (`showsSecret`) are withheld from every client.
 *
 * @param openApi the document
 */
export function deriveManagementTools(operations: Iterable<Operation>, openApi: JsonObject): readonly ManagementTool[] {
  const documented = documentedOperations(openApi)
  const tools = [...operations].flatMap((operation) => {
    const entry = documented.get(operation.method.name)
    if (entry === undefined || operation.kind !== 'unary' || isDaemonReport(operation)) return []
    const effects = effectsOf(operation.method)
    return effects.callsDirectly ? [] : [deriveTool(operation, effects, entry, openApi)]
  })
  return tools.sort((one, other) => (one.name < other.name ? -1 : 1))
}

function isDaemonReport({ method, isSafe }: Operation): boolean {
  return method.parent.name === DAEMON_SERVICE && !isSafe
}

/** The operations of the document by the name of their RPC. */
function documentedOperations({ paths }: JsonObject): ReadonlyMap<string, JsonObject> {
  const items = Object.values(objectOf(paths)).flatMap((item) => Object.values(objectOf(item)))
  return new Map(items.filter(isJsonObject).map((entry) => [String(entry.operationId), entry] as const))
}

function deriveTool(
  operation: UnaryOperation,
  { destroys, reachesThirdParty }: Effects,
  entry: JsonObject,
  openApi: JsonObject,
): ManagementTool {
  const { method, input, output, isSafe } = operation
  const name = snakeCase(method.name)
  const title = titleOf(name)
  const listed = output.fields.find((field) => field.fieldKind === 'list')
  const isPaged = listed !== undefined && input.fields.some((field) => field.name === 'page_size')
  return {
    name,
    title,
    description: descriptionOf(entry),
    inputSchema: inputSchemaOf(entry, openApi, isSafe),
    annotations: {
      title,
      readOnlyHint: isSafe,
      destructiveHint: destroys,
      idempotentHint: method.idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN,
      openWorldHint: reachesThirdParty,
    },
    tags: [snakeCase(method.parent.name.replace(/Service$/, '')).replaceAll('_', ' ')],
    operation,
    page: isPaged ? { records: listed.name, limit: 'page_size' } : undefined,
  }
}

function snakeCase(name: string): string {
  return name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase()
}

function titleOf(name: string): string {
  const words = name.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function descriptionOf({ description }: JsonObject): string {
  const paragraphs = String(description).split('\n\n')
  return plainDescription(
    paragraphs.filter((paragraph) => !REST_PARAGRAPH.test(paragraph)).join(' '),
    DESCRIPTION_LENGTH_MAX,
  )
}

/** Parameters of path and query, and the fields of the body, in one object: all of them are fields of the request message. */
function inputSchemaOf(
  { parameters, requestBody }: JsonObject,
  { components }: JsonObject,
  isSafe: boolean,
): JsonObject {
  const properties: Record<string, Json> = {}
  const required: Json[] = []
  for (const parameter of Array.isArray(parameters) ? parameters : []) {
    if (!isJsonObject(parameter) || typeof parameter.name !== 'string') continue
    const { name, description = '', schema } = parameter
    properties[name] = { ...objectOf(schema), description }
    if (parameter.required === true) required.push(name)
  }
  const body = bodySchemaOf(requestBody, components)
  Object.assign(properties, objectOf(body.properties))
  if (Array.isArray(body.required)) required.push(...body.required)
  if (isSafe) properties[FIELDS_ARGUMENT] = FIELDS_SCHEMA
  // References point to the components, which the simple schema does not keep.
  const schema = simplifySchema({ type: 'object', properties, required, components: components ?? {} })
  return { ...schema, additionalProperties: false }
}

function bodySchemaOf(requestBody: Json | undefined, components: Json | undefined): JsonObject {
  const { content } = objectOf(requestBody)
  const { schema } = objectOf(objectOf(content)['application/json'])
  const { $ref: reference } = objectOf(schema)
  if (typeof reference !== 'string') return objectOf(schema)
  const name = reference.slice(reference.lastIndexOf('/') + 1)
  return objectOf(objectOf(objectOf(components).schemas)[name])
}

function objectOf(json: Json | undefined): JsonObject {
  return isJsonObject(json) ? json : {}
}
