import { findNear, invalidFields, mustBeOneOf, type Violation } from '../../foundation/base/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import { toProviderValue } from './enums.ts'
import { idPartsProblem } from './id-parts.ts'
import type { IgnoredFilter, UnifiedFilter } from './mapping.ts'
import { type Evaluation, evaluateMappingExpression } from './mapping-expression.ts'
import type { FilterPlan, UnifiedRequestPlan } from './mapping-plan.ts'
import type { FilterConfig } from './mapping-schema.ts'
import type { UnifiedResource } from './model.ts'
import { toBoolean, toDateOnly, toDateTime, toInteger, toNumber } from './scalar-values.ts'
import type { ObjectNode, SchemaNode } from './schema-node.ts'

/** Filters of a request, checked. */
export interface PreparedFilters {
  readonly honoured: readonly HonouredFilter[]
  readonly ignored: readonly IgnoredFilter[]
}

/** A filter that the provider is asked for, with a value of the provider. */
interface HonouredFilter extends UnifiedFilter {
  readonly plan: FilterPlan
}

/** Of a filter, or field of a body, that the mapping says is required. */
export const REQUIRED_BY_INTEGRATION = 'is required by this integration'
/** Most values of `in` and `nin`. */
const VALUES_MAX = 100

/**
 * Checks the filters of a request and converts their values: enumerations to those of the provider, times to its format.
 *
 * @throws Failure INVALID_FIELD for values that the field cannot have, and for filters that the integration requires
 */
export function prepareFilters(
  plan: UnifiedRequestPlan,
  resource: UnifiedResource,
  filters: readonly UnifiedFilter[],
): PreparedFilters {
  const { honoured, ignored, violations } = sortFilters(plan, resource, filters)
  const problems = [...violations, ...missingFilters(plan, filters).map(requiredFilter)]
  if (problems.length > 0) throw invalidFields(problems)
  return { honoured, ignored }
}

/** What is wrong with the values of filters; those that are not honoured have none. */
export function findFilterProblems(
  plan: UnifiedRequestPlan,
  resource: UnifiedResource,
  filters: readonly UnifiedFilter[],
): readonly Violation[] {
  return sortFilters(plan, resource, filters).violations
}

function sortFilters(
  plan: UnifiedRequestPlan,
  resource: UnifiedResource,
  filters: readonly UnifiedFilter[],
): PreparedFilters & { readonly violations: readonly Violation[] } {
  const honoured: HonouredFilter[] = []
  const ignored: IgnoredFilter[] = []
  const violations: Violation[] = []
  for (const { field, op, value } of filters) {
    const filter = plan.filters.get(field)
    const node = nodeAt(resource.node, field)
    if (filter === undefined)
      ignored.push(
        node === undefined ? unknownName(field, op, plan.filters.keys()) : { field, op, reason: 'not_supported' },
      )
    else if (!filter.operators.has(op)) ignored.push({ field, op, reason: 'operator_not_supported' })
    else {
      const converted = convertValues(plan, { field, op, value }, node, filter.format)
      if ('problem' in converted) violations.push({ field, description: converted.problem, rule: 'filter' })
      else honoured.push({ field, op, value: converted.value, plan: filter })
    }
  }
  return { honoured, ignored, violations }
}

/** A filter or an order by what is no field of the resource. @param known names that the provider can be asked for */
export function unknownName(field: string, op: IgnoredFilter['op'], known: Iterable<string>): IgnoredFilter {
  const suggestion = findNear(field, known)
  return { field, op, reason: 'unknown_field', ...(suggestion === undefined ? {} : { suggestion }) }
}

/** Fields of the filters that the integration requires and a request does not have. */
export function missingFilters(
  { filters: plans }: Pick<UnifiedRequestPlan, 'filters'>,
  filters: readonly UnifiedFilter[],
): readonly string[] {
  const isGiven = ({ operators }: FilterPlan, name: string): boolean =>
    filters.some(({ field, op, value }) => field === name && operators.has(op) && value !== '')
  return [...plans].filter(([field, plan]) => plan.isRequired && !isGiven(plan, field)).map(([field]) => field)
}

function requiredFilter(field: string): Violation {
  return { field, description: REQUIRED_BY_INTEGRATION, rule: 'required' }
}

type Converted = { readonly value: Json } | { readonly problem: string }

function convertValues(
  plan: UnifiedRequestPlan,
  { field, op, value }: UnifiedFilter,
  node: SchemaNode | undefined,
  format: FilterConfig['format'],
): Converted {
  const convert = (item: Json): Converted => {
    const problem = idPartsProblem(plan.idParts.get(field), item)
    return problem === undefined ? convertValue(plan, field, item, node, format) : { problem }
  }
  if (op !== 'in' && op !== 'nin') return Array.isArray(value) ? { problem: 'must be one value' } : convert(value)
  const items: readonly Json[] = typeof value === 'string' ? value.split(',') : Array.isArray(value) ? value : [value]
  if (items.length > VALUES_MAX) return { problem: `must have at most ${VALUES_MAX} values` }
  const values: Json[] = []
  for (const item of items) {
    const converted = convert(typeof item === 'string' ? item.trim() : item)
    if ('problem' in converted) return converted
    values.push(converted.value)
  }
  return { value: values }
}

function convertValue(
  plan: UnifiedRequestPlan,
  field: string,
  value: Json,
  node: SchemaNode | undefined,
  format: FilterConfig['format'],
): Converted {
  const rule = plan.enums.get(field)
  if (rule !== undefined && rule.known.size > 0) {
    if (typeof value !== 'string' || !rule.known.has(value)) return { problem: mustBeOneOf(value, [...rule.known]) }
    const provider = toProviderValue(rule, value)
    return provider === undefined
      ? { problem: `has no counterpart of ${value} at the integration` }
      : { value: provider }
  }
  if (format !== undefined) return convertTime(value, format)
  return convertType(value, node)
}

/** A time as the provider wants it. */
function convertTime(value: Json, format: NonNullable<FilterConfig['format']>): Converted {
  const time = format === 'date' ? toDateOnly(value) : toDateTime(value)
  if (time === undefined) return { problem: 'must be a date (YYYY-MM-DD) or a time (RFC 3339)' }
  switch (format) {
    case 'date':
    case 'date-time':
      return { value: time }
    case 'epoch':
      return { value: Math.floor(Date.parse(time) / 1000) }
    case 'epoch_ms':
      return { value: Date.parse(time) }
  }
}

function convertType(value: Json, node: SchemaNode | undefined): Converted {
  switch (node?.kind) {
    case 'boolean':
      return orProblem(toBoolean(value), 'must be true or false')
    case 'integer':
      return orProblem(toInteger(value), 'must be a whole number')
    case 'number':
      return orProblem(toNumber(value), 'must be a number')
    default:
      return { value }
  }
}

function orProblem(value: Json | undefined, problem: string): Converted {
  return value === undefined ? { problem } : { value }
}

/** The schema of a dotted field; of a list that of its elements. */
export function nodeAt(node: SchemaNode, field: string): SchemaNode | undefined {
  let current: SchemaNode | undefined = node
  for (const name of field.split('.')) {
    if (current?.kind === 'array') current = current.items
    current = current?.kind === 'object' ? current.properties.get(name) : undefined
  }
  return current
}

/** The names of the fields of a record, and of those a level below: `owner`, `owner.id`. */
export function fieldNamesOf({ properties }: ObjectNode): readonly string[] {
  return [...properties].flatMap(([name, node]) => {
    const inner = node.kind === 'array' ? node.items : node
    return inner.kind === 'object' ? [name, ...[...inner.properties.keys()].map((each) => `${name}.${each}`)] : [name]
  })
}

/** Values by field and operator, for `$filters`. */
export function filterBindings({ honoured }: PreparedFilters): JsonObject {
  const byField: Record<string, Record<string, Json>> = Object.create(null)
  for (const { field, op, value } of honoured) byField[field] = { ...byField[field], [op]: value }
  return { ...byField }
}

/** `$filters` of the request maps: filters without parameter as their `value` writes them. @throws Failure EXPRESSION_FAILED */
export async function writtenFilters(evaluation: Evaluation, { honoured }: PreparedFilters): Promise<JsonObject> {
  const written: HonouredFilter[] = []
  for (const filter of honoured) {
    const value = filter.plan.to === undefined ? await writtenValue(evaluation, filter) : filter.value
    if (value !== undefined) written.push({ ...filter, value })
  }
  return filterBindings({ honoured: written, ignored: [] })
}

/** The query parameters of the filters. @throws Failure EXPRESSION_FAILED */
export async function filterQuery(evaluation: Evaluation, { honoured }: PreparedFilters): Promise<JsonObject> {
  const query: Record<string, Json> = {}
  for (const filter of honoured) {
    const { op, plan } = filter
    const name = typeof plan.to === 'string' ? plan.to : plan.to?.[op]
    const written = name === undefined ? undefined : await writtenValue(evaluation, filter)
    if (name !== undefined && written !== undefined) query[name] = written
  }
  return query
}

/** The value of a filter as its expression writes it. */
async function writtenValue(
  evaluation: Evaluation,
  { field, op, value, plan }: HonouredFilter,
): Promise<Json | undefined> {
  if (plan.value === undefined) return value
  const bindings = { ...evaluation.bindings, value, op }
  return await evaluateMappingExpression({ ...evaluation, bindings }, plan.value, {}, `filters.${field}.value`)
}
