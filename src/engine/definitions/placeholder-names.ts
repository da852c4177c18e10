import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { listPlaceholderPaths } from '../expressions/template.ts'
import { listCredentials } from '../formats/credential/registry.ts'
import { listActionsAt } from './check-actions.ts'
import { labelKeyOf } from './form-fields.ts'

/** Bare names that exist in every definition. */
const ALWAYS_KNOWN = ['api_key']

/** Default fields of formats whose `fields` are left out. */
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
  const fromActions = listActionsAt(config).flatMap(({ definition }) => actionNames(definition))
  return new Set([...ALWAYS_KNOWN, ...fromCredentials, ...fromActions])
}

/** Formats of authorization that send values in a header unchanged. */
const PLAIN_AUTHORIZATIONS: ReadonlySet<Json> = new Set(['bearer', 'header'])

/** The bare names whose values are sent in headers unchanged: such values must not hold line breaks. */
export function listNamesInHeaders(config: Json): ReadonlySet<string> {
  if (Array.isArray(config)) return new Set(config.flatMap((item: Json) => [...listNamesInHeaders(item)]))
  if (!isJsonObject(config)) return new Set()
  const names = Object.entries(config).flatMap(([key, value]): Iterable<string>[] => [
    listNamesInHeaders(value),
    ...(key === 'headers' ? [bareNames(value)] : []),
    ...(key === 'authorization' ? [namesOfAuthorization(value)] : []),
  ])
  return new Set(names.flatMap((some) => [...some]))
}

function namesOfAuthorization(value: Json): readonly string[] {
  if (!isJsonObject(value) || value.format === undefined || !PLAIN_AUTHORIZATIONS.has(value.format)) return []
  const { config = {} } = value
  const isDefault = value.format === 'bearer' && !(isJsonObject(config) && config.token !== undefined)
  return isDefault ? ['api_key'] : bareNames(config)
}

function bareNames(value: Json): readonly string[] {
  return listPlaceholderPaths(value).flatMap(({ root, steps: [name] }) =>
    (root === undefined || root === 'credentials') && typeof name === 'string' ? [name] : [],
  )
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
    if (step.type === 'form') return formNames(step.config.fields ?? null)
    return step.type === 'update_context' ? keysOf(step.config) : []
  })
}

function fieldNames(fields: Json): string[] {
  if (!Array.isArray(fields)) return []
  return fields.flatMap((field: Json) => (isJsonObject(field) && typeof field.name === 'string' ? [field.name] : []))
}

/** The fields of a form, and the keys of their labels. */
function formNames(fields: Json): string[] {
  const remote = Array.isArray(fields) ? fields.filter((field: Json) => isJsonObject(field) && field.data_source) : []
  const labels = remote.map((field: JsonObject) => labelKeyOf({ name: String(field.name), type: String(field.type) }))
  return [...fieldNames(fields), ...labels]
}

function keysOf(value: Json | undefined): string[] {
  return isJsonObject(value) ? Object.keys(value) : []
}
