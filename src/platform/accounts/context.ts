import type { TokenRules, TokenSet } from '../../engine/formats/index.ts'
import { invalidFields, type Violation } from '../../foundation/base/index.ts'
import { getAtPath, isJsonObject, isSameScalar, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { Redactor } from '../../foundation/redaction/index.ts'
import type { ContextPatch } from './sql/integrated-account.ts'

/** Roots of placeholders that are no context keys. */
const RESERVED_KEYS: readonly string[] = ['environment_variables', 'env', 'oauth']

/** Reads a change of the context: null removes a key, any other value replaces it whole. */
export function contextPatchFrom(context: JsonObject): ContextPatch {
  const entries: readonly [string, Json][] = Object.entries(context)
  return {
    keys: Object.fromEntries(entries.filter(([, value]) => value !== null)),
    removed: entries.filter(([, value]) => value === null).map(([key]) => key),
  }
}

/** Reserved keys of a given context. Pure, so that a request is validated before anything is read. */
export function findReservedKeys(context: JsonObject): readonly Violation[] {
  return Object.keys(context)
    .filter((key) => RESERVED_KEYS.includes(key))
    .map((key) => contextViolation(key, 'is a name that the runtime owns', 'context.reserved'))
}

/**
 * @param secretNames names of the account's credentials, where they are known
 * @throws Failure CONTEXT_KEY_RESERVED with every key that is reserved or names a credential
 */
export function assertNoReservedKeys(context: JsonObject, secretNames: readonly string[] = []): void {
  const secrets = Object.keys(context).filter((key) => secretNames.includes(key) && !RESERVED_KEYS.includes(key))
  const violations = [
    ...findReservedKeys(context),
    ...secrets.map((key) =>
      contextViolation(key, 'is credential material: give it in credentials', 'context.credential'),
    ),
  ]
  if (violations.length > 0) throw invalidFields(violations, 'CONTEXT_KEY_RESERVED')
}

function contextViolation(key: string, description: string, rule: string): Violation {
  return { field: `context.${key}`, description, rule }
}

/** Context keys that a consent redirect brought, without names that the runtime owns and names of credentials. */
export function contextKeysFromRedirect(keys: JsonObject, secretNames: readonly string[]): JsonObject {
  const isAllowed = (key: string) => !RESERVED_KEYS.includes(key) && !secretNames.includes(key)
  return Object.fromEntries(Object.entries(keys).filter(([key]) => isAllowed(key)))
}

/**
 * Context keys that a token response sets (`context_from_token`) and whose values change.
 *
 * The context is readable, so only scalars are taken that contain no token and no credential; a list or an object could hide
 * one.
 *
 * @param credentials of the account, with which the token was requested
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
    if (isSameScalar(value, storedValue(context, key)) || redaction.redactJson(value) !== value) return []
    return findReservedKeys({ [key]: value }).length === 0 ? [[key, value]] : []
  })
  return Object.fromEntries(entries)
}

/** The value of a key; `undefined` for one that cannot be read. */
function storedValue(context: JsonObject, key: string): Json | undefined {
  return Object.getOwnPropertyDescriptor(context, key)?.value
}
