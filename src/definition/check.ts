import { type DotPath, isJsonObject, type Json, type JsonObject, suggest, type Violation } from '../base/index.ts'
import { listPlaceholderPaths } from '../expression/index.ts'
import { findActionProblems } from './check-actions.ts'
import { findKeylessPaginations } from './check-pagination.ts'
import { configSchema, resolvedSchema } from './config-schema.ts'
import { findSchemaViolations } from './findings.ts'
import { writePath } from './json-path.ts'
import { findMissingVerbs } from './method-schema.ts'
import { layerOver } from './partial-schema.ts'
import { listBareNames } from './placeholder-names.ts'
import { resolveConfig } from './resolve.ts'
import { listRoles } from './schema-walk.ts'

/** Which document is checked: a whole definition, or a layer that is merged over one. */
export type ConfigKind = 'integration' | 'override'

/**
 * Every finding about a config, all at once; an empty list means that it may be stored and compiled.
 *
 * An override alone is judged key by key, since the definition below may supply the rest; `checkOverride` judges it together
 * with that definition.
 *
 * @param path prefix of the reported fields: `config`, `override`
 */
export function checkConfig(config: JsonObject, kind: ConfigKind, path: string): Violation[] {
  if (kind === 'override') return findSchemaViolations(layerOver(resolvedSchema), config, path)
  return [...findSchemaViolations(configSchema, config, path), ...findMeaning(config, path)]
}

/**
 * Every finding about an override over its definition: those of the override alone, and those that only the merged config
 * shows. Findings that the definition has by itself are not the override's.
 */
export function checkOverride(config: JsonObject, override: JsonObject, path: string): Violation[] {
  const alone = checkConfig(override, 'override', path)
  const merged = resolveConfig(config, override).config
  const together = [...findSchemaViolations(resolvedSchema, merged, path), ...findMeaning(merged, path)]
  const inherited = [...findSchemaViolations(resolvedSchema, config, path), ...findMeaning(config, path)]
  const known = new Set([...inherited, ...alone].map(({ field, rule }) => `${field} ${rule}`))
  return [...alone, ...together.filter(({ field, rule }) => !known.has(`${field} ${rule}`))]
}

/** What no schema can say: shapes that contradict each other, names that lead nowhere. */
function findMeaning(config: JsonObject, path: string): Violation[] {
  return [
    ...findMixedCredentials(config, path),
    ...findUnwrittenVerbs(config, path),
    ...findUnknownRoots(config, path),
    ...findKeylessPaginations(config, path),
    ...findActionProblems(config, path),
  ]
}

function findMixedCredentials({ credentials }: JsonObject, path: string): Violation[] {
  if (!isJsonObject(credentials) || credentials.format === undefined) return []
  const others = Object.keys(credentials).filter((key) => key !== 'format' && key !== 'config')
  if (others.length === 0) return []
  const description = `mixes both shapes: one definition {format, config} and the map entries ${others.join(', ')}`
  return [{ field: writePath(path, ['credentials']), description, rule: 'credentials.mixed_shapes' }]
}

function findUnwrittenVerbs({ resources }: JsonObject, path: string): Violation[] {
  if (!isJsonObject(resources)) return []
  return Object.entries(resources).flatMap(([resource, methods]) =>
    (isJsonObject(methods) ? findMissingVerbs(methods) : []).map((method) => ({
      field: writePath(path, ['resources', resource, method, 'method']),
      description: 'is required: only reading methods have a default',
      rule: 'required',
    })),
  )
}

function findUnknownRoots(config: JsonObject, path: string): Violation[] {
  const known = listBareNames(config)
  return templatesOf(config).flatMap(({ value, path: at }) =>
    listPlaceholderPaths(value)
      .filter(({ root, steps }) => root === undefined && !known.has(String(steps[0])))
      .map(({ text, steps }) => ({
        field: writePath(path, at),
        description: `uses {{${text}}}, which no credential field provides${suggest(String(steps[0]), [...known])}; write {{context.${text}}} for a key of the account's context`,
        rule: 'placeholder.unknown_root',
      })),
  )
}

/** The texts of a config that may hold placeholders, JSON templates taken apart. */
function templatesOf(config: JsonObject): { value: string; path: DotPath }[] {
  return listRoles(resolvedSchema, config)
    .filter(({ role }) => role.kind === 'template' || role.kind === 'url')
    .flatMap(({ value, path }) => listTexts(value, path))
}

function listTexts(value: Json, path: DotPath): { value: string; path: DotPath }[] {
  if (typeof value === 'string') return [{ value, path }]
  if (Array.isArray(value)) return value.flatMap((item: Json, index) => listTexts(item, [...path, index]))
  return isJsonObject(value) ? Object.entries(value).flatMap(([key, item]) => listTexts(item, [...path, key])) : []
}
