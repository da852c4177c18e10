import { invalidFields, suggestOneOf, type Violation } from '../../foundation/base/index.ts'
import { isJsonNumber, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { UnifiedFilter } from './mapping.ts'
import type { MappingPlan } from './mapping-plan.ts'
import { FILTER_OPERATORS, type FilterOperator } from './mapping-schema.ts'
import type { UnifiedRequest } from './request.ts'

type QueryParts =
  | 'filters'
  | 'sort'
  | 'query'
  | 'expand'
  | 'expandUnbatched'
  | 'includeRemoteData'
  | 'includeSensitive'
  | 'strictFilters'

/** What the query of a unified call says: filters and options, as REST, RPC and the nodes of a sync write them. */
export interface UnifiedQuery extends Pick<UnifiedRequest, QueryParts> {
  /** Records per page; absent: as the definition says. */
  readonly limit: number | undefined
}

/** Names that are never fields. Those of a page, of an account and of the answer belong to the address or message of the call. */
export const UNIFIED_OPTIONS = [
  'sort_by',
  'limit',
  'expand',
  'expand_unbatched',
  'include_remote_data',
  'include_sensitive',
  'strict_filters',
  'remote_query',
] as const

/** Options of a call that its query does not carry. */
export const OPTIONS_ELSEWHERE = ['integrated_account_id', 'next_cursor', 'include_raw', 'dry_run'] as const
const ELSEWHERE: ReadonlySet<string> = new Set(OPTIONS_ELSEWHERE)

const FILTERS_MAX = 64
const EXPAND_MAX = 16
const PAGE_SIZE_MAX = 10_000
const FIELD = /^[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*$/
const FIELD_LENGTH_MAX = 128
/** What is wrong with an option that an address has several times. */
const REPEATED = 'is given more than once'
/** Longest part of a name that is repeated to its sender. */
const NAME_LENGTH_MAX = 200
/** Operators that compare with a list. */
const LIST_OPERATORS: ReadonlySet<FilterOperator> = new Set(['in', 'nin'])

/**
 * Reads a query such as `{status: 'open', updated_at: {gt: '2026-01-01'}, sort_by: '-updated_at', expand: 'owner,account'}`.
 * Options may be texts, as in an address: `'true'`, `'50'`. A list of values is `in`; a text of `in` and `nin` is split at
 * commas. `null` and `{}` are no filter, as a template without a value leaves them.
 *
 * @param path prefix of the fields in violations, e.g. `query.`
 * @throws Failure INVALID_FIELD with everything that is wrong
 */
export function readUnifiedQuery(query: JsonObject, path = ''): UnifiedQuery {
  const { query: read, violations } = checkUnifiedQuery(query, path)
  if (violations.length > 0) throw invalidFields(violations)
  return read
}

/** The same with the violations instead of an error; the query holds what could be read. */
export function checkUnifiedQuery(
  query: JsonObject,
  path = '',
): { readonly query: UnifiedQuery; readonly violations: readonly Violation[] } {
  const violations: Violation[] = []
  const at = (name: string) => `${path}${name.slice(0, NAME_LENGTH_MAX)}`
  const report: Report = (name, description, rule) => violations.push({ field: at(name), description, rule })
  const read = {
    filters: readFilters(query, report),
    sort: readSort(query.sort_by, report),
    expand: readExpand(query.expand, report),
    expandUnbatched: readFlag(query, 'expand_unbatched', report),
    includeRemoteData: readFlag(query, 'include_remote_data', report),
    includeSensitive: readFlag(query, 'include_sensitive', report),
    strictFilters: readFlag(query, 'strict_filters', report),
    query: readRemoteQuery(query.remote_query, report),
    limit: readLimit(query.limit, report),
  }
  return { query: read, violations }
}

/** The field by which an incremental sync asks, and the comparisons that serve, the better one first. */
const CHANGED_FIELD = 'updated_at'
const SINCE_OPERATORS = ['gt', 'gte'] as const

/**
 * The filters of an incremental list: with `updated_at` after the date of the last complete run, where the mapping honours that
 * filter and the request has none on that field. A mapping that does not honour it reads everything.
 *
 * @param since RFC 3339; absent: everything is read
 */
export function filtersSince(
  { filters: honoured }: Pick<MappingPlan, 'filters'>,
  filters: UnifiedRequest['filters'] = [],
  since: string | undefined,
): readonly UnifiedFilter[] {
  const op = SINCE_OPERATORS.find((each) => honoured.get(CHANGED_FIELD)?.includes(each))
  if (since === undefined || op === undefined) return filters
  if (filters.some(({ field }) => field === CHANGED_FIELD)) return filters
  return [...filters, { field: CHANGED_FIELD, op, value: since }]
}

type Report = (name: string, description: string, rule: string) => unknown

function readFilters(query: JsonObject, report: Report): UnifiedFilter[] {
  const filters: UnifiedFilter[] = []
  for (const [field, value] of Object.entries(query)) {
    if (isOption(field)) continue
    if (ELSEWHERE.has(field)) report(field, 'is no filter: it is not given in this query', 'reserved')
    else if (field.length > FIELD_LENGTH_MAX || !FIELD.test(field))
      report(field, 'is not the name of a field: fields below objects are dotted, as owner.id', 'filter.field')
    else filters.push(...filtersOf(field, value, report))
  }
  if (filters.length > FILTERS_MAX) report('filters', `must be at most ${FILTERS_MAX}`, 'filter.count')
  return filters
}

function filtersOf(field: string, value: Json, report: Report): readonly UnifiedFilter[] {
  if (value === null) return []
  if (!isJsonObject(value)) return filterOf(field, Array.isArray(value) ? 'in' : 'eq', value, field, report)
  return Object.entries(value).flatMap(([name, operand]) => {
    const op = FILTER_OPERATORS.find((known) => known === name)
    const at = `${field}[${name}]`
    if (op !== undefined) return operand === null ? [] : filterOf(field, op, operand, at, report)
    const description = `is no comparison${suggestOneOf(name, FILTER_OPERATORS)}; a field of an object is ${field}.${name}`
    report(at, description, 'filter.op')
    return []
  })
}

function filterOf(
  field: string,
  op: FilterOperator,
  value: Json,
  at: string,
  report: Report,
): readonly UnifiedFilter[] {
  if (LIST_OPERATORS.has(op)) {
    const values = typeof value === 'string' ? value.split(',').filter((item) => item !== '') : value
    const isList = Array.isArray(values) && values.length > 0 && values.every(isScalar)
    if (isList) return [{ field, op, value: values }]
    report(at, 'must be a list of values, or a text with commas between them', 'filter.value')
  } else if (isScalar(value)) return [{ field, op, value }]
  else report(at, 'must be one value; of several, use in', 'filter.value')
  return []
}

function isScalar(value: Json): boolean {
  return typeof value === 'string' || typeof value === 'boolean' || isJsonNumber(value)
}

function isOption(name: string): boolean {
  return (UNIFIED_OPTIONS as readonly string[]).includes(name)
}

/** Several values of an option: a repeated name is a list. */
function isRepeated(value: Json): boolean {
  return Array.isArray(value) && value.length > 1
}

function readSort(value: Json | undefined, report: Report): UnifiedQuery['sort'] {
  if (value === undefined || value === null || value === '') return undefined
  const field = typeof value === 'string' ? value.replace(/^-/, '') : ''
  if (typeof value === 'string' && field.length <= FIELD_LENGTH_MAX && FIELD.test(field))
    return { field, direction: value.startsWith('-') ? 'desc' : 'asc' }
  if (isRepeated(value)) report('sort_by', REPEATED, 'duplicate_parameter')
  else report('sort_by', 'must be the name of one field, or of one with - before it to sort downward', 'sort_by')
  return undefined
}

function readExpand(value: Json | undefined, report: Report): readonly string[] {
  if (value === undefined || value === null || value === '') return []
  const names: readonly Json[] = typeof value === 'string' ? value.split(',') : Array.isArray(value) ? value : [value]
  const texts = names.flatMap((name) => (typeof name === 'string' && FIELD.test(name.trim()) ? [name.trim()] : []))
  if (texts.length < names.length) report('expand', 'must be names of fields, with commas between them', 'expand')
  else if (texts.length > EXPAND_MAX) report('expand', `must be at most ${EXPAND_MAX} fields`, 'expand.count')
  return [...new Set(texts)]
}

function readFlag(query: JsonObject, name: string, report: Report): boolean {
  const value = query[name] ?? false
  if (typeof value === 'boolean') return value
  if (isRepeated(value)) report(name, REPEATED, 'duplicate_parameter')
  else if (value !== 'true' && value !== 'false') report(name, 'must be true or false', 'type')
  return value === 'true'
}

function readRemoteQuery(value: Json | undefined, report: Report): JsonObject {
  if (value === undefined || value === null) return {}
  if (isJsonObject(value)) return value
  report('remote_query', 'must be an object of query parameters: remote_query[<name>]=<value>', 'type')
  return {}
}

function readLimit(value: Json | undefined, report: Report): number | undefined {
  if (value === undefined || value === null) return undefined
  const text = String(value)
  const limit = !Array.isArray(value) && /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= PAGE_SIZE_MAX) return limit
  if (isRepeated(value)) report('limit', REPEATED, 'duplicate_parameter')
  else report('limit', `must be an integer from 1 to ${PAGE_SIZE_MAX}`, 'int32.gte_lte')
  return undefined
}
