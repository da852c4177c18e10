import { type DescField, type DescMessage, type JsonObject, ScalarType } from '@bufbuild/protobuf'
import { type Annotations, description } from './annotations.ts'
import { ruleKeywords } from './rules.ts'

/** Schemas of messages, written once each under `components.schemas` when first referred to. */
export interface SchemaBook {
  /** `{$ref}` to the message, or its schema inline where the JSON form is not the message's fields. */
  refTo(message: DescMessage, role: Role): JsonObject
  /** The schema of a single field with limits and description, for parameters. */
  ofField(field: DescField, role: Role): JsonObject
  /** `{$ref}` to a request body: the message without the fields that the path carries. Undefined if nothing is left. */
  bodyRef(message: DescMessage, inPath: readonly string[]): JsonObject | undefined
  /** All schemas so far, by component name. */
  readonly schemas: Readonly<Record<string, JsonObject>>
}

/**
 * In a request a field must be sent when it is REQUIRED; in a response it is there whenever it cannot be absent. In the payload
 * of an event it is there unless it is OPTIONAL or can be absent; what can be absent may also be null there.
 */
type Role = 'request' | 'response' | 'event'

/** Messages whose JSON form is not an object of their fields. */
const WELL_KNOWN: Readonly<Record<string, JsonObject>> = {
  'google.protobuf.Struct': { type: 'object', additionalProperties: true },
  'google.protobuf.Value': {},
  'google.protobuf.Timestamp': { type: 'string', format: 'date-time' },
  'google.protobuf.Duration': { type: 'string', pattern: '^-?[0-9]+(\\.[0-9]{1,9})?s$' },
  'google.protobuf.Empty': { type: 'object', maxProperties: 0 },
}

const SCALARS: Readonly<Partial<Record<ScalarType, JsonObject>>> = {
  [ScalarType.STRING]: { type: 'string' },
  [ScalarType.BOOL]: { type: 'boolean' },
  [ScalarType.INT32]: { type: 'integer', format: 'int32' },
  [ScalarType.DOUBLE]: { type: 'number', format: 'double' },
}

/** An empty book over messages with these annotations. @param at where its document holds the schemas */
export function createSchemaBook(annotations: Annotations, at = '#/components/schemas'): SchemaBook {
  const schemas: Record<string, JsonObject> = {}

  function refTo(message: DescMessage, role: Role): JsonObject {
    const inline = WELL_KNOWN[message.typeName]
    return inline ?? component(message, role, message.fields)
  }

  function component(message: DescMessage, role: Role, fields: readonly DescField[]): JsonObject {
    const name = message.typeName.replace(/^patchbay\.v1\./, '')
    if (!Object.hasOwn(schemas, name)) {
      schemas[name] = {} // holds the place while a message that refers to itself is written
      schemas[name] = objectSchema(message, role, fields)
    }
    return { $ref: `${at}/${name}` }
  }

  function objectSchema(message: DescMessage, role: Role, fields: readonly DescField[]): JsonObject {
    const properties = Object.fromEntries(fields.map((field) => [field.name, ofField(field, role)]))
    const required = fields.filter((field) => isRequired(field, role)).map((field) => field.name)
    const conflicts = exclusivePairs(message).map((pair) => ({ not: bothGiven(pair, role) }))
    return {
      type: 'object',
      description: description(message),
      properties,
      ...(required.length > 0 && { required }),
      ...(conflicts.length > 0 && { allOf: conflicts }),
    }
  }

  function isRequired(field: DescField, role: Role): boolean {
    if (role !== 'response' && annotations.hasBehavior(field, 'REQUIRED')) return true
    if (role === 'request' || (role === 'event' && annotations.hasBehavior(field, 'OPTIONAL'))) return false
    if (field.oneof !== undefined) return isShownAsNull(field, role)
    return field.fieldKind !== 'message' && !field.proto.proto3Optional
  }

  function ofField(field: DescField, role: Role): JsonObject {
    const text = description(field)
    const schema = typed(field, role, ruleKeywords(field))
    if (role === 'event') {
      const isNullable = !isRequired(field, role) && !annotations.hasBehavior(field, 'OPTIONAL')
      return { ...(isNullable ? orNull(schema) : schema), description: text }
    }
    return {
      ...(isShownAsNull(field, role) ? orNull(schema) : schema),
      ...(text !== '' && { description: text }),
      ...(annotations.hasBehavior(field, 'OUTPUT_ONLY') && { readOnly: true }),
      ...(annotations.hasBehavior(field, 'INPUT_ONLY') && { writeOnly: true }),
    }
  }

  /** The field's type narrowed by its rules. Rules of elements narrow the elements. */
  function typed(field: DescField, role: Role, rules: JsonObject): JsonObject {
    switch (field.fieldKind) {
      case 'list':
        return { type: 'array', ...rules, items: { ...element(field, role), ...asObject(rules.items) } }
      case 'map':
        return {
          type: 'object',
          additionalProperties: { ...element(field, role), ...asObject(rules.additionalProperties) },
        }
      default:
        return { ...element(field, role), ...rules }
    }
  }

  function element(field: DescField, role: Role): JsonObject {
    if (field.message) return refTo(field.message, role)
    const scalar = field.scalar === undefined ? undefined : SCALARS[field.scalar]
    if (!scalar) throw new Error(`${field.parent.typeName}.${field.name}: no JSON Schema for this type`)
    return scalar
  }

  function bodyRef(message: DescMessage, inPath: readonly string[]): JsonObject | undefined {
    const fields = message.fields.filter((field) => !inPath.includes(field.name))
    return fields.length === 0 ? undefined : component(message, 'request', fields)
  }

  return { refTo, ofField, bodyRef, schemas }
}

/** A member of a choice between scalars: an answer has all of them, and null for those that were not chosen. */
function isShownAsNull({ oneof }: DescField, role: Role): boolean {
  return role === 'response' && oneof?.fields.every(({ fieldKind }) => fieldKind === 'scalar') === true
}

/** Two members of a choice with a value, in an answer beside null. */
function bothGiven(pair: readonly DescField[], role: Role): JsonObject {
  const required = pair.map(({ name }) => name)
  if (!pair.some((field) => isShownAsNull(field, role))) return { required }
  return { required, properties: Object.fromEntries(required.map((name) => [name, { type: 'string' }])) }
}

/** The schema, and null. */
function orNull(schema: JsonObject): JsonObject {
  if (Object.keys(schema).length === 0) return schema
  if (typeof schema.type !== 'string') return { anyOf: [schema, { type: 'null' }] }
  const { enum: values } = schema
  return { ...schema, type: [schema.type, 'null'], ...(Array.isArray(values) && { enum: [...values, null] }) }
}

/** Every two fields of a oneof, which no object carries together. */
function exclusivePairs(message: DescMessage): DescField[][] {
  return message.oneofs.flatMap(({ fields }) =>
    fields.flatMap((one, index) => fields.slice(index + 1).map((other) => [one, other])),
  )
}

function asObject(value: JsonObject[string] | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}
