import { invalidFields, type Json, type JsonObject, type Violation } from '../base/index.ts'

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
