import { Failure, invalidFields } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { COMMON_FIELDS, checkModel, DEFINITION_PREFIX } from './model-schema.ts'
import { compileSchemaNode, hasRawField, type ObjectNode } from './schema-node.ts'

/** Most entries of a list in the body of a write. */
export const LIST_MAX = 1_000

/** A unified model: resources of one domain (crm, ticketing) in one shape over many APIs. */
export interface UnifiedModel {
  readonly name: string
  readonly label: string
  readonly description: string
  readonly resources: ReadonlyMap<string, UnifiedResource>
}

/** A resource of a model. */
export interface UnifiedResource {
  readonly model: string
  readonly name: string
  readonly description: string
  /** Unified methods that it may have: list, get, create, update, delete, or others. */
  readonly methods: readonly string[]
  /** JSON Schema of its records: without `$ref`, and with the fields that every record has (`id`, `remote_id`, …). */
  readonly schema: ResourceSchema
  /** The same, compiled. */
  readonly node: ObjectNode
  /** The same, as bodies of writes are checked: objects are closed, lists bounded, amounts may be numbers. */
  readonly writeSchema: JsonObject
}

/** A JSON Schema of type object. */
type ResourceSchema = JsonObject & {
  readonly properties: { readonly [field: string]: JsonObject }
}

/** The model of a document. @throws Failure DEFINITION_INVALID with everything that `checkModel` finds */
export function parseModel(document: JsonObject): UnifiedModel {
  const violations = checkModel(document, 'config')
  if (violations.length > 0) throw invalidFields(violations, 'DEFINITION_INVALID')
  const name = String(document.name)
  const definitions = isJsonObject(document.$defs) ? document.$defs : {}
  const resources = Object.entries(isJsonObject(document.resources) ? document.resources : {})
  return {
    name,
    label: textOf(document.label) ?? name,
    description: textOf(document.description) ?? '',
    resources: new Map(
      resources.map(([resource, settings]) => [resource, parseResource(name, resource, settings, definitions)]),
    ),
  }
}

function parseResource(model: string, name: string, settings: Json, definitions: JsonObject): UnifiedResource {
  const { description, methods, schema } = isJsonObject(settings) ? settings : {}
  const resolved = withCommonFields(resolveReferences(schema ?? null, definitions))
  const node = compileSchemaNode(resolved)
  if (node.kind !== 'object') throw new Failure('DEFINITION_INVALID', `${model}/${name} is not an object`)
  return {
    model,
    name,
    description: textOf(description) ?? '',
    methods: Array.isArray(methods) ? methods.map(String) : [],
    schema: resolved,
    node,
    writeSchema: closed(resolved),
  }
}

function closed(schema: JsonObject): JsonObject {
  const { properties, items, type, format } = schema
  const members = isJsonObject(properties) ? Object.entries(properties) : []
  return {
    ...schema,
    ...(format === 'decimal' ? { type: ['string', 'number'] } : {}),
    ...(type === 'array' ? { maxItems: LIST_MAX } : {}),
    ...(isJsonObject(items) ? { items: closed(items) } : {}),
    ...(members.length > 0
      ? {
          properties: Object.fromEntries(
            members.map(([name, each]) => [name, isJsonObject(each) ? closed(each) : each]),
          ),
          additionalProperties: false,
        }
      : {}),
  }
}

/** The schema with the shared schemas in place of their names; keys beside a `$ref` replace those of the shared schema. */
function resolveReferences(value: Json, definitions: JsonObject): JsonObject {
  if (!isJsonObject(value)) return {}
  const { $ref, ...own } = value
  const shared = typeof $ref === 'string' ? definitions[$ref.slice(DEFINITION_PREFIX.length)] : undefined
  const schema = shared === undefined ? own : { ...resolveReferences(shared, definitions), ...own }
  const { properties, items } = schema
  return {
    ...schema,
    ...(isJsonObject(properties) ? { properties: resolveProperties(properties, definitions) } : {}),
    ...(items === undefined ? {} : { items: resolveReferences(items, definitions) }),
  }
}

function resolveProperties(properties: JsonObject, definitions: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => [name, resolveReferences(property, definitions)]),
  )
}

function withCommonFields(schema: JsonObject): ResourceSchema {
  const own = isJsonObject(schema.properties) ? schema.properties : {}
  const properties = { ...COMMON_FIELDS.before, ...own, ...COMMON_FIELDS.after } as ResourceSchema['properties']
  return { ...schema, type: 'object', properties }
}

/** JSON Schema of the records that calls return: every value may be `null`, with `<field>_raw` and `_warnings`. */
export function recordSchema(resource: UnifiedResource): JsonObject {
  return nullable(resource.schema, true)
}

/** Patterns of the formats that JSON Schema does not know, or that validators read more narrowly. */
const PATTERNS: Readonly<Record<string, string>> = {
  decimal: '^-?[0-9]+(\\.[0-9]+)?$',
  country: '^[A-Z]{2}$',
  email: '^[^\\s@]+@[^\\s@]+$',
  uri: '^[A-Za-z][A-Za-z0-9+.-]*:',
}

/** The schema in words that every validator knows. */
function portable(schema: JsonObject): JsonObject {
  const { 'x-reference': _reference, 'x-sensitive': _sensitive, 'x-balanced': _balanced, ...rest } = schema
  const pattern = typeof rest.format === 'string' ? PATTERNS[rest.format] : undefined
  if (pattern === undefined) return rest
  const { format: _format, ...others } = rest
  return { ...others, pattern }
}

function nullable(schema: JsonObject, isRecord = false): JsonObject {
  const { required: _required, readOnly: _readOnly, minLength: _min, maxLength: _max, ...rest } = portable(schema)
  const { type, properties, items, enum: values } = rest
  return {
    ...rest,
    type: isRecord ? 'object' : [String(type), 'null'],
    ...(Array.isArray(values) ? { enum: [...values, null] } : {}),
    ...(isJsonObject(items) ? { items: nullable(items) } : {}),
    ...(isJsonObject(properties) ? { properties: nullableProperties(properties, isRecord) } : {}),
  }
}

function nullableProperties(properties: JsonObject, isRecord: boolean): JsonObject {
  const entries = Object.entries(properties).flatMap(([name, property]): [string, JsonObject][] => {
    if (!isJsonObject(property)) return []
    const own: [string, JsonObject] = [name, nullable(property)]
    if (!hasRawField(compileSchemaNode(property))) return [own]
    const isList = property.type === 'array'
    return [own, [`${name}_raw`, rawFieldSchema(name, isList)]]
  })
  return Object.fromEntries(isRecord ? [...entries, ['_warnings', WARNINGS_SCHEMA]] : entries)
}

function rawFieldSchema(name: string, isList: boolean): JsonObject {
  const description = `The value of ${name} in the words of the integration.`
  return isList
    ? { type: ['array', 'null'], items: { type: 'string' }, description }
    : { type: ['string', 'null'], description }
}

const WARNINGS_SCHEMA: JsonObject = {
  type: 'array',
  description: 'What did not fit this schema; absent when everything did.',
  items: {
    type: 'object',
    properties: { field: { type: 'string' }, rule: { type: 'string' }, message: { type: 'string' } },
  },
}

/** JSON Schema of the body of a write: without fields that cannot be written; a create has required fields. */
export function bodySchema(resource: UnifiedResource, method: string): JsonObject {
  return writable(resource.schema, method === 'create')
}

function writable(schema: JsonObject, hasRequired: boolean): JsonObject {
  const { readOnly: _readOnly, required, ...rest } = portable(schema)
  const { properties, items } = rest
  const written = isJsonObject(properties)
    ? Object.entries(properties).flatMap(([name, property]): [string, JsonObject][] =>
        isJsonObject(property) && property.readOnly !== true ? [[name, writable(property, true)]] : [],
      )
    : undefined
  return {
    ...rest,
    ...(required === undefined || !hasRequired ? {} : { required }),
    ...(isJsonObject(items) ? { items: writable(items, true) } : {}),
    ...(written === undefined ? {} : { properties: Object.fromEntries(written), additionalProperties: false }),
  }
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
