import type { Ajv, ValidateFunction } from 'ajv'
import { isJsonObject, type Json, type JsonObject } from '../../../src/foundation/json/index.ts'
import { resolve } from './schemas.ts'

/** Keywords that judge how the test's own values look, whose ids and texts are short, and those that are no schema. */
const IGNORED_KEYWORDS = [
  ...['pattern', 'format', 'minLength', 'minItems', 'multipleOf', 'uniqueItems', 'discriminator'],
  ...['id', '$id', '$schema', '$anchor', 'example', 'examples', 'default'],
]
const ERRORS_MAX = 5
const VALUES_SHOWN = 12

/** Validates values by schemas of OpenAPI documents, whose references it follows within the document. */
export class Validator {
  readonly #ajv: Ajv
  readonly #documents = new Map<JsonObject, string>()
  readonly #checks = new Map<Json, ValidateFunction>()

  constructor(ajv: Ajv) {
    this.#ajv = ajv
  }

  /** What is wrong with a value, the place first: none where it fits. */
  check(root: JsonObject, schema: Json, value: Json): string[] {
    const check = this.#compile(root, schema)
    if (check(structuredClone(value))) return []
    const problems = (check.errors ?? []).map(({ instancePath, message, params }) => {
      const allowed = Array.isArray(params.allowedValues)
        ? ` (${params.allowedValues.slice(0, VALUES_SHOWN).join(', ')})`
        : ''
      return `${instancePath} ${message}${allowed}`
    })
    return [...new Set(problems)].slice(0, ERRORS_MAX)
  }

  #compile(root: JsonObject, schema: Json): ValidateFunction {
    const known = this.#checks.get(schema)
    if (known !== undefined) return known
    const id = this.#documentId(root)
    const check = this.#ajv.compile(withReferencesTo(id, toJsonSchema(resolve(root, schema) ?? {})) as JsonObject)
    this.#checks.set(schema, check)
    return check
  }

  #documentId(root: JsonObject): string {
    const known = this.#documents.get(root)
    if (known !== undefined) return known
    const id = `document-${this.#documents.size}`
    this.#documents.set(root, id)
    this.#ajv.addSchema({ $id: id, ...(toJsonSchema(root) as JsonObject) })
    return id
  }
}

/** OpenAPI's dialect as plain JSON Schema, for requests: nullable types, read-only properties that no request has, keywords of older drafts. */
function toJsonSchema(value: Json, parent = ''): Json {
  if (Array.isArray(value)) return value.map((entry) => toJsonSchema(entry, parent))
  if (!isJsonObject(value)) return value
  if (parent === 'properties' || parent === 'schemas') return mapValues(value, (entry) => toJsonSchema(entry))
  const { nullable, ...schema } = mapValues(value, toJsonSchema)
  for (const keyword of IGNORED_KEYWORDS) delete schema[keyword]
  for (const bound of ['exclusiveMinimum', 'exclusiveMaximum'])
    if (typeof schema[bound] === 'boolean') delete schema[bound]
  for (const list of ['required', 'enum']) if (!Array.isArray(schema[list])) delete schema[list]
  if (typeof schema.$ref === 'string' && !schema.$ref.startsWith('#')) return {}
  const plain = withoutReadOnly(schema)
  return nullable === true ? { anyOf: [plain, { type: 'null' }] } : plain
}

function withoutReadOnly(schema: Record<string, Json>): JsonObject {
  const { required, properties } = schema
  if (!Array.isArray(required) || !isJsonObject(properties)) return schema
  return { ...schema, required: required.filter((name) => !isReadOnly(properties[String(name)])) }
}

function isReadOnly(schema: Json | undefined): boolean {
  return isJsonObject(schema) && schema.readOnly === true
}

function withReferencesTo(id: string, value: Json): Json {
  if (Array.isArray(value)) return value.map((entry) => withReferencesTo(id, entry))
  if (!isJsonObject(value)) return value
  if (typeof value.$ref === 'string') return { $ref: `${id}${value.$ref}` }
  return mapValues(value, (entry) => withReferencesTo(id, entry))
}

function mapValues(value: JsonObject, map: (entry: Json, key: string) => Json): Record<string, Json> {
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, map(entry, key)]))
}
