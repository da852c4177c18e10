import { isJsonObject, type Json, type JsonObject, parseDotPath } from '../../foundation/json/index.ts'
import type { Placeholder } from '../expressions/placeholder.ts'
import { compileTemplate, listPlaceholderPaths } from '../expressions/template.ts'

/** A tool: a described method, for language models and menus. */
export interface Tool {
  /** `<method>_<resource>`. */
  readonly name: string
  readonly resource: string
  readonly method: string
  readonly description: string
  readonly tags: readonly string[]
  /** JSON Schemas as the definition gives them; empty where it gives none. */
  readonly querySchema: JsonObject
  readonly bodySchema: JsonObject
  /** `id`, `query.<name>`, `body.<name>`, `args.<name>`. */
  readonly required: readonly string[]
}

/** Filter of the tools listing; an empty list does not restrict. */
export interface ToolFilter {
  readonly methods: readonly string[]
  /** Resources with at least one of these. */
  readonly tags: readonly string[]
}

/** Placeholder roots that a caller of a method provides. */
const CALLER_ROOTS: ReadonlySet<string> = new Set(['id', 'query', 'body', 'args'])

/** The tools of a config, by resource and method. Methods without a description are left out. */
export function listTools(config: JsonObject, filter: ToolFilter): readonly Tool[] {
  return sortedEntries(config.resources).flatMap(([resource, methods]) => {
    const tags = textsOf(entryOf(config.tool_tags, resource))
    if (filter.tags.length > 0 && !filter.tags.some((tag) => tags.includes(tag))) return []
    return sortedEntries(methods)
      .filter(([method]) => filter.methods.length === 0 || filter.methods.includes(method))
      .flatMap(([method, definition]) => toolOf(resource, method, definition, tags))
  })
}

function toolOf(resource: string, method: string, definition: Json, tags: readonly string[]): readonly Tool[] {
  if (!isJsonObject(definition) || typeof definition.description !== 'string') return []
  const { description } = definition
  const querySchema = objectOf(definition.query_schema)
  const bodySchema = objectOf(definition.body_schema)
  const required = new Set([
    ...requiredByPath(definition.path),
    ...textsOf(querySchema.required).map((name) => `query.${name}`),
    ...textsOf(bodySchema.required).map((name) => `body.${name}`),
  ])
  const name = `${method}_${resource}`
  return [{ name, resource, method, description, tags, querySchema, bodySchema, required: [...required] }]
}

/** Parameters that the texts of a template require of the caller, such as `id` and `query.owner`; none that has a default. */
export function requiredParameters(template: Json | undefined): readonly string[] {
  if (typeof template === 'string') return requiredByPath(template)
  if (typeof template !== 'object' || template === null) return []
  return [...new Set(Object.values(template).flatMap(requiredParameters))]
}

/** What a call without a body must be given, so that its path can be written and its `query_schema` holds. */
interface RequiredInput {
  readonly isIdRequired: boolean
  /** Names of query parameters. */
  readonly query: readonly string[]
}

/**
 * The input that a method requires of its caller: what its path needs, and what `query_schema` requires and neither the
 * definition, by its own `query` or a placeholder with an alternative, nor its paging fills.
 *
 * @param config the effective definition of the integration
 * @param method one of its methods or actions
 */
export function requiredInput(config: JsonObject, method: JsonObject): RequiredInput {
  const inPath = requiredByPath(method.path)
  const needed = new Set(inPath.flatMap(queryNames))
  const filled = filledParameters(config, method)
  const bySchema = textsOf(objectOf(method.query_schema).required).filter(
    (name) => !filled.has(name) && !filled.has(name.replace(/\[.*/, '')),
  )
  return { isIdRequired: inPath.includes('id'), query: [...needed.union(new Set(bySchema))] }
}

/** Query parameters that a call has without its caller. */
function filledParameters(config: JsonObject, method: JsonObject): ReadonlySet<string> {
  const ownQuery = Object.entries({ ...objectOf(config.query), ...objectOf(method.query) })
  const templates = [method.path ?? null, method.headers ?? null, method.body ?? null, Object.fromEntries(ownQuery)]
  const needed = new Set(requiredParameters(templates).flatMap(queryNames))
  return new Set([
    ...pagingKeys(method.pagination === undefined ? config.pagination : method.pagination),
    ...ownQuery.flatMap(([name, value]) => (value === null || requiredParameters([value]).length > 0 ? [] : [name])),
    ...listPlaceholderPaths(templates)
      .flatMap(({ text }) => queryNames(text))
      .filter((name) => !needed.has(name)),
  ])
}

/** The name of the query parameter that a path of a placeholder such as `query.owner` reads. */
function queryNames(path: string): readonly string[] {
  const [root, name] = parseDotPath(path)
  return root === 'query' && name !== undefined ? [String(name)] : []
}

/** The parameter names of a pagination, at any depth: its settings that end in `_key`. */
export function pagingKeys(pagination: Json | undefined): readonly string[] {
  return Object.entries(objectOf(pagination)).flatMap(([name, value]) =>
    typeof value === 'string' ? (name.endsWith('_key') ? [value] : []) : pagingKeys(value),
  )
}

/** Parameters that a path requires: placeholders that only the caller can fill. */
function requiredByPath(path: Json | undefined): readonly string[] {
  if (typeof path !== 'string') return []
  const template = compileTemplate(path)
  if (template.kind === 'constant') return []
  const parts = template.kind === 'value' ? [template.placeholder] : template.parts
  return parts.flatMap((part) => (typeof part === 'string' ? [] : requiredBy(part)))
}

function requiredBy({ paths, defaultText }: Placeholder): readonly string[] {
  const [only] = paths
  const isFree = defaultText !== undefined || paths.length > 1 || only?.root === undefined
  return isFree || !CALLER_ROOTS.has(only.root) ? [] : [only.text]
}

function sortedEntries(value: Json | undefined): readonly (readonly [string, Json])[] {
  return Object.entries(objectOf(value)).sort(([one], [other]) => (one < other ? -1 : 1))
}

function entryOf(value: Json | undefined, key: string): Json | undefined {
  const object = objectOf(value)
  return Object.hasOwn(object, key) ? object[key] : undefined
}

function objectOf(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}

function textsOf(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []
}
