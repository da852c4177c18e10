import { isJsonObject, type Json } from '../../base/index.ts'
import type { Scope } from '../../expression/index.ts'
import { SECRET_MASK } from '../../vault/index.ts'

/** Names under which token requests and answers carry what nobody may read. */
const SECRET_KEY = /secret|assertion|authorization|password|(?:access|refresh|id)_token/i
/** Shorter texts are words: taking them out would only garble the message. */
const LENGTH_MIN = 4

/**
 * A message of a third party without the secrets that it was sent: servers repeat what they refuse.
 *
 * @param scopes what the requests were made of
 */
export function scrub(message: string, scopes: readonly Scope[]): string {
  const secrets = scopes.flatMap(({ account, call }) => {
    const { oauth, ...collected } = account.credentials
    return [...textsOf(collected, true), ...textsOf(oauth ?? null, false), ...textsOf(call.args ?? null, false)]
  })
  return secrets
    .filter((secret) => secret.length >= LENGTH_MIN)
    .toSorted((one, other) => other.length - one.length)
    .reduce((text, secret) => text.replaceAll(secret, SECRET_MASK), message)
}

function textsOf(value: Json, isSecret: boolean): string[] {
  if (typeof value === 'string') return isSecret ? [value] : []
  if (Array.isArray(value)) return value.flatMap((item: Json) => textsOf(item, isSecret))
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([key, item]) => textsOf(item, isSecret || SECRET_KEY.test(key)))
}
