import { invalidFields, type Json, type JsonObject } from '../base/index.ts'

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

/**
 * @param secretNames names of the account's credential material, where they are known
 * @throws Failure CONTEXT_KEY_RESERVED with every key that the runtime owns or that names credential material
 */
export function refuseReservedKeys(context: JsonObject, secretNames: readonly string[] = []): void {
  const violations = Object.keys(context).flatMap((key) => {
    const field = `context.${key}`
    if (RESERVED.includes(key))
      return [{ field, description: 'is a name that the runtime owns', rule: 'context.reserved' }]
    if (!secretNames.includes(key)) return []
    return [{ field, description: 'is credential material: give it in credentials', rule: 'context.credential' }]
  })
  if (violations.length > 0) throw invalidFields(violations, 'CONTEXT_KEY_RESERVED')
}
