import {
  getAtPath,
  invalidFields,
  isJsonObject,
  isSameScalar,
  type Json,
  type JsonObject,
  type Violation,
} from '../base/index.ts'
import type { TokenRules, TokenSet } from '../formats/index.ts'
import { Redactor } from '../redaction/index.ts'

/** Keys by which placeholders reach what the runtime owns. */
const RESERVED: readonly string[] = ['environment_variables', 'env', 'oauth']

/** A change of the context, as the statement takes it. */
export interface ContextPatch {
  readonly keys: JsonObject
  readonly removed: readonly string[]
}

/** Takes a given context apart: null removes a key, everything else sets it whole. */
export function patchFrom(context: JsonObject): ContextPatch {
  const entries: readonly [string, Json][] = Object.entries(context)
  return {
    keys: Object.fromEntries(entries.filter(([, value]) => value !== null)),
    removed: entries.filter(([, value]) => value === null).map(([key]) => key),
  }
}

/** The keys of a given context that the runtime owns. Pure, for a request that is judged before anything is read. */
export function findReservedKeys(context: JsonObject): readonly Violation[] {
  return Object.keys(context)
    .filter((key) => RESERVED.includes(key))
    .map((key) => contextViolation(key, 'is a name that the runtime owns', 'context.reserved'))
}

/**
 * @param secretNames names of the account's credential material, where they are known
 * @throws Failure CONTEXT_KEY_RESERVED with every key that the runtime owns or that names credential material
 */
export function assertNoReservedKeys(context: JsonObject, secretNames: readonly string[] = []): void {
  const secrets = Object.keys(context).filter((key) => secretNames.includes(key) && !RESERVED.includes(key))
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
