import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { isReadingMethod } from '../definitions/method-kinds.ts'
import { listInputPaths, listVariablePaths } from '../expressions/input-analysis.ts'
import type { CheckedMethod, FindingAt } from './check-fields.ts'
import { fieldExpressions } from './field-leaves.ts'
import type { UnifiedResource } from './model.ts'
import { targetOf } from './steps.ts'

/**
 * Filters that change nothing, bodies that lack what the provider requires or read what no caller can write, and steps that write
 * for each page of a list.
 */
export function checkRequests({ resource, method, merged, definition }: CheckedMethod): readonly FindingAt[] {
  const { config } = merged
  return [
    ...unusedFilters(config),
    ...(isReadingMethod(method) ? [] : readOnlyReads(config, resource)),
    ...(method === 'create' ? missingKeys(config, definition) : []),
    ...(method === 'list' ? writingSteps(config, definition) : []),
  ]
}

/** A filter without `to` has an effect only where a request map reads it. */
function unusedFilters(config: JsonObject): readonly FindingAt[] {
  const filters = isJsonObject(config.filters) ? config.filters : {}
  const texts = readers(config)
  return Object.entries(filters)
    .filter(([, settings]) => isJsonObject(settings) && settings.to === undefined)
    .filter(([field]) => !texts.some((text) => readsFilter(text, field)))
    .map(([field]) => ({
      at: ['filters', field],
      rule: 'filter.unused',
      severity: 'warning' as const,
      message: `is declared, but has no "to", and no expression of the request reads $filters.${field}`,
    }))
}

/** Expressions that may read the filters: of the request, its target and the steps before it. */
function readers({ request, method, before }: JsonObject): readonly string[] {
  return [request, method, before].flatMap((part) => fieldExpressions(part).map(({ value }) => value))
}

/** A text that takes the filters as a whole reads each of them. */
function readsFilter(text: string, field: string): boolean {
  return listVariablePaths(text).some(
    ({ variable, step }) => variable === 'filters' && (step === undefined || step === field),
  )
}

/** Parts of the body that are made of a field that no call can write, so that they never have its value. */
function readOnlyReads({ request }: JsonObject, { node }: UnifiedResource): readonly FindingAt[] {
  const body = isJsonObject(request) ? request.body : undefined
  return fieldExpressions(body, ['request', 'body']).flatMap(({ path, value }) => {
    const names = (listInputPaths(value) ?? []).flatMap(([name = '']) => name)
    return [...new Set(names)]
      .filter((name) => node.properties.get(name)?.isReadOnly)
      .map((name) => ({
        at: path,
        rule: 'request.read_only',
        severity: 'warning' as const,
        message: `reads ${name}, which a call cannot write: write it with fields that can be written`,
      }))
  })
}

/** Keys that the definition's schema of the body requires and the mapping of a create never sets. */
function missingKeys(config: JsonObject, definition: JsonObject | undefined): readonly FindingAt[] {
  const body = isJsonObject(config.request) ? config.request.body : undefined
  const target = methodOf(definition, config)
  const schema = isJsonObject(target?.body_schema) ? target.body_schema : {}
  if (typeof body === 'string' || !Array.isArray(schema.required)) return []
  const set = new Set([...keysOf(body), ...keysOf(target?.body)])
  return schema.required
    .filter((key: Json) => typeof key === 'string' && !set.has(key))
    .map((key: Json) => ({
      at: ['request', 'body', String(key)],
      rule: 'create.missing_required',
      severity: 'warning' as const,
      message: 'is required by the provider, and nothing of the record is written to it',
    }))
}

/** Steps after a list that write: they run for each page, and again when a rate limit or a resumed sync repeats a page. */
function writingSteps({ after }: JsonObject, definition: JsonObject | undefined): readonly FindingAt[] {
  return (Array.isArray(after) ? after : []).flatMap((step: Json, index) => {
    const { type, resource, method } = isJsonObject(step) ? step : {}
    if (type !== 'request' || typeof resource !== 'string' || typeof method !== 'string') return []
    const target = targetOf(resource, method)
    if (target.kind === 'action') return []
    const isRead = methodOf(definition, { ...target })?.read_only ?? isReadingMethod(target.method)
    if (definition === undefined || isRead === true) return []
    return {
      at: ['after', index, 'method'],
      rule: 'step.writes',
      severity: 'warning' as const,
      message: `${target.resource}.${target.method} writes, and would run for each page of the list, some of them twice`,
    }
  })
}

function methodOf(definition: JsonObject | undefined, config: JsonObject): JsonObject | undefined {
  const { resource, method } = config
  const resources = isJsonObject(definition?.resources) ? definition.resources : {}
  if (typeof resource !== 'string' || typeof method !== 'string') return undefined
  const methods = Object.hasOwn(resources, resource) ? resources[resource] : undefined
  const found = isJsonObject(methods) && Object.hasOwn(methods, method) ? methods[method] : undefined
  return isJsonObject(found) ? found : undefined
}

function keysOf(value: Json | undefined): readonly string[] {
  return isJsonObject(value) ? Object.keys(value) : []
}
