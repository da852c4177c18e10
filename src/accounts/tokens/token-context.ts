import { getAtPath, type Json, type JsonObject } from '../../base/index.ts'
import type { TokenRules, TokenSet } from '../../formats/index.ts'
import { findReservedKeys } from '../context.ts'

/**
 * Context keys that a token answer fills and that differ from what is there.
 *
 * Anybody may read the context, so only plain values get there that are no token; a list or an object could hold one.
 */
export function contextFromToken(
  { contextFromToken }: Pick<TokenRules<never>, 'contextFromToken'>,
  { fields, accessToken, refreshToken }: TokenSet,
  context: JsonObject,
): JsonObject {
  const secrets: readonly (Json | undefined)[] = [accessToken, refreshToken, fields.id_token]
  const entries = contextFromToken.flatMap(([key, path]): [string, Json][] => {
    const value = getAtPath(fields, path)
    if (value === undefined || value === null || typeof value === 'object') return []
    if (secrets.includes(value) || value === context[key]) return []
    return findReservedKeys({ [key]: value }).length === 0 ? [[key, value]] : []
  })
  return Object.fromEntries(entries)
}
