import { type DotPath, getAtPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { environmentRoots, readsEnvironment } from '../expressions/environment-variables.ts'
import type { PlaceholderPath } from '../expressions/placeholder.ts'
import { listPlaceholderPaths, listPlaceholders } from '../expressions/template.ts'
import { listCredentialsAt } from './check-credentials.ts'
import { resolvedSchema } from './config-schema.ts'
import { type FieldAt, listFields } from './schema-walk.ts'

/**
 * Paths of the settings that read an environment variable, by a placeholder or an expression.
 *
 * @param variable its path in the config: `environment_variables`, its name, and what is below it
 */
export function listReadsOfVariable(config: JsonObject, variable: DotPath): DotPath[] {
  const [root, ...steps] = variable
  if (root !== 'environment_variables' || steps.length === 0) return []
  const variables = isJsonObject(config.environment_variables) ? config.environment_variables : {}
  return listFields(resolvedSchema, config).flatMap(({ role, value, path }) => {
    if (path[0] === root) return []
    const isRead =
      role.kind === 'expression'
        ? typeof value === 'string' && getAtPath(environmentRoots(value, variables), ['env', ...steps]) !== undefined
        : listPlaceholderPaths(value).some((read) => isOfEnvironment(read) && overlaps(read.steps, steps))
    return isRead ? [path] : []
  })
}

/** Environment variables that placeholders read, with the settings in which nothing stands in for them: no default, no alternative. */
export function listVariables(config: JsonObject): ReadonlyMap<string, readonly DotPath[]> {
  const found = new Map<string, DotPath[]>()
  for (const { role, value, path } of listFields(resolvedSchema, config)) {
    if (role.kind === 'expression' || role.kind === 'literal' || path[0] === 'environment_variables') continue
    for (const { paths, defaultText } of listPlaceholders(value))
      for (const read of paths.filter(isOfEnvironment)) {
        const name = String(read.steps[0])
        const needs = found.get(name) ?? []
        if (paths.length === 1 && defaultText === undefined) needs.push(path)
        found.set(name, needs)
      }
  }
  return found
}

/** The expressions of a definition that read environment variables. */
export function listEnvironmentExpressions(config: JsonObject): string[] {
  return listFields(resolvedSchema, config).flatMap(({ role, value }) =>
    role.kind === 'expression' && typeof value === 'string' && readsEnvironment(value) ? [value] : [],
  )
}

function isOfEnvironment({ root }: PlaceholderPath): boolean {
  return root === 'env' || root === 'environment_variables'
}

/** Whether one of two paths leads to the other, or they are the same. */
function overlaps(one: DotPath, other: DotPath): boolean {
  return one.slice(0, other.length).every((step, index) => String(step) === String(other[index]))
}

/** Parts of a request that authenticate it. */
const CREDENTIAL_PARTS: ReadonlySet<DotPath[number]> = new Set(['authorization', 'headers', 'query', 'body'])

/**
 * Names of the fields of a token response that a definition sends to authenticate its requests, beside the token itself. A field that
 * is part of an address, or becomes a key of the context, is data.
 */
export function listTokenFieldsSent(config: JsonObject): ReadonlySet<string> {
  const sent = new Set<string>()
  const data = new Set<string>(listCredentialsAt(config.credentials ?? null).flatMap(namesOfContext))
  for (const field of listFields(resolvedSchema, config)) {
    const names = listPlaceholderPaths(field.value).flatMap(tokenField)
    for (const name of names) (isOfCredential(field) ? sent : data).add(name)
  }
  return new Set([...sent].filter((name) => !data.has(name)))
}

function isOfCredential({ role, path }: FieldAt): boolean {
  return (role.kind === 'template' && role.secret) || path.some((step) => CREDENTIAL_PARTS.has(step))
}

/** The field that `{{oauth.token.<field>}}` reads. */
function tokenField({ root, steps }: PlaceholderPath): string[] {
  const [token, name] = root === 'oauth' ? steps : root === 'credentials' && steps[0] === 'oauth' ? steps.slice(1) : []
  return token === 'token' && typeof name === 'string' ? [name] : []
}

function namesOfContext({ settings: { context_from_token: mapping } }: { readonly settings: JsonObject }): string[] {
  if (!isJsonObject(mapping)) return []
  return Object.values(mapping).flatMap((path: Json) => (typeof path === 'string' ? [path.split(/[.[]/)[0] ?? ''] : []))
}
