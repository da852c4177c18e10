import { suggest, type Violation } from '../../foundation/base/index.ts'
import {
  exceedsJsonSize,
  formatDotPath,
  isJsonObject,
  JSON_DEPTH_MAX,
  type Json,
  type JsonObject,
} from '../../foundation/json/index.ts'
import { findSchemaViolations } from '../definitions/findings.ts'
import { isReadingMethod } from '../definitions/method-kinds.ts'
import type { Plan } from '../definitions/plan.ts'
import { EXTENDING_LAYERS } from './extra-fields.ts'
import { fieldNamesOf, nodeAt } from './filters.ts'
import type { MergedMapping } from './mapping.ts'
import { type MappingConfig, mappingConfigSchema, mappingLayerSchema } from './mapping-schema.ts'
import type { UnifiedResource } from './model.ts'
import { isScalarNode } from './schema-node.ts'
import { targetOf } from './steps.ts'

/**
 * The problems of one layer of a mapping by itself: unknown settings, types, syntax of expressions.
 *
 * @param prefix of the fields: `config`
 */
export function checkMappingLayer(config: Json, prefix: string): Violation[] {
  return findSizeViolations(config, prefix) ?? findSchemaViolations(mappingLayerSchema, config, prefix)
}

/** Longest mapping of one method, in characters of JSON. */
export const MAPPING_LENGTH_MAX = 32 * 1024

function findSizeViolations(config: Json, prefix: string): Violation[] | undefined {
  if (!exceedsJsonSize(config, MAPPING_LENGTH_MAX, JSON_DEPTH_MAX)) return undefined
  const limit = `must have at most ${MAPPING_LENGTH_MAX} characters as JSON, nested at most ${JSON_DEPTH_MAX} deep`
  return [violation([], prefix, limit, 'max')]
}

/** What a mapping is checked against. */
export interface MappingContext {
  readonly resource: UnifiedResource
  /** Unified method. */
  readonly method: string
  /** Layers of the leaves: environment and account may add fields to those of the resource. */
  readonly layers?: MergedMapping['layers'] | undefined
  /** The definition; absent: its methods are not checked. */
  readonly plan?: Plan | undefined
}

/**
 * The problems of the merged mapping of a unified method: those of the schema, required settings, target methods that the
 * definition lacks, fields that the resource lacks.
 *
 * @param prefix of the fields: `config`
 */
export function checkMapping(config: Json, context: MappingContext, prefix: string): Violation[] {
  const violations = findSizeViolations(config, prefix) ?? findSchemaViolations(mappingConfigSchema, config, prefix)
  if (violations.length > 0) return violations
  const checked = config as unknown as MappingConfig
  return [
    ...listTargetProblems(checked, context, prefix),
    ...listFieldProblems(checked, context, prefix),
    ...listEnumProblems(checked, context, prefix),
    ...listFilterProblems(checked, context, prefix),
    ...listStepProblems(checked, prefix),
  ]
}

interface Target {
  readonly path: readonly (string | number)[]
  readonly resource: string
  readonly method: string
}

function listTargetProblems(config: MappingConfig, { plan }: MappingContext, prefix: string): Violation[] {
  if (plan === undefined) return []
  return listTargets(config).flatMap(({ path, resource, method }) => {
    const problem = targetProblem(plan, resource, method)
    return problem === undefined ? [] : [violation(path, prefix, problem, 'method.unknown')]
  })
}

function listTargets({ resource, method, before = [], after = [], expand: expansions = {} }: MappingConfig): Target[] {
  const methods = typeof method === 'string' ? [method] : method.allowed
  const steps = Object.entries({ before, after }).flatMap(([key, list]) =>
    list.flatMap((step, index): Target[] =>
      step.type === 'request'
        ? [{ path: [key, index, 'method'], resource: step.resource ?? '', method: step.method ?? '' }]
        : [],
    ),
  )
  return [
    ...methods.map((name) => ({ path: ['method'], resource, method: name })),
    ...steps,
    ...Object.entries(expansions).map(([field, expansion]) => ({
      path: ['expand', field, 'method'],
      resource: expansion.resource,
      method: expansion.method,
    })),
  ]
}

function targetProblem(plan: Plan, resource: string, method: string): string | undefined {
  const target = targetOf(resource, method)
  if (target.kind === 'action')
    return plan.actions.has(method) ? undefined : `names the action ${method}${suggest(method, plan.actions.keys())}`
  const methods = plan.resources.get(target.resource)
  if (methods === undefined)
    return `is of the resource ${target.resource}, which the definition lacks${suggest(target.resource, plan.resources.keys())}`
  return methods.has(target.method)
    ? undefined
    : `names ${target.resource}.${target.method}, which the definition lacks${suggest(target.method, methods.keys())}`
}

function listFieldProblems(config: MappingConfig, context: MappingContext, prefix: string): Violation[] {
  const fields = config.response?.fields
  const isReading = isReadingMethod(context.method)
  if (fields === undefined)
    return isReading ? [violation(FIELDS, prefix, 'is required of list and get', 'required')] : []
  if (!isJsonObject(fields)) return []
  const hasId = !isReading || Object.hasOwn(fields, 'id')
  const id = hasId ? [] : [violation([...FIELDS, 'id'], prefix, 'is required', 'required')]
  return [...id, ...unknownFields(context, fields, prefix)]
}

const FIELDS = ['response', 'fields']
function unknownFields({ resource, layers }: MappingContext, fields: JsonObject, prefix: string): Violation[] {
  const { properties } = resource.node
  return Object.entries(fields)
    .filter(([field]) => !properties.has(field) && !isRawField(properties, field))
    .filter(([field, map]) => !isExtension(layers, [...FIELDS, field], map))
    .map(([field]) => unknownField(resource, [...FIELDS, field], prefix))
}

/** The violation that the last name of a path is no field of the resource. */
function unknownField({ node }: UnifiedResource, path: readonly string[], prefix: string): Violation {
  const description = `is not a field of the resource${suggest(path.at(-1) ?? '', fieldNamesOf(node))}`
  return violation(path, prefix, description, 'unknown_field')
}

/** Whether every leaf comes from an environment or account. */
function isExtension(layers: MergedMapping['layers'] | undefined, path: readonly string[], map: Json): boolean {
  if (layers === undefined) return false
  if (!isJsonObject(map)) return EXTENDING_LAYERS.has(layers.get(formatDotPath(path)))
  return Object.entries(map).every(([key, item]) => isExtension(layers, [...path, key], item))
}

function isRawField(properties: ReadonlyMap<string, unknown>, field: string): boolean {
  return field.endsWith('_raw') && properties.has(field.slice(0, -'_raw'.length))
}

function listEnumProblems({ enums = {} }: MappingConfig, { resource }: MappingContext, prefix: string): Violation[] {
  return Object.entries(enums).flatMap(([field, { map = {}, write = {}, default: fallback }]) => {
    const found = nodeAt(resource.node, field)
    const node = found?.kind === 'array' ? found.items : found
    if (node === undefined || !isScalarNode(node)) return [unknownField(resource, ['enums', field], prefix)]
    const known = node.enum
    if (known === undefined) return []
    const values: [readonly string[], string][] = [
      ...Object.entries(map).map(([provider, unified]): [readonly string[], string] => [['map', provider], unified]),
      ...Object.keys(write).map((unified): [readonly string[], string] => [['write', unified], unified]),
      ...(fallback === undefined ? [] : [[['default'], fallback] satisfies [readonly string[], string]]),
    ]
    return values
      .filter(([, unified]) => !known.includes(unified))
      .map(([path, unified]) => {
        const description = `is ${unified}, not one of ${known.join(', ')}${suggest(unified, known)}`
        return violation(['enums', field, ...path], prefix, description, 'enum')
      })
  })
}

function listFilterProblems(config: MappingConfig, { resource }: MappingContext, prefix: string): Violation[] {
  const named = [
    ...Object.keys(config.filters ?? {}).map((field) => ['filters', field] as const),
    ...(config.request?.required ?? []).map((field) => ['request', 'required', field] as const),
    ...Object.keys(config.id_parts ?? {}).map((field) => ['id_parts', field] as const),
    ...Object.keys(config.sort ?? {}).map((field) => ['sort', field] as const),
    ...Object.keys(config.expand ?? {}).map((field) => ['expand', field] as const),
  ]
  return named
    .filter((path) => nodeAt(resource.node, path.at(-1) ?? '') === undefined)
    .map((path) => unknownField(resource, path, prefix))
}

function listStepProblems({ before = [], after = [] }: MappingConfig, prefix: string): Violation[] {
  return Object.entries({ before, after }).flatMap(([key, steps]) =>
    steps.flatMap((step, index) => {
      const needed = step.type === 'request' ? (['resource', 'method'] as const) : (['expression'] as const)
      const missing = needed.filter((name) => step[name] === undefined)
      const doubled = steps.findIndex(({ name }) => name === step.name) < index
      return [
        ...missing.map((name) => violation([key, index, name], prefix, `is required of a ${step.type}`, 'required')),
        ...(doubled ? [violation([key, index, 'name'], prefix, 'is the name of another step', 'unique')] : []),
      ]
    }),
  )
}

function violation(path: readonly (string | number)[], prefix: string, description: string, rule: string): Violation {
  return { field: formatDotPath(path, prefix), description, rule }
}
