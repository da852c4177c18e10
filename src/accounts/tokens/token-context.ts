import { getAtPath, isJsonObject, isSameScalar, type Json, type JsonObject } from '../../base/index.ts'
import type { TokenRules, TokenSet } from '../../formats/index.ts'
import { Redactor } from '../../vault/index.ts'
import { findReservedKeys } from '../context.ts'

/**
 * Context keys that a token answer fills and that differ from what is there.
 *
 * Anybody may read the context, so only plain values get there that hold no token and no credential; a list or an object
 * could hold one.
 *
 * @param credentials of the account, with which the token was had
 */
export function contextKeysFromToken(
  { contextFromToken }: Pick<TokenRules<never>, 'contextFromToken'>,
  { fields, accessToken, refreshToken }: TokenSet,
  context: JsonObject,
  credentials: JsonObject,
): JsonObject {
  const { oauth: _, ...collected } = credentials
  const tokens = [accessToken, refreshToken, fields.id_token]
  const secrets = [...tokens, ...Object.values(collected)].filter((value) => typeof value === 'string')
  const redaction = new Redactor(() => secrets)
  const entries = contextFromToken.flatMap(([key, path]): [string, Json][] => {
    const value = getAtPath(fields, path)
    if (value === undefined || value === null || isJsonObject(value) || Array.isArray(value)) return []
    if (isSameScalar(value, context[key]) || redaction.redactJson(value) !== value) return []
    return findReservedKeys({ [key]: value }).length === 0 ? [[key, value]] : []
  })
  return Object.fromEntries(entries)
}
