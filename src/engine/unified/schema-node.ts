import { isJsonObject, type JsonObject } from '../../foundation/json/index.ts'

/** A compiled JSON Schema of the subset that models use. */
export type SchemaNode = ScalarNode | ObjectNode | ListNode

interface AnyNode {
  /** Left out of records unless the caller asks for it. */
  readonly isSensitive: boolean
  readonly isReadOnly: boolean
}

/** A text, number or truth value. */
export interface ScalarNode extends AnyNode {
  readonly kind: 'string' | 'number' | 'integer' | 'boolean'
  readonly enum: readonly string[] | undefined
  readonly format: ScalarFormat | undefined
}

export const SCALAR_FORMATS = ['date', 'date-time', 'decimal', 'email', 'uri', 'country'] as const

type ScalarFormat = (typeof SCALAR_FORMATS)[number]

/** An object. */
export interface ObjectNode extends AnyNode {
  readonly kind: 'object'
  readonly properties: ReadonlyMap<string, SchemaNode>
  /** Fields that a write must have. */
  readonly required: ReadonlySet<string>
  /** A reference to another record: `{id, name}`. */
  readonly isReference: boolean
  /** Any key is allowed: an object without properties. */
  readonly isOpen: boolean
}

interface ListNode extends AnyNode {
  readonly kind: 'array'
  readonly items: SchemaNode
  /** Two amounts of the entries, such as debit and credit, whose sums must be equal in a write. */
  readonly balanced: readonly [string, string] | undefined
}

/** Whether values of the node have a `<field>_raw` beside them: values outside a list are `null`, and kept there. */
export function hasRawField(node: SchemaNode): boolean {
  const scalar = node.kind === 'array' ? node.items : node
  return isScalarNode(scalar) && (scalar.enum !== undefined || scalar.format === 'country')
}

export function isScalarNode(node: SchemaNode): node is ScalarNode {
  return node.kind !== 'object' && node.kind !== 'array'
}

/** Compiles a checked JSON Schema without `$ref`. */
export function compileSchemaNode(schema: JsonObject): SchemaNode {
  const flags = { isSensitive: schema['x-sensitive'] === true, isReadOnly: schema.readOnly === true }
  switch (schema.type) {
    case 'object':
      return objectNode(schema, flags)
    case 'array':
      return listNode(schema, flags)
    case 'number':
    case 'integer':
    case 'boolean':
      return scalarNode(schema.type, schema, flags)
    default:
      return scalarNode('string', schema, flags)
  }
}

function listNode(schema: JsonObject, flags: AnyNode): ListNode {
  const items = compileSchemaNode(isJsonObject(schema.items) ? schema.items : {})
  const [left, right] = Array.isArray(schema['x-balanced']) ? schema['x-balanced'].map(String) : []
  const balanced = left === undefined || right === undefined ? undefined : ([left, right] as const)
  return { kind: 'array', ...flags, items, balanced }
}

function objectNode(schema: JsonObject, flags: AnyNode): ObjectNode {
  const entries = isJsonObject(schema.properties) ? Object.entries(schema.properties) : []
  const properties = new Map(
    entries.flatMap(([name, property]) =>
      isJsonObject(property) ? [[name, compileSchemaNode(property)] as const] : [],
    ),
  )
  const required = Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === 'string') : []
  const isPair = properties.size === 2 && properties.has('id') && properties.has('name')
  return {
    kind: 'object',
    ...flags,
    properties,
    required: new Set(required),
    isReference: isPair || schema['x-reference'] !== undefined,
    isOpen: properties.size === 0,
  }
}

function scalarNode(kind: ScalarNode['kind'], schema: JsonObject, flags: AnyNode): ScalarNode {
  const { enum: values, format } = schema
  return {
    kind,
    ...flags,
    enum: Array.isArray(values) ? values.map(String) : undefined,
    format: SCALAR_FORMATS.find((known) => known === format),
  }
}
