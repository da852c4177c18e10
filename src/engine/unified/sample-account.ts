import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { listPlaceholderPaths } from '../expressions/template.ts'
import type { AccountAccess } from '../proxy/request.ts'

/** The value of every variable of a definition, and of one with which an address begins. */
const SAMPLE = 'sample'
const SAMPLE_ORIGIN = 'https://sample.example.com'

/**
 * An account for which a definition's requests can be built without a customer: all variables that it reads have sample
 * values, and its credentials are empty.
 *
 * @param context replaces sample values
 */
export function sampleAccount(definition: JsonObject, context: JsonObject = {}): AccountAccess {
  const origins = new Set(listBaseUrls(definition).flatMap((url) => namesOf(/^\{\{[^}]*\}\}/.exec(url)?.[0] ?? '')))
  const values = Object.fromEntries(
    namesOf(definition).map((name) => [name, origins.has(name) ? SAMPLE_ORIGIN : SAMPLE]),
  )
  return {
    id: '00000000-0000-7000-8000-000000000000',
    isSandbox: false,
    context: { ...values, ...context },
    credentials: { oauth: { token: { access_token: SAMPLE } } },
    environmentVariables: values,
  }
}

/** A definition whose requests carry no authorization, which a sample account has no keys for. */
export function withoutAuthorization(definition: JsonObject): JsonObject {
  const resources = isJsonObject(definition.resources) ? definition.resources : {}
  return {
    ...definition,
    authorization: { format: 'none', config: {} },
    resources: mapObject(resources, (methods) =>
      isJsonObject(methods) ? mapObject(methods, withoutOwnAuthorization) : methods,
    ),
  }
}

function withoutOwnAuthorization(method: Json): Json {
  if (!isJsonObject(method)) return method
  const { authorization: _, ...rest } = method
  return rest
}

function mapObject(object: JsonObject, map: (value: Json) => Json): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value)]))
}

/** The first names of placeholders that an account fills: bare ones, and those below `context`, `credentials` and the variables. */
function namesOf(value: Json): readonly string[] {
  return listPlaceholderPaths(value).flatMap(({ steps: [name] }) => (typeof name === 'string' ? [name] : []))
}

function listBaseUrls(value: Json): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]: [string, Json]) =>
    key === 'base_url' && typeof inner === 'string' ? [inner] : listBaseUrls(inner),
  )
}
