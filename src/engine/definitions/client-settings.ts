import { Failure } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { AccountValues } from '../expressions/placeholder.ts'
import { compileJson, listPlaceholderPaths, renderJson } from '../expressions/template.ts'
import { listCredentials } from '../formats/credential/registry.ts'

/** Defaults of `oauth1` for its client. */
const CONSUMER_KEY = '{{environment_variables.CONSUMER_KEY}}'
const CONSUMER_SECRET = '{{environment_variables.CONSUMER_SECRET}}'

/**
 * Whether the client with which an integration asks for consent is set up: each of its settings has a value, where it is read from
 * environment variables alone.
 *
 * @param config with the override merged over it and secrets in place
 * @param key of the credentials
 */
export function isClientConfigured(config: JsonObject, key: string): boolean {
  const variables = isJsonObject(config.environment_variables) ? config.environment_variables : {}
  const choice = listCredentials(config.credentials).find((each) => each.key === key)
  const settings = isJsonObject(choice?.config) ? choice.config : {}
  return clientSettings(settings, choice?.format).every((setting) => hasValue(setting, variables))
}

/**
 * What names the client by which an account's consent was asked for: its id and the host of its tokens, as one text. `undefined`
 * where the definition, or a value that it reads, no longer says.
 */
export function clientNameOf(config: JsonObject, key: string, account: AccountValues): string | undefined {
  const choice = listCredentials(config.credentials).find((each) => each.key === key)
  const settings = isJsonObject(choice?.config) ? choice.config : {}
  const [id = null] = clientSettings(settings, choice?.format)
  const host =
    (isJsonObject(settings.auth) ? settings.auth.tokenHost : settings.access_token_url) ?? config.base_url ?? null
  try {
    return id === null ? undefined : JSON.stringify(renderJson(compileJson([id, host]), { account, call: {} }))
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}

function clientSettings(settings: JsonObject, format: string | undefined): readonly Json[] {
  if (format === 'oauth1') return [settings.consumer_key ?? CONSUMER_KEY, settings.consumer_secret ?? CONSUMER_SECRET]
  const client = isJsonObject(settings.client) ? settings.client : {}
  return [client.id ?? null, client.secret ?? null]
}

/** A placeholder with alternatives has the value of the first one that has any. */
function hasValue(setting: Json, variables: JsonObject): boolean {
  const paths = listPlaceholderPaths(setting)
  const isSet = ({ root, steps: [name] }: (typeof paths)[number]) => {
    if (root !== 'environment_variables' && root !== 'env') return true
    const value = typeof name === 'string' ? variables[name] : undefined
    return value !== undefined && value !== null && value !== ''
  }
  return paths.length === 0 || paths.some(isSet)
}
