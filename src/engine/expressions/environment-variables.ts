import { LRUCache } from 'lru-cache'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { parseAst, visitNodes } from './parse.ts'

/** The two names under which placeholders and expressions read the environment variables of a definition. */
export const ENVIRONMENT_ROOTS = ['env', 'environment_variables'] as const

/** Names of variables, headers and parameters that usually hold secrets. When a secret expires is none. */
const SECRET_NAME =
  /secret(?!_expires_at)|token(?!_?(?:path|host|url))|password|passwd|private_?key|api[-_]?key|access[-_]?key|^(?:proxy-)?authorization$|^cookie$/i

/** Whether a value of that name usually is a secret: it is stored encrypted, shown masked and kept from expressions. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name)
}

/**
 * The environment variables that an expression may read, as its roots `env` and `environment_variables`; none for an expression
 * that does not name either.
 *
 * A variable, or a member of one, with the name of a secret is there only when the expression has that name in it: as a name
 * (`env.API_SECRET`, `$v.API_SECRET`) or as a whole text (`$lookup(env, "API_SECRET")`). `env` as a whole, `$keys(env)` and
 * wildcards find none that the expression does not name.
 */
export function environmentRoots(expression: string, variables: JsonObject): JsonObject {
  const names = environmentNames(expression)
  if (names === undefined) return {}
  const env = readableMembers(variables, names)
  return { env, environment_variables: env }
}

/** Whether an expression reads environment variables, or may. */
export function readsEnvironment(expression: string): boolean {
  return environmentNames(expression) !== undefined
}

/** Most expressions do not have the word; only the others are parsed. */
const MENTION = /\benv(?:ironment_variables)?\b/
const NAMES_CACHED_MAX = 1_000
const namesByExpression = new LRUCache<string, { readonly names: ReadonlySet<string> | undefined }>({
  max: NAMES_CACHED_MAX,
})

/** Every name and text in an expression that names a root of the environment; `undefined` for any other. */
function environmentNames(expression: string): ReadonlySet<string> | undefined {
  if (!MENTION.test(expression)) return undefined
  const known = namesByExpression.get(expression)
  if (known !== undefined) return known.names
  const parsed = parseAst(expression)
  const all = 'tree' in parsed ? collectNames(parsed.tree) : new Set<string>()
  const names = ENVIRONMENT_ROOTS.some((root) => all.has(root)) ? all : undefined
  namesByExpression.set(expression, { names })
  return names
}

function collectNames(tree: object): ReadonlySet<string> {
  const names = new Set<string>()
  visitNodes(tree, ({ type, value }) => {
    if (type === 'name' || type === 'string') names.add(String(value))
  })
  return names
}

function readableMembers(values: JsonObject, names: ReadonlySet<string>): JsonObject {
  const entries = Object.entries(values).flatMap(([name, value]): [string, Json][] => {
    if (names.has(name) && isSecretName(name)) return [[name, value]]
    return isSecretName(name) ? [] : [[name, readableValue(value, names)]]
  })
  return Object.fromEntries(entries)
}

function readableValue(value: Json, names: ReadonlySet<string>): Json {
  if (Array.isArray(value)) return value.map((item: Json) => readableValue(item, names))
  return isJsonObject(value) ? readableMembers(value, names) : value
}
