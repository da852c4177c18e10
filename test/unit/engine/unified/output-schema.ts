import Ajv, { type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { findShippedModel } from '../../../../src/engine/catalog/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'

/** Fields that every record may have beside those of the model. */
const COMMON: Readonly<Record<string, JsonObject>> = {
  id: { type: 'string', minLength: 1 },
  remote_id: nullable({ type: 'string' }),
  created_at: nullable({ type: 'string', format: 'date-time' }),
  updated_at: nullable({ type: 'string', format: 'date-time' }),
  deleted: nullable({ type: 'boolean' }),
  custom_fields: nullable({ type: 'object' }),
  remote_data: {},
  _warnings: {
    type: 'array',
    minItems: 1,
    items: {
      type: 'object',
      required: ['field', 'rule', 'message'],
      properties: { field: { type: 'string' }, rule: { type: 'string' }, message: { type: 'string' } },
    },
  },
}

const ajv = addFormats.default(new Ajv.default({ allErrors: true, strict: false }))
// What providers answer is not always an address that RFC 5321 allows.
ajv.addFormat('email', /^[^\s@]+@[^\s@]+$/)
ajv.addFormat('decimal', /^-?\d+(\.\d+)?$/)
ajv.addFormat('country', /^[A-Z]{2}$/)

/**
 * A validator of the records of a unified resource, made from the document of the model by rules of its own: no fields but
 * those of the schema, the common ones and `<enum>_raw`, each nullable. What is read is whole: every field of the schema is there.
 */
export function outputValidator(model: string, resource: string, isWhole: boolean): ValidateFunction {
  const key = `${model}/${resource} ${isWhole}`
  const validator = validators.get(key) ?? compileValidator(model, resource, isWhole)
  validators.set(key, validator)
  return validator
}

/** A validator takes long to compile, and every mapping of a resource needs the same one. */
const validators = new Map<string, ValidateFunction>()

function compileValidator(model: string, resource: string, isWhole: boolean): ValidateFunction {
  const document = findShippedModel(model) as unknown as ModelDocument
  const schema = document.resources[resource]?.schema
  if (schema === undefined) throw new Error(`no resource ${model}/${resource}`)
  const record = strictObject(schema)
  return ajv.compile({
    ...record,
    properties: { ...(record.properties as JsonObject), ...COMMON },
    required: isWhole ? [...Object.keys(schema.properties as JsonObject), 'id', 'remote_id'] : ['id', 'remote_id'],
    $defs: Object.fromEntries(Object.entries(document.$defs).map(([name, def]) => [name, strictObject(def)])),
  })
}

interface ModelDocument {
  readonly $defs: Readonly<Record<string, JsonObject>>
  readonly resources: Readonly<Record<string, { readonly schema: JsonObject }>>
}

/** An object schema whose fields are optional and nullable, without others; `required` is of writes. */
function strictObject(schema: JsonObject): JsonObject {
  const properties: Record<string, Json> = {}
  for (const [name, field] of Object.entries(schema.properties as Readonly<Record<string, JsonObject>>)) {
    properties[name] = nullable(strict(field))
    if (field.enum !== undefined) properties[`${name}_raw`] = {}
    if (field.format === 'country') properties[`${name}_raw`] = {}
  }
  return { type: 'object', properties, additionalProperties: false }
}

function strict(field: JsonObject): JsonObject {
  if (isJsonObject(field.items)) return { type: 'array', items: strict(field.items) }
  if (field.properties !== undefined) return strictObject(field)
  const { description: _, readOnly: __, 'x-reference': ___, 'x-sensitive': ____, ...rest } = field
  return rest
}

function nullable(schema: JsonObject): JsonObject {
  return { anyOf: [schema, { type: 'null' }] }
}
