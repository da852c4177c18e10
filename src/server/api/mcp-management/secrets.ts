import type { DescField, DescMessage } from '@bufbuild/protobuf'
import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import type { Operation } from '../operation.ts'

const MASK = '***'

/** Creating, issuing and rotating are the operations whose answer has a secret, and no later one has it again. */
const SHOWS_NEW_OBJECT = /^(?:Create|Issue|Rotate)/

/**
 * Tells whether an operation shows a secret, once: its answer has a field with the option `debug_redact`. What a tool returns
 * stays in a conversation and in the logs of its client.
 */
export function showsSecret({ method, output }: Pick<Operation, 'method' | 'output'>): boolean {
  return SHOWS_NEW_OBJECT.test(method.name) && output.fields.some(isSecret)
}

/** The JSON of a message with `***` in place of every field with the option `debug_redact`, at any depth. */
export function maskSecrets(desc: DescMessage, json: JsonObject): JsonObject {
  if (desc.typeName.startsWith('google.protobuf.')) return json
  const masked: Record<string, Json> = { ...json }
  for (const field of desc.fields) {
    const value = json[field.name]
    if (value === undefined) continue
    if (isSecret(field)) masked[field.name] = MASK
    else if (field.message !== undefined && field.fieldKind !== 'map') masked[field.name] = maskIn(field.message, value)
  }
  return masked
}

function maskIn(desc: DescMessage, value: Json): Json {
  if (Array.isArray(value)) return value.map((each) => maskIn(desc, each))
  return isJsonObject(value) ? maskSecrets(desc, value) : value
}

/** Whether a field has the option `debug_redact`. */
export function isSecret(field: DescField): boolean {
  return field.proto.options?.debugRedact === true
}
