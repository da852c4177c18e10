import { isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import { listCredentials } from '../formats/index.ts'

/** Bare names that exist whatever the definition says: the specification's own root for collected keys. */
const ALWAYS = ['api_key']

/** Fields of the formats that ask for something when `fields` is left out. */
const DEFAULT_FIELDS: Readonly<Record<string, readonly string[]>> = {
  oauth2_client_credentials: ['client_id', 'client_secret'],
}

/**
 * The bare names that placeholders may use: fields that are collected when an account is connected, and context keys that
 * the definition itself fills (token and redirect mappings, forms, context updates).
 */
export function listBareNames(config: JsonObject): ReadonlySet<string> {
  const fromCredentials = listCredentials(config.credentials).flatMap(({ format, config: settings }) =>
    isJsonObject(settings) ? credentialNames(format, settings) : (DEFAULT_FIELDS[format] ?? []),
  )
  const fromActions = isJsonObject(config.actions) ? Object.values(config.actions).flatMap(actionNames) : []
  return new Set([...ALWAYS, ...fromCredentials, ...fromActions])
}

function credentialNames(format: string, settings: JsonObject): string[] {
  const fields = settings.fields === undefined ? (DEFAULT_FIELDS[format] ?? []) : fieldNames(settings.fields)
  return [...fields, ...keysOf(settings.context_from_token), ...keysOf(settings.context_from_redirect)]
}

function actionNames(action: Json): string[] {
  if (!isJsonObject(action)) return []
  const steps = Array.isArray(action.steps) ? action.steps : [action]
  return steps.flatMap((step: Json) => {
    if (!isJsonObject(step) || !isJsonObject(step.config)) return []
    if (step.type === 'form') return fieldNames(step.config.fields ?? null)
    return step.type === 'update_context' ? keysOf(step.config) : []
  })
}

function fieldNames(fields: Json): string[] {
  if (!Array.isArray(fields)) return []
  return fields.flatMap((field: Json) => (isJsonObject(field) && typeof field.name === 'string' ? [field.name] : []))
}

function keysOf(value: Json | undefined): string[] {
  return isJsonObject(value) ? Object.keys(value) : []
}
