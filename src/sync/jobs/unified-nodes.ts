import {
  checkUnifiedQuery,
  filtersSince,
  findFilterProblems,
  type MappingPlan,
  missingFilters,
  REQUIRED_BY_INTEGRATION,
  readUnifiedQuery,
  UNIFIED_OPTIONS,
  type UnifiedQuery,
  type UnifiedRequest,
} from '../../engine/unified/index.ts'
import { Failure, invalidFields, suggest, suggestOneOf, type Violation } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import type { MappedAccount, UnifiedMappings, UnifiedMethodRef } from '../../platform/unified-config/index.ts'
import type { ListingRequest } from './page-source.ts'
import { isUnifiedName, readSyncResources, type SyncResource } from './resource.ts'

/** Looks up the mappings of unified resources. */
export type MappingFinder = Pick<UnifiedMappings, 'find'>

/** The method that a node such as `crm/contacts` names. */
export function unifiedRefOf({ resource, method }: Pick<SyncResource, 'resource' | 'method'>): UnifiedMethodRef {
  const slash = resource.indexOf('/')
  return { model: resource.slice(0, slash), resource: resource.slice(slash + 1), method }
}

/**
 * What is asked of the mapping for a listing: a filter that it does not honour is an error unless the node says
 * `strict_filters: false`, and an incremental listing asks for what was updated since.
 *
 * @throws Failure INVALID_FIELD for what is no query of a unified resource
 */
export function unifiedRequestOf(
  { id, query, previousRunDate }: Omit<ListingRequest, 'args' | 'resources'>,
  mapping: MappingPlan,
  signal: AbortSignal,
): UnifiedRequest {
  const { limit, ...asked } = readUnifiedQuery(strictQuery(query), 'query.')
  return { ...asked, filters: filtersSince(mapping, asked.filters, previousRunDate), id, page: { limit }, signal }
}

/** The query of a node of a unified resource, strict unless it says otherwise. */
export function strictQuery(query: JsonObject): JsonObject {
  return { strict_filters: true, ...query }
}

/**
 * The violations of nodes of unified resources: no mapping for the account, or a query that the mapping does not honour. Other
 * nodes have none.
 *
 * @param account without an account id, what holds for all accounts of the environment
 * @param path prefix of the fields
 */
export async function findUnifiedViolations(
  mappings: MappingFinder,
  tx: Db,
  account: MappedAccount,
  resources: readonly SyncResource[],
  path = 'resources',
): Promise<readonly Violation[]> {
  const violations: Violation[] = []
  for (const [index, node] of resources.entries()) {
    if (!isUnifiedName(node.resource)) continue
    const at = `${path}[${index}]`
    const mapping = await findMapping(mappings, tx, account, node, at)
    if ('rule' in mapping) violations.push(mapping)
    if (node.persist === false) violations.push({ ...NEVER_KEPT_BACK, field: `${at}.persist` })
    violations.push(...queryViolations(node, 'rule' in mapping ? undefined : mapping, at))
  }
  return violations
}

const NEVER_KEPT_BACK = {
  description: 'cannot be false: records of a unified resource are always delivered',
  rule: 'resources.persist',
} as const

/** Checks the nodes of a run for its account. @throws Failure RESOURCES_INVALID with every violation */
export async function assertMapped(
  mappings: MappingFinder,
  tx: Db,
  account: MappedAccount,
  resources: readonly JsonObject[],
): Promise<void> {
  const violations = await findUnifiedViolations(mappings, tx, account, readSyncResources(resources))
  if (violations.length > 0) throw invalidFields(violations, 'RESOURCES_INVALID')
}

async function findMapping(
  mappings: MappingFinder,
  tx: Db,
  account: MappedAccount,
  node: SyncResource,
  at: string,
): Promise<MappingPlan | Violation> {
  try {
    return (await mappings.find(tx, account, unifiedRefOf(node))).plan
  } catch (error) {
    if (!(error instanceof Failure) || !MAPPING_ERRORS.has(error.reason)) throw error
    return {
      field: `${at}.resource`,
      description: `cannot be synced: ${error.publicMessage}`,
      rule: 'resources.mapping',
    }
  }
}

const MAPPING_ERRORS: ReadonlySet<Failure['reason']> = new Set(['UNIFIED_NOT_MAPPED', 'DEFINITION_INVALID'])

function queryViolations({ query = {} }: SyncResource, mapping: MappingPlan | undefined, at: string): Violation[] {
  const { query: read, violations } = checkUnifiedQuery(withoutTemplates(strictQuery(query)), `${at}.query.`)
  if (mapping === undefined) return [...violations]
  const { filters = [] } = read
  const missing = missingFilters(mapping.request, filters).map((field): Violation => {
    return { field: `${at}.query.${field}`, description: REQUIRED_BY_INTEGRATION, rule: 'required' }
  })
  return [
    ...violations,
    ...missing,
    ...wrongValues(mapping, filters, at),
    ...notExpandable(mapping, read.expand ?? [], at),
    ...(read.strictFilters ? ignoredBy(mapping, read, at) : []),
  ]
}

/** Constant values that the field cannot have; those of templates are known when the node runs. */
function wrongValues(mapping: MappingPlan, filters: NonNullable<UnifiedQuery['filters']>, at: string): Violation[] {
  const constant = filters.filter(({ value }) => ![value].flat().some(isTemplated))
  return findFilterProblems(mapping.request, mapping.resource, constant).map(({ field, ...problem }) => {
    return { ...problem, field: `${at}.query.${field}` }
  })
}

function notExpandable({ expandable }: MappingPlan, expand: readonly string[], at: string): Violation[] {
  return expand
    .filter((field) => !expandable.has(field))
    .map((field) => ({
      field: `${at}.query.expand`,
      description: `names ${field}, which cannot be expanded${suggestOneOf(field, expandable)}`,
      rule: 'expand.not_supported',
    }))
}

function ignoredBy(mapping: MappingPlan, { filters = [], sort }: UnifiedQuery, at: string): Violation[] {
  const violations: Violation[] = filters.flatMap(({ field, op }) => {
    const ops = mapping.filters.get(field)
    if (ops?.includes(op)) return []
    const known = ops === undefined ? [...mapping.filters.keys()] : ops.map((each) => `${field}[${each}]`)
    const description = notHonoured(known, ops === undefined ? suggest(field, [...known, ...UNIFIED_OPTIONS]) : '')
    return [{ field: `${at}.query.${field}`, description, rule: 'filter.not_supported' }]
  })
  if (sort !== undefined && !mapping.sorts.has(sort.field))
    violations.push({
      field: `${at}.query.sort_by`,
      description: notHonoured([...mapping.sorts], suggest(sort.field, mapping.sorts)),
      rule: 'sort.not_supported',
    })
  return violations
}

function notHonoured(known: readonly string[], near = ''): string {
  const hint = known.length === 0 ? 'none is' : `there are ${known.join(', ')}`
  return `is not passed on by the mapping${near || ','} ${hint}; with strict_filters false it is left out`
}

/** A query without the options that a template decides: their values are known when the node runs. */
function withoutTemplates(query: JsonObject): JsonObject {
  const isKnown = ([name, value]: readonly [string, Json]) => !OPTIONS.has(name) || !isTemplated(value)
  return Object.fromEntries(Object.entries(query).filter(isKnown))
}

const OPTIONS: ReadonlySet<string> = new Set(UNIFIED_OPTIONS)

function isTemplated(value: Json): boolean {
  return typeof value === 'string' && value.includes('{{')
}
