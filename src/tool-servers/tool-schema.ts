import { formatQuantity, isJsonNumber, isJsonObject, type Json, type JsonObject } from '../base/index.ts'

/** A description costs its reader tokens in every conversation. */
const DESCRIPTION_LENGTH_MAX = 300
const TITLE_LENGTH_MAX = 100
const ENUM_MAX = 50
const ENUM_EXAMPLES = 5
/** Depth to which schemas are written out; below it anything is valid. */
const DEPTH_MAX = 8
/** Definitions that are inlined inside each other, so that one that names itself ends. */
const REFERENCES_MAX = 5
/** Schemas within one schema: definitions that name each other several times would multiply. */
const SCHEMAS_MAX = 2_000

/** Keywords whose value is one schema, a list of schemas, or schemas by name. */
const SINGLE_KEYWORDS = ['items', 'additionalProperties', 'not', 'contains', 'propertyNames'] as const
const LIST_KEYWORDS = ['oneOf', 'anyOf', 'allOf', 'prefixItems'] as const
/** Keywords that are kept as they are. */
const PLAIN_KEYWORDS: ReadonlySet<string> = new Set([
  'type',
  'format',
  'default',
  'const',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'uniqueItems',
])

/**
 * A JSON Schema for models: only keywords that clients know, references inlined (clients must not fetch them), long
 * descriptions and enumerations shortened, properties that cannot be written left out.
 *
 * @param schema of a definition: any JSON; `required: true` on a property counts as its name in `required`
 */
export function simplifySchema(schema: JsonObject): JsonObject {
  return simplify(schema, { root: schema, depth: 0, references: 0, budget: { left: SCHEMAS_MAX } })
}

/** A text of a definition for models: without control characters, and cut. */
export function plainDescription(text: string, lengthMax = DESCRIPTION_LENGTH_MAX): string {
  const plain = withoutControls(text).replace(/\s+/g, ' ').trim()
  return plain.length <= lengthMax ? plain : `${plain.slice(0, lengthMax - 1).trimEnd()}…`
}

/**
 * A text without control characters, those that change the direction of text, and those that are invisible: a reader sees what a
 * model sees. Line ends and tabs stay.
 */
export function withoutControls(text: string): string {
  return text.replace(HIDDEN, '')
}

const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu

interface Place {
  /** The document that references point into. */
  readonly root: JsonObject
  readonly depth: number
  readonly references: number
  /** How many schemas are still written out; below them anything is valid. */
  readonly budget: { left: number }
}

function simplify(schema: Json | undefined, place: Place): JsonObject {
  if (!isJsonObject(schema) || place.depth > DEPTH_MAX || place.budget.left <= 0) return {}
  place.budget.left -= 1
  if (typeof schema.$ref === 'string') return simplifyReference(schema.$ref, schema, place)
  const inner = { ...place, depth: place.depth + 1 }
  const simple: Record<string, Json> = {}
  for (const [keyword, value] of Object.entries(schema)) if (PLAIN_KEYWORDS.has(keyword)) simple[keyword] = value
  if (typeof schema.title === 'string') simple.title = plainDescription(schema.title, TITLE_LENGTH_MAX)
  const description = typeof schema.description === 'string' ? plainDescription(schema.description) : undefined
  Object.assign(simple, simplifyEnum(schema.enum, description))
  for (const keyword of SINGLE_KEYWORDS) {
    const value = schema[keyword]
    if (isJsonObject(value)) simple[keyword] = simplify(value, inner)
    else if (typeof value === 'boolean') simple[keyword] = value
  }
  for (const keyword of LIST_KEYWORDS) {
    const value = schema[keyword]
    if (Array.isArray(value)) simple[keyword] = value.map((each) => simplify(each, inner))
  }
  return { ...simple, ...simplifyProperties(schema, inner) }
}

function simplifyReference(reference: string, { $ref: _, ...own }: JsonObject, place: Place): JsonObject {
  if (place.references >= REFERENCES_MAX) return {}
  const target = resolvePointer(place.root, reference)
  if (!isJsonObject(target)) return simplify(own, place)
  return simplify({ ...target, ...own }, { ...place, references: place.references + 1 })
}

/** The part of a document that `#/a/b` names. */
function resolvePointer(root: JsonObject, reference: string): Json | undefined {
  if (!reference.startsWith('#/')) return undefined
  const steps = reference.slice(2).split('/').map(decodePointerStep)
  return steps.reduce<Json | undefined>(
    (value, step) => (isJsonObject(value) && Object.hasOwn(value, step) ? value[step] : undefined),
    root,
  )
}

function decodePointerStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** Properties that can be written, with the names of those that must be. */
function simplifyProperties(schema: JsonObject, place: Place): JsonObject {
  if (!isJsonObject(schema.properties)) return {}
  const listed = Array.isArray(schema.required) ? schema.required : []
  const properties = Object.entries(schema.properties).filter(
    ([, property]) => isJsonObject(property) && property.readOnly !== true,
  )
  const required = properties.flatMap(([name, property]) =>
    listed.includes(name) || (isJsonObject(property) && property.required === true) ? [name] : [],
  )
  return {
    properties: Object.fromEntries(properties.map(([name, property]) => [name, simplify(property, place)])),
    ...(required.length === 0 ? {} : { required }),
  }
}

/** The enumeration, or for a long one a hint in the description. */
function simplifyEnum(values: Json | undefined, description: string | undefined): JsonObject {
  const described = description === undefined ? {} : { description }
  if (!Array.isArray(values)) return described
  if (values.length <= ENUM_MAX) return { enum: values, ...described }
  const examples = values.slice(0, ENUM_EXAMPLES).join(', ')
  const hint = `One of ${formatQuantity(values.length, 'value')} such as ${examples}.`
  const type = values.every(isJsonNumber) ? 'number' : 'string'
  return { type, description: plainDescription(description === undefined ? hint : `${description} ${hint}`) }
}
