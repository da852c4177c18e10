import { z } from 'zod'
import { isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import { configSchema } from './config-schema.ts'

let cachedJsonSchema: JsonObject | undefined

/**
 * JSON Schema (draft 2020-12) of the integration config, made from the objects that validate it.
 *
 * It describes shapes. What only a check can see (placeholder names, expressions, rules between fields) is not in it.
 */
export function integrationConfigSchema(): JsonObject {
  if (cachedJsonSchema !== undefined) return cachedJsonSchema
  const schema: unknown = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' })
  const plain = JSON.parse(JSON.stringify(schema)) as Json
  if (!isJsonObject(plain)) throw new Error('the schema of a config is an object')
  cachedJsonSchema = plain
  return plain
}
