import { formatQuantity } from '../../foundation/base/index.ts'
import { isJsonNumber, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { boundJson } from './bound-json.ts'
import { portableSchema } from './portable-schema.ts'

/** A description costs its reader tokens in every conversation. */
const DESCRIPTION_LENGTH_MAX = 300
const TITLE_LENGTH_MAX = 100
const ENUM_MAX = 50
const ENUM_EXAMPLES = 5
/** Depth to which schemas are written out; below it only types are. */
const DEPTH_MAX = 8
/** Definitions that are inlined inside each other, so that one that names itself ends. */
const REFERENCES_MAX = 5
/** Schemas within one schema: definitions that name each other several times would multiply. */
const SCHEMAS_MAX = 2_000
/** Characters of one schema as JSON: a small definition that is inlined many times would become a large schema. */
const CHARACTERS_MAX = 32 * 1024
/** Longer values of an enumeration, and of the other keywords, are left out. */
const ENUM_VALUE_LENGTH_MAX = 100
const VALUE_LENGTH_MAX = 1_000
/** A description is read to so many times its length, so that a long one costs little. */
const READ_FACTOR = 4
/** Quotes, colon, comma and brackets around one member. */
const MEMBER_CHARACTERS = 6

/** Keywords whose value is one schema, a list of schemas, or schemas by name. */
const SINGLE_KEYWORDS = ['items', 'additionalProperties'] as const
const LIST_KEYWORDS = ['oneOf', 'anyOf', 'allOf'] as const
/** Keywords that are kept, or read by `portableSchema`; model providers refuse others. */
const PLAIN_KEYWORDS: ReadonlySet<string> = new Set([
  'type',
  'format',
  'default',
  'const',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'nullable',
])

/**
 * A JSON Schema for models: only what all their providers take (`portableSchema`), references inlined (clients must not fetch them), long
 * descriptions and enumerations shortened, properties that cannot be written left out. Beyond 32 Ki characters of JSON, not counting
 * the names of its own properties, only types are said.
 *
 * @param schema of a definition: any JSON; `required: true` on a property counts as its name in `required`
 */
export function simplifySchema(schema: JsonObject): JsonObject {
  const budget = { schemas: SCHEMAS_MAX, characters: CHARACTERS_MAX }
  return simplify(schema, { root: schema, depth: 0, references: 0, budget })
}

/** A text of a definition for models: without control characters, and cut. */
export function plainDescription(text: string, lengthMax = DESCRIPTION_LENGTH_MAX): string {
  const read = text.slice(0, READ_FACTOR * lengthMax)
  const plain = withoutControls(read).replace(/\s+/g, ' ').trim()
  return plain.length <= lengthMax && read.length === text.length
    ? plain
    : `${plain.slice(0, lengthMax - 1).trimEnd()}…`
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
  /** How many schemas and characters are still written out; below them only types are. */
  readonly budget: { schemas: number; characters: number }
}

function simplify(schema: Json | undefined, place: Place): JsonObject {
  const { budget, depth } = place
  if (!isJsonObject(schema)) return portableSchema({})
  if (depth > DEPTH_MAX || budget.schemas <= 0 || budget.characters <= 0) return typeAlone(schema)
  budget.schemas -= 1
  if (typeof schema.$ref === 'string') return simplifyReference(schema.$ref, schema, place)
  const simple = simplifyOwn(schema)
  if (!take(place, JSON.stringify(simple).length)) return typeAlone(schema)
  const inner = { ...place, depth: depth + 1 }
  for (const keyword of SINGLE_KEYWORDS) {
    const value = schema[keyword]
    if (!isJsonObject(value) && typeof value !== 'boolean') continue
    if (take(place, keyword.length + MEMBER_CHARACTERS))
      simple[keyword] = typeof value === 'boolean' ? value : simplify(value, inner)
  }
  for (const keyword of LIST_KEYWORDS) {
    const value = schema[keyword]
    if (!Array.isArray(value)) continue
    if (take(place, keyword.length + MEMBER_CHARACTERS * (1 + value.length)))
      simple[keyword] = value.map((each) => simplify(each, inner))
  }
  return portableSchema({ ...simple, ...simplifyProperties(schema, inner) })
}

/** The type of a schema that is not written out; one that says nothing is an object, which may hold anything. */
function typeAlone({ type = 'object' }: JsonObject): JsonObject {
  return portableSchema({ type })
}

/** Whether so many characters are left to write. */
function take({ budget }: Place, characters: number): boolean {
  budget.characters -= characters
  return budget.characters >= 0
}

/** The keywords that hold no schemas. */
function simplifyOwn(schema: JsonObject): Record<string, Json> {
  const simple: Record<string, Json> = {}
  for (const [keyword, value] of Object.entries(schema))
    if (PLAIN_KEYWORDS.has(keyword) && isShort(value, VALUE_LENGTH_MAX)) simple[keyword] = value
  if (typeof schema.title === 'string') simple.title = plainDescription(schema.title, TITLE_LENGTH_MAX)
  const description = typeof schema.description === 'string' ? plainDescription(schema.description) : undefined
  return Object.assign(simple, simplifyEnum(schema.enum, description))
}

function isShort(value: Json, lengthMax: number): boolean {
  return boundJson(value, lengthMax) === value
}

function simplifyReference(reference: string, { $ref: _, ...own }: JsonObject, place: Place): JsonObject {
  if (place.references >= REFERENCES_MAX) return typeAlone(own)
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
  const listed = new Set(Array.isArray(schema.required) ? schema.required : [])
  const properties = Object.entries(schema.properties).filter(
    ([, property]) => isJsonObject(property) && property.readOnly !== true,
  )
  const required = properties.flatMap(([name, property]) =>
    listed.has(name) || (isJsonObject(property) && property.required === true) ? [name] : [],
  )
  const characters = [...properties.map(([name]) => name), ...required].reduce((sum, name) => sum + name.length, 0)
  const isWithin = take(place, characters + MEMBER_CHARACTERS * (properties.length + required.length))
  // Names of arguments are not left out: they occur once, and are no more than the definition has.
  if (!isWithin && place.depth > 1) return {}
  return {
    properties: Object.fromEntries(properties.map(([name, property]) => [name, simplify(property, place)])),
    ...(required.length === 0 ? {} : { required }),
  }
}

/** The enumeration, or for a long one, and one of long values, a hint in the description. */
function simplifyEnum(values: Json | undefined, description: string | undefined): JsonObject {
  const described = description === undefined ? {} : { description }
  if (!Array.isArray(values)) return described
  if (values.length <= ENUM_MAX && values.every((value) => isShort(value, ENUM_VALUE_LENGTH_MAX)))
    return { enum: values, ...described }
  const examples = values
    .slice(0, ENUM_EXAMPLES)
    .map((value) => String(boundJson(value, ENUM_VALUE_LENGTH_MAX)))
    .join(', ')
  const hint = `One of ${formatQuantity(values.length, 'value')} such as ${examples}.`
  const type = values.every(isJsonNumber) ? 'number' : 'string'
  return { type, description: plainDescription(description === undefined ? hint : `${description} ${hint}`) }
}
