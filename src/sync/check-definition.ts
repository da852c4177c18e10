import { deepMerge, isJsonObject, type Json, type JsonObject, type Violation } from '../base/index.ts'
import { ACTION_RESOURCE, RESERVED_ACTIONS } from '../definition/index.ts'
import { isUnifiedName, type SyncResource } from './resource.ts'

/** Method names by resource name, as a definition offers them. */
export type MethodNames = Readonly<Record<string, readonly string[]>>

const RESERVED: readonly string[] = RESERVED_ACTIONS

/** Names listed in a message at most. */
const NAMES_SHOWN_MAX = 20

/** What a config under an override offers: methods of resources, and as those of `_` the actions that may be called. */
export function methodNamesOf(config: JsonObject, override: JsonObject): MethodNames {
  const { resources, actions } = deepMerge(config, override)
  const callable = Object.keys(asObject(actions)).filter((name) => !RESERVED.includes(name))
  return Object.fromEntries([
    ...Object.entries(asObject(resources)).map(([name, methods]) => [name, Object.keys(asObject(methods))] as const),
    ...(callable.length === 0 ? [] : [[ACTION_RESOURCE, callable] as const]),
  ])
}

/**
 * Every node whose resource or method the definition does not have.
 *
 * A unified name is looked up like any other: unified APIs are not executed here, so such a node runs when the definition
 * itself has a resource of exactly that name.
 */
export function checkAgainstDefinition(
  resources: readonly SyncResource[],
  offered: MethodNames,
  path = 'resources',
): Violation[] {
  return resources.flatMap(({ resource, method }, index) => {
    const methods = Object.hasOwn(offered, resource) ? offered[resource] : undefined
    if (methods === undefined)
      return [unknownName(`${path}[${index}].resource`, describeMissing(resource), Object.keys(offered), 'resource')]
    if (methods.includes(method)) return []
    return [unknownName(`${path}[${index}].method`, `is not a method of ${resource}`, methods, 'method')]
  })
}

function describeMissing(resource: string): string {
  return isUnifiedName(resource)
    ? 'is a unified resource; unified APIs are not available, and the integration has no resource of that very name'
    : 'is not a resource of the integration'
}

function unknownName(field: string, description: string, names: readonly string[], kind: string): Violation {
  const known = names.slice(0, NAMES_SHOWN_MAX)
  const hint = known.length === 0 ? 'there are none' : `there are ${known.join(', ')}`
  return { field, description: `${description}; ${hint}`, rule: `resources.unknown_${kind}` }
}

function asObject(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}
