import { isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import { listPlaceholderPaths } from '../expressions/index.ts'
import { listCredentials } from '../formats/index.ts'

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
