import { createSuggester, type Violation } from '../../foundation/base/index.ts'
import { formatDotPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { findVersionWarnings } from './check-versions.ts'
import { type ConfigFinding, toViolations } from './findings.ts'
import { resolveConfig } from './merge.ts'
import { listEnvironmentExpressions, listVariables } from './value-reads.ts'

/**
 * What an override does to its definition that its author may not mean: variables that nothing sets or reads, resources and
 * methods that it adds under nearly the name of another, and versions that have ended. None of it makes the override invalid.
 *
 * @param path prefix of the reported fields: `override`
 */
export function findOverrideWarnings(config: JsonObject, override: JsonObject, path: string, now: Date): Violation[] {
  const merged = resolveConfig(config, override).config
  const found = [
    ...findUnreadVariables(merged),
    ...findUnsetVariables(merged),
    ...findNearNames(config.resources, override.resources),
  ]
  return [...toViolations(found, path), ...findVersionWarnings(merged, path, now)]
}

const VARIABLES = 'environment_variables'

/**
 * Variables that no placeholder of the definition reads and no expression names. A sync job or a mapping, which are not known
 * here, may read them.
 */
function findUnreadVariables(merged: JsonObject): ConfigFinding[] {
  const suggest = createSuggester()
  const known = listVariables(merged)
  const expressions = listEnvironmentExpressions(merged)
  return setVariables(merged)
    .filter((name) => !known.has(name) && !expressions.some((text) => text.includes(name)))
    .map((name) => ({
      at: [VARIABLES, name],
      description: `is set, but nothing in the definition reads it${suggest(name, known.keys())}`,
      rule: 'environment_variables.unread',
    }))
}

/** An installation may not use what reads a variable, such as the webhook: the warning names the first setting that does. */
function findUnsetVariables(merged: JsonObject): ConfigFinding[] {
  const set = new Set(setVariables(merged))
  return [...listVariables(merged)].flatMap(([name, [first, ...more]]) => {
    if (first === undefined || set.has(name)) return []
    const others = more.length === 0 ? '' : ` and ${more.length} more`
    const description = `is not set: it is read by ${formatDotPath(first)}${others}`
    return [{ at: [VARIABLES, name], description, rule: 'environment_variables.unset' }]
  })
}

function setVariables({ environment_variables: variables }: JsonObject): readonly string[] {
  return isJsonObject(variables) ? Object.keys(variables) : []
}

/** Resources, and methods of a resource, that an override adds although it keeps one of nearly the same name. */
function findNearNames(below: Json | undefined, above: Json | undefined): ConfigFinding[] {
  if (!isJsonObject(below) || !isJsonObject(above)) return []
  const suggest = createSuggester()
  const addedNear = (kind: string, known: JsonObject, changed: JsonObject, parents: readonly string[]) => {
    const kept = Object.keys(known).filter((name) => changed[name] !== null)
    return Object.entries(changed).flatMap(([name, change]): ConfigFinding[] => {
      const near = change === null || Object.hasOwn(known, name) ? '' : suggest(name, kept)
      if (near === '') return []
      return [{ at: ['resources', ...parents, name], description: `adds a ${kind}${near}`, rule: 'override.near_name' }]
    })
  }
  const methods = Object.entries(above).flatMap(([resource, changed]) => {
    const known = Object.hasOwn(below, resource) ? below[resource] : undefined
    return isJsonObject(known) && isJsonObject(changed) ? addedNear('method', known, changed, [resource]) : []
  })
  return [...addedNear('resource', below, above, []), ...methods]
}
