import { ACTION_RESOURCE, RESERVED_ACTIONS, requiredInput } from '../../engine/definitions/index.ts'
import { findTemplateProblem, listPlaceholderPaths, type PlaceholderPath } from '../../engine/expressions/index.ts'
import { suggest, suggestOneOf, type Violation } from '../../foundation/base/index.ts'
import { deepMerge, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { parentIndex, pathIntoRecord } from './plan.ts'
import { isUnifiedName, type SyncResource } from './resource.ts'

/** Nodes of one job at most. */
const NODES_MAX = 1_000
/** Levels of `depends_on` at most; every level multiplies the calls and keeps a page of parents in memory. */
const DEPTH_MAX = 5
const ARGUMENT_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,127}$/
const RESOURCE_NAME = /^[^\s/{}]+(?:\/[^\s/{}]+)?$/

/** Placeholder roots of a job. Credentials belong to the definition alone. */
const ROOTS: ReadonlySet<string> = new Set([
  'args',
  'resources',
  'previous_run_date',
  'context',
  'env',
  'environment_variables',
])

/**
 * The violations of the resources of a job, each with its JSON path: unknown and ambiguous parents, cycles, depth, names,
 * templates, placeholders without a value.
 *
 * @param resources shapes as `readSyncResources` returns them
 * @param path prefix of the fields, e.g. `resources`
 */
export function checkResources(resources: readonly SyncResource[], path = 'resources'): Violation[] {
  if (resources.length === 0) return [{ field: path, description: 'must not be empty', rule: 'resources.count' }]
  if (resources.length > NODES_MAX)
    return [{ field: path, description: `must not hold more than ${NODES_MAX} entries`, rule: 'resources.count' }]
  return resources.flatMap((resource, index) => {
    const at = `${path}[${index}]`
    const ancestry = ancestorsOf(resources, index)
    return [
      ...checkNames(resource, at),
      ...checkParent(resources, resource, ancestry, at),
      ...checkTemplates(resource, ancestry, at),
    ]
  })
}

/** The chain of parents, nearest first, up to one more than allowed; stops at a cycle. */
interface Ancestry {
  readonly resources: readonly SyncResource[]
  readonly isCircle: boolean
}

function ancestorsOf(resources: readonly SyncResource[], index: number): Ancestry {
  const seen = new Set([index])
  const chain: SyncResource[] = []
  let current = resources[index]
  while (chain.length <= DEPTH_MAX) {
    const parent = current && parentIndex(resources, current)
    if (parent === undefined) break
    if (seen.has(parent)) return { resources: chain, isCircle: parent === index }
    seen.add(parent)
    current = resources[parent]
    if (current !== undefined) chain.push(current)
  }
  return { resources: chain, isCircle: false }
}

function checkNames({ resource, loop_on }: SyncResource, at: string): Violation[] {
  const violations: Violation[] = []
  if (!RESOURCE_NAME.test(resource)) {
    const description = 'must be the name of a resource such as contacts, or of a unified one such as crm/contacts'
    violations.push({ field: `${at}.resource`, description, rule: 'resources.name' })
  }
  if (loop_on !== undefined && !ARGUMENT_NAME.test(loop_on)) {
    const description = 'must be the bare name of an argument, such as project_ids for {{args.project_ids}}'
    violations.push({ field: `${at}.loop_on`, description, rule: 'resources.loop_on' })
  }
  return violations
}

function checkParent(
  resources: readonly SyncResource[],
  { depends_on }: SyncResource,
  ancestry: Ancestry,
  at: string,
): Violation[] {
  if (depends_on === undefined) return []
  const finding = (description: string, rule: string) => [{ field: `${at}.depends_on`, description, rule }]
  const named = resources.filter(({ resource }) => resource === depends_on).length
  if (named === 0) {
    const names = resources.map(({ resource }) => resource)
    return finding(`names no resource of this job${suggestOneOf(depends_on, names)}`, 'resources.unknown_parent')
  }
  if (ancestry.isCircle) return finding('leads back to this resource', 'resources.circle')
  if (named > 1) return finding(`is ambiguous: ${named} entries sync ${depends_on}`, 'resources.ambiguous_parent')
  if (ancestry.resources.length >= DEPTH_MAX) return finding(`nests deeper than ${DEPTH_MAX} levels`, 'resources.depth')
  return []
}

function checkTemplates({ id, query }: SyncResource, ancestry: Ancestry, at: string): Violation[] {
  const texts = [
    ...(id === undefined ? [] : [{ field: `${at}.id`, text: id }]),
    ...listTexts(query ?? {}, `${at}.query`),
  ]
  return texts.flatMap(({ field, text }) => {
    const problem = findTemplateProblem(text)
    if (problem !== undefined) return [{ field, description: problem, rule: 'placeholder.syntax' }]
    return listPlaceholderPaths(text).flatMap((path) => checkPlaceholder(path, ancestry, field))
  })
}

function checkPlaceholder({ text, root, steps }: PlaceholderPath, ancestry: Ancestry, field: string): Violation[] {
  if (root === undefined || !ROOTS.has(root)) {
    const description = `uses {{${text}}}, which a sync cannot see${suggest(root ?? String(steps[0]), ROOTS)}; placeholders here begin with ${[...ROOTS].join(', ')}`
    return [{ field, description, rule: 'placeholder.root' }]
  }
  if (root !== 'resources') return []
  if (ancestry.resources.some(({ resource }) => pathIntoRecord(steps, resource) !== undefined)) return []
  const parents = ancestry.resources.map(({ resource }) => `{{resources.${resource.replaceAll('/', '.')}.<field>}}`)
  const hint = parents.length === 0 ? 'this entry has no depends_on' : `it sees ${parents.join(', ')}`
  return [{ field, description: `uses {{${text}}}, but ${hint}`, rule: 'placeholder.parent' }]
}

/** Every string in a JSON value, with its path. */
function listTexts(value: JsonObject[string], path: string): { readonly field: string; readonly text: string }[] {
  if (typeof value === 'string') return [{ field: path, text: value }]
  if (Array.isArray(value)) return value.flatMap((item, index) => listTexts(item, `${path}[${index}]`))
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([key, item]) => listTexts(item, `${path}.${key}`))
}

/** Method names by resource name, as a definition offers them. */
export type MethodNames = Readonly<Record<string, readonly string[]>>

const RESERVED: readonly string[] = RESERVED_ACTIONS

/** The methods by resource of a config with its override; the callable actions are the methods of `_`. */
export function methodNamesOf(config: JsonObject, override: JsonObject): MethodNames {
  const { resources, actions } = deepMerge(config, override)
  const callable = Object.keys(asObject(actions)).filter((name) => !RESERVED.includes(name))
  return Object.fromEntries([
    ...Object.entries(asObject(resources)).map(([name, methods]) => [name, Object.keys(asObject(methods))] as const),
    ...(callable.length === 0 ? [] : [[ACTION_RESOURCE, callable] as const]),
  ])
}

/** Every node whose resource or method the definition does not have; those of unified resources need a mapping instead. */
export function checkAgainstDefinition(
  resources: readonly SyncResource[],
  offered: MethodNames,
  path = 'resources',
): Violation[] {
  return resources.flatMap(({ resource, method }, index) => {
    if (isUnifiedName(resource)) return []
    const methods = Object.hasOwn(offered, resource) ? offered[resource] : undefined
    const missing = 'is not a resource of the integration'
    if (methods === undefined)
      return [unknownName(resource, `${path}[${index}].resource`, missing, Object.keys(offered), 'resource')]
    if (methods.includes(method)) return []
    return [unknownName(method, `${path}[${index}].method`, `is not a method of ${resource}`, methods, 'method')]
  })
}

/**
 * Every parameter that a method requires and its node gives no value: such a node could only fail, at each run. A parent or a
 * loop gives one by a template alone. What the config itself sends counts as given.
 *
 * @param config of the definition, with its override merged over it
 */
export function checkRequiredInput(
  resources: readonly SyncResource[],
  config: JsonObject,
  path = 'resources',
): Violation[] {
  return resources.flatMap(({ resource, method, id, query = {} }, index) => {
    const { isIdRequired, query: names } = requiredInput(config, methodOf(config, resource, method))
    const missing = names.filter(
      (name) => !Object.hasOwn(query, name) && !Object.hasOwn(query, name.replace(/\[.*/, '')),
    )
    const finding = (field: string, name: string, rule: string): Violation => {
      const description = `is missing, and ${resource}.${method} requires it: give a value or a placeholder such as {{args.${name}}}`
      return { field: `${path}[${index}].${field}`, description, rule }
    }
    return [
      ...(isIdRequired && id === undefined ? [finding('id', 'id', 'resources.required_id')] : []),
      ...missing.map((name) => finding(`query.${name}`, name, 'resources.required_query')),
    ]
  })
}

/** A method or callable action of a config; an empty one where there is none. */
function methodOf({ resources, actions }: JsonObject, resource: string, method: string): JsonObject {
  const methods = resource === ACTION_RESOURCE ? asObject(actions) : asObject(ownValue(asObject(resources), resource))
  return asObject(ownValue(methods, method))
}

function ownValue(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

function unknownName(
  given: string,
  field: string,
  description: string,
  names: readonly string[],
  kind: string,
): Violation {
  return { field, description: `${description}${suggestOneOf(given, names)}`, rule: `resources.unknown_${kind}` }
}

function asObject(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}
