import { z } from 'zod'
import { suggest, type Violation } from '../../foundation/base/index.ts'
import {
  type DotPath,
  exceedsJsonSize,
  formatDotPath,
  isJsonObject,
  JSON_DEPTH_MAX,
  type Json,
  type JsonObject,
} from '../../foundation/json/index.ts'
import { findSchemaViolations } from '../definitions/findings.ts'
import { mapOf, plainText, rawText } from '../formats/schema-types.ts'
import { SCALAR_FORMATS } from './schema-node.ts'

/** Most resources of a model, and fields of an object. */
const RESOURCES_MAX = 50
const FIELDS_MAX = 200
/** Longest model, in characters of JSON. */
export const MODEL_LENGTH_MAX = 128 * 1024
/** Deepest nesting of a field, definitions included. */
const DEPTH_MAX = 8
/** Most schemas of a resource, with each use of a shared schema. */
const SCHEMAS_MAX = 2_000
/** Start of the name of a shared schema of a model. */
export const DEFINITION_PREFIX = '#/$defs/'

const IDENTIFIER = /^[a-z][a-z0-9_]{0,62}$/

/** Fields that every record has beside those of its schema. */
export const COMMON_FIELDS = {
  before: {
    id: { type: 'string', readOnly: true, description: 'Id of the record at the integration, as text.' },
    remote_id: { type: 'string', readOnly: true, description: 'Id that the integration itself uses in its addresses.' },
  },
  after: {
    created_at: { type: 'string', format: 'date-time', readOnly: true, description: 'When it was created.' },
    updated_at: { type: 'string', format: 'date-time', readOnly: true, description: 'When it was last changed.' },
    deleted: {
      type: 'boolean',
      readOnly: true,
      description: 'Whether it was deleted; null: the integration does not say.',
    },
    custom_fields: { type: 'object', description: 'Fields of the integration beyond this schema, by name.' },
  },
} as const

/** Names that a model cannot give to a field. */
const RESERVED_FIELDS: ReadonlySet<string> = new Set([
  ...Object.keys(COMMON_FIELDS.before),
  ...Object.keys(COMMON_FIELDS.after),
  'remote_data',
  'remote_fields',
  '_warnings',
])

/** A name of a model, resource, method or field. */
function identifier(): z.ZodString {
  return z
    .string()
    .regex(IDENTIFIER, { error: 'must start with a letter and have lower-case letters, digits and _ only' })
}

const fieldSchema: z.ZodType = z.lazy(() =>
  z.strictObject({
    $ref: z
      .string()
      .startsWith(DEFINITION_PREFIX, { error: `must start with ${DEFINITION_PREFIX}` })
      .optional(),
    type: z.enum(['string', 'number', 'integer', 'boolean', 'object', 'array']).optional(),
    title: plainText().optional(),
    description: plainText().optional(),
    properties: mapOf(identifier(), fieldSchema, FIELDS_MAX).optional(),
    required: z.array(identifier()).max(FIELDS_MAX).optional(),
    items: fieldSchema.optional(),
    enum: z.array(rawText().min(1)).min(1).max(FIELDS_MAX).optional(),
    format: z.enum(SCALAR_FORMATS).optional(),
    minLength: z.int().min(0).optional(),
    maxLength: z.int().min(0).optional(),
    readOnly: z.boolean().optional(),
    'x-reference': z
      .string()
      .regex(/^[a-z][a-z0-9_]*\/[a-z][a-z0-9_]*$/, { error: 'must be <model>/<resource>' })
      .optional(),
    'x-sensitive': z.boolean().optional(),
    'x-balanced': z.array(identifier()).length(2).optional(),
  }),
)

const resourceDocument = z.strictObject({
  description: plainText().optional(),
  methods: z.array(identifier()).min(1).max(50),
  schema: fieldSchema,
})

/** A model document. */
const modelSchema = z
  .strictObject({
    name: identifier(),
    label: plainText().optional(),
    description: plainText().optional(),
    $defs: mapOf(identifier(), fieldSchema, FIELDS_MAX).optional(),
    resources: mapOf(identifier(), resourceDocument, RESOURCES_MAX),
  })
  .meta({ title: 'Unified model' })

/** The problems of a model document. @param prefix of the fields: `config` */
export function checkModel(document: JsonObject, prefix: string): Violation[] {
  if (exceedsJsonSize(document, MODEL_LENGTH_MAX, JSON_DEPTH_MAX)) {
    const limit = `must have at most ${MODEL_LENGTH_MAX} characters as JSON, nested at most ${JSON_DEPTH_MAX} deep`
    return [{ field: prefix, description: limit, rule: 'max' }]
  }
  const violations = findSchemaViolations(modelSchema, document, prefix)
  return violations.length > 0 ? violations : listSemanticProblems(document, prefix)
}

function listSemanticProblems(document: JsonObject, prefix: string): Violation[] {
  const definitions = objectAt(document, '$defs')
  const resources = Object.entries(objectAt(document, 'resources'))
  const check: SchemaCheck = { definitions, prefix, extents: new Map() }
  return [
    ...Object.entries(definitions).flatMap(([name, schema]) => listFieldProblems(check, schema, ['$defs', name])),
    ...resources.flatMap(([name, resource]) => listResourceProblems(check, objectOf(resource), ['resources', name])),
  ]
}

interface SchemaCheck {
  readonly definitions: JsonObject
  readonly prefix: string
  /** Extents of shared schemas by name; `undefined` while one is measured. */
  readonly extents: Map<string, Extent | undefined>
}

/** How large a schema is with the shared schemas in place of their names. */
interface Extent {
  /** Schemas in all. */
  readonly size: number
  /** Levels of nesting; infinite when one leads back to itself. */
  readonly depth: number
}

function listResourceProblems(check: SchemaCheck, resource: JsonObject, path: DotPath): Violation[] {
  const schema = objectAt(resource, 'schema')
  const at = [...path, 'schema']
  const properties = Object.keys(objectAt(schema, 'properties'))
  if (schema.type !== 'object' || schema.$ref !== undefined || properties.length === 0)
    return [violation(check, at, 'must have the type object, with properties of its own', 'type')]
  const reserved = properties.filter((name) => RESERVED_FIELDS.has(name))
  return [
    ...reserved.map((name) =>
      violation(check, [...at, 'properties', name], 'is a field that every record has: leave it out', 'reserved'),
    ),
    ...listExtentProblems(check, schema, at),
    ...listFieldProblems(check, schema, at),
  ]
}

function listExtentProblems(check: SchemaCheck, schema: JsonObject, path: DotPath): Violation[] {
  const { size, depth } = extentOf(check, schema)
  if (size > SCHEMAS_MAX) return [violation(check, path, `must have at most ${SCHEMAS_MAX} fields in all`, 'max')]
  const isTooDeep = Number.isFinite(depth) && depth > DEPTH_MAX
  return isTooDeep ? [violation(check, path, `must be nested at most ${DEPTH_MAX} deep`, 'max')] : []
}

function listFieldProblems(check: SchemaCheck, value: Json, path: DotPath): Violation[] {
  const schema = objectOf(value)
  if (typeof schema.$ref === 'string') return listReferenceProblems(check, schema.$ref, path)
  const properties = objectAt(schema, 'properties')
  const required = Array.isArray(schema.required) ? schema.required.map(String) : []
  return [
    ...listTypeProblems(check, schema, path),
    ...listBalanceProblems(check, schema, path),
    ...required
      .filter((name) => !Object.hasOwn(properties, name))
      .map((name) =>
        violation(
          check,
          [...path, 'required'],
          `names ${name}, which is not a property${suggest(name, Object.keys(properties))}`,
          'required',
        ),
      ),
    ...Object.entries(properties).flatMap(([name, property]) =>
      listFieldProblems(check, property, [...path, 'properties', name]),
    ),
    ...(schema.items === undefined ? [] : listFieldProblems(check, schema.items, [...path, 'items'])),
  ]
}

function listReferenceProblems(check: SchemaCheck, reference: string, path: DotPath): Violation[] {
  const name = reference.slice(DEFINITION_PREFIX.length)
  const at = [...path, '$ref']
  if (!Object.hasOwn(check.definitions, name))
    return [
      violation(
        check,
        at,
        `names ${name}, which $defs lacks${suggest(name, Object.keys(check.definitions))}`,
        'unknown',
      ),
    ]
  const { depth } = sharedExtent(check, name)
  return Number.isFinite(depth) ? [] : [violation(check, at, 'leads back to itself', 'cycle')]
}

function extentOf(check: SchemaCheck, value: Json): Extent {
  const schema = objectOf(value)
  if (typeof schema.$ref === 'string') return sharedExtent(check, schema.$ref.slice(DEFINITION_PREFIX.length))
  const parts = [
    ...Object.values(objectAt(schema, 'properties')),
    ...(schema.items === undefined ? [] : [schema.items]),
  ]
  const extents = parts.map((part) => extentOf(check, part))
  return {
    size: extents.reduce((sum, { size }) => sum + size, 1),
    depth: extents.reduce((deepest, { depth }) => Math.max(deepest, depth), 0) + 1,
  }
}

/** Measured once per shared schema: expanding each use of each would take exponential time. */
function sharedExtent(check: SchemaCheck, name: string): Extent {
  const { extents, definitions } = check
  if (extents.has(name)) return extents.get(name) ?? { size: 1, depth: Number.POSITIVE_INFINITY }
  extents.set(name, undefined)
  const extent = extentOf(check, Object.hasOwn(definitions, name) ? (definitions[name] ?? null) : null)
  extents.set(name, extent)
  return extent
}

function listTypeProblems(check: SchemaCheck, schema: JsonObject, path: DotPath): Violation[] {
  const problems: Violation[] = []
  const isText = schema.type === 'string'
  if (schema.type === undefined) problems.push(violation(check, [...path, 'type'], 'is required', 'required'))
  if (schema.type === 'array' && schema.items === undefined)
    problems.push(violation(check, [...path, 'items'], 'is required of a list', 'required'))
  for (const key of ['enum', 'format', 'minLength', 'maxLength'])
    if (schema[key] !== undefined && !isText)
      problems.push(violation(check, [...path, key], 'is for texts only', 'type'))
  if (schema.properties !== undefined && schema.type !== 'object')
    problems.push(violation(check, [...path, 'properties'], 'is for objects only', 'type'))
  return problems
}

function listBalanceProblems(check: SchemaCheck, schema: JsonObject, path: DotPath): Violation[] {
  const balanced = schema['x-balanced']
  if (!Array.isArray(balanced)) return []
  const at = [...path, 'x-balanced']
  if (schema.type !== 'array') return [violation(check, at, 'is for lists only', 'type')]
  const items = objectAt(schema, 'items')
  const shared = String(items.$ref ?? '').slice(DEFINITION_PREFIX.length)
  const amounts = objectAt(items.$ref === undefined ? items : objectAt(check.definitions, shared), 'properties')
  return balanced
    .map(String)
    .filter((name) => objectAt(amounts, name).format !== 'decimal')
    .map((name) =>
      violation(
        check,
        at,
        `names ${name}, which is not a decimal of the entries${suggest(name, Object.keys(amounts))}`,
        'unknown',
      ),
    )
}

function violation({ prefix }: SchemaCheck, path: DotPath, description: string, rule: string): Violation {
  return { field: formatDotPath(path, prefix), description, rule }
}

function objectAt(object: JsonObject, key: string): JsonObject {
  return Object.hasOwn(object, key) ? objectOf(object[key] ?? null) : {}
}

function objectOf(value: Json): JsonObject {
  return isJsonObject(value) ? value : {}
}
