import { isJsonObject, type Json } from '../../../../src/foundation/json/index.ts'

const TYPES: ReadonlySet<Json | undefined> = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object'])
const FORMATS: ReadonlySet<Json | undefined> = new Set(['date-time', 'int32', 'int64', 'float', 'double'])
/** Keywords of `Schema` of Gemini's API, and `additionalProperties`, which its clients leave out. */
const KEYWORDS: ReadonlySet<string> = new Set([
  ...['type', 'format', 'title', 'description', 'nullable', 'enum', 'items', 'minItems', 'maxItems', 'properties'],
  ...['required', 'minimum', 'maximum', 'minLength', 'maxLength', 'default', 'additionalProperties'],
])

/** Why Gemini would refuse the schema of a function declaration, as paths with what is wrong there. */
export function geminiProblems(schema: Json | undefined, path = '$'): readonly string[] {
  if (!isJsonObject(schema)) return [`${path}: no schema`]
  const { type, format, enum: values, items, properties } = schema
  const found = Object.keys(schema)
    .filter((keyword) => !KEYWORDS.has(keyword))
    .map((keyword) => `${path}: ${keyword}`)
  if (!TYPES.has(type)) found.push(`${path}: type ${JSON.stringify(type)}`)
  if (format !== undefined && !FORMATS.has(format)) found.push(`${path}: format ${format}`)
  if (values !== undefined && (type !== 'string' || !isTexts(values))) found.push(`${path}: enum`)
  if (type === 'array' || items !== undefined) found.push(...geminiProblems(items, `${path}[]`))
  if (type !== 'object' && (properties ?? schema.required) !== undefined) found.push(`${path}: members of ${type}`)
  const inner = Object.entries(isJsonObject(properties) ? properties : {})
  return [...found, ...inner.flatMap(([name, property]) => geminiProblems(property, `${path}.${name}`))]
}

function isTexts(values: Json): boolean {
  return Array.isArray(values) && values.every((value) => typeof value === 'string' && value !== '')
}
