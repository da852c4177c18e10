import { invalidFields } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { ValueColumn } from '../expressions/evaluator.ts'
import type { RateLimitedOutcome } from '../proxy/outcome.ts'
import type { ProxyRequest } from '../proxy/request.ts'
import { evaluationOf } from './build-call.ts'
import { type Coercion, warn } from './coerce.ts'
import { buildValue, compileFieldMap, evaluateFieldMap, type FieldMapPlan } from './field-map.ts'
import type { MappedRecords } from './map-records.ts'
import type { MappingScope, MappingWarning, MergedMapping } from './mapping.ts'
import { asRoot, compileMappingExpression, type Evaluation, evaluateColumns } from './mapping-expression.ts'
import type { BatchPlan, ExpansionPlan, ExpansionPlans } from './mapping-plan.ts'
import type { ExpansionConfig, MappingConfig } from './mapping-schema.ts'
import type { UnifiedResource } from './model.ts'
import { coerceExpanded, compileExpandedValue, type References, referenceOf } from './references.ts'
import type { UnifiedDependencies, UnifiedRequest, UnifiedTarget } from './request.ts'
import { toText } from './scalar-values.ts'
import { asObject, targetOf } from './steps.ts'

/** Most references that are loaded one by one, unless the caller agrees to more. */
const UNBATCHED_MAX = 50
/** Most references of one field of one call. */
const REFERENCES_MAX = 2_000
/** Requests in flight at once. */
const CONCURRENCY = 4

/** Records with their references loaded, or the rate limit that ended the call. */
export type LoadedRecords =
  | {
      readonly kind: 'loaded'
      readonly records: readonly JsonObject[]
      readonly warnings: readonly MappingWarning[]
    }
  | RateLimitedOutcome

/** References of one page that are loaded already, by field: what a rate limit interrupts goes on with the others. */
export type KeptReferences = Map<string, FieldReferences>

/** References of one field. */
export interface FieldReferences {
  readonly byId: Map<string, ExpandedValue>
  /** Ids that were asked for, also of references that could not be loaded. */
  readonly asked: Set<string>
  readonly warnings: MappingWarning[]
}

/** Compiles the expansions of a mapping. */
export function compileExpansions(
  mapping: MappingConfig,
  resource: UnifiedResource,
  layers: MergedMapping['layers'],
  references: References,
): ExpansionPlans {
  return new Map(
    Object.entries(mapping.expand ?? {}).map(([field, config]) => {
      const { batch } = config
      const referenced = references.get(referenceOf(resource, field) ?? '')
      const plan: ExpansionPlan = {
        config,
        ids: compileMappingExpression(config.ids),
        fields: compileFieldMap(config.fields),
        value: compileExpandedValue(resource, field, config.fields, mapping, layers, referenced),
        batch: batch === undefined ? undefined : compileBatch(batch),
      }
      return [field, plan]
    }),
  )
}

function compileBatch({ size, query, body, key }: NonNullable<ExpansionConfig['batch']>): BatchPlan {
  return {
    size,
    query: query === undefined ? undefined : compileFieldMap(query),
    body: body === undefined ? undefined : compileFieldMap(body),
    key: compileMappingExpression(key),
  }
}

/** What one field of one call is loaded with. */
interface Loading {
  readonly deps: UnifiedDependencies
  readonly target: UnifiedTarget
  readonly field: string
  readonly plan: ExpansionPlan
  readonly evaluation: Evaluation
  readonly includeSensitive: boolean
  readonly signal: AbortSignal | undefined
}

/** A loaded record as the value of a field, with the `_warnings` that it brings. */
interface ExpandedValue {
  readonly value: JsonObject
  readonly warnings: readonly MappingWarning[]
}

/**
 * Loads the references that the caller expands, each distinct one once. What is loaded fits the schemas of the reference and of
 * the resource that it refers to, as records of that resource do.
 *
 * A reference that cannot be loaded stays as it is, with a warning; so does a field that the model marks as sensitive, unless
 * the caller asks for those.
 *
 * @throws Failure INVALID_FIELD for more than 50 references without batch, EXPRESSION_FAILED, and those of a call
 */
export async function loadReferences(
  deps: UnifiedDependencies,
  target: UnifiedTarget,
  request: UnifiedRequest,
  { records, sources }: MappedRecords,
  scope: MappingScope,
  kept: KeptReferences = new Map(),
): Promise<LoadedRecords> {
  const evaluation = evaluationOf(deps, scope)
  const includeSensitive = request.includeSensitive ?? false
  const warnings: MappingWarning[] = []
  let expanded = records
  for (const field of new Set(request.expand ?? [])) {
    const plan = target.mapping.expansions.get(field)
    if (plan === undefined) continue
    if (plan.value.isSensitive && !includeSensitive) {
      warnings.push({ field, rule: 'expand', message: WITHHELD })
      continue
    }
    const loading: Loading = { deps, target, field, plan, evaluation, includeSensitive, signal: request.signal }
    const wanted = await readIds(loading, sources)
    const ids = [...new Set(wanted.flatMap(({ ids }) => ids))]
    assertFew(loading, ids, request.expandUnbatched ?? false)
    const loaded = kept.get(field) ?? { byId: new Map(), asked: new Set(), warnings: [] }
    kept.set(field, loaded)
    const limited = await loadOthers(loading, loaded, ids)
    if (limited !== undefined) return limited
    warnings.push(...loaded.warnings)
    expanded = expanded.map((record, row) => withReference(record, field, wanted[row], loaded.byId))
  }
  return { kind: 'loaded', records: expanded, warnings }
}

const WITHHELD = 'is not loaded: the model marks the field as sensitive, and include_sensitive is not set'

/** Ids of one record, and whether it may have several. */
interface WantedIds {
  readonly ids: readonly string[]
  readonly isList: boolean
}

async function readIds({ plan, evaluation }: Loading, sources: readonly Json[]): Promise<readonly WantedIds[]> {
  const [column] = await evaluateColumns(evaluation, [plan.ids], sources.map(asRoot))
  return sources.map((_source, row) => {
    const value = column?.values[row] ?? null
    const values: readonly Json[] = Array.isArray(value) ? value : [value]
    return { ids: values.flatMap((each) => toText(each) || []), isList: Array.isArray(value) }
  })
}

function assertFew({ field, plan }: Loading, ids: readonly string[], isUnbatchedAllowed: boolean): void {
  const max = plan.batch === undefined && !isUnbatchedAllowed ? UNBATCHED_MAX : REFERENCES_MAX
  if (ids.length <= max) return
  const advice = max === UNBATCHED_MAX ? 'ask for a smaller page, or set expand_unbatched' : 'ask for a smaller page'
  const description = `${field} would take ${ids.length} requests, one per record: ${advice}`
  throw invalidFields([{ field: 'expand', description, rule: 'max' }])
}

/** Loads the ids that were not asked for yet. @returns the rate limit that interrupts it */
async function loadOthers(
  loading: Loading,
  { byId, asked, warnings }: FieldReferences,
  ids: readonly string[],
): Promise<RateLimitedOutcome | undefined> {
  const others = ids.filter((id) => !asked.has(id))
  const pending = groupsOf(others, loading.plan.batch?.size ?? 1).values()
  let limited: RateLimitedOutcome | undefined
  const work = async (): Promise<void> => {
    for (const group of pending) {
      if (limited !== undefined) return
      const outcome = await loadGroup(loading, group)
      if (outcome.kind === 'rate_limited') {
        limited = outcome
        return
      }
      for (const id of group) asked.add(id)
      if (outcome.kind === 'failed') warnings.push(outcome.warning)
      else for (const [id, value] of outcome.values) byId.set(id, value)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work))
  return limited
}

function groupsOf(ids: readonly string[], size: number): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(ids.length / size) }, (_, at) => ids.slice(at * size, (at + 1) * size))
}

type GroupOutcome =
  | { readonly kind: 'ok'; readonly values: readonly (readonly [string, ExpandedValue])[] }
  | { readonly kind: 'failed'; readonly warning: MappingWarning }
  | RateLimitedOutcome

async function loadGroup(loading: Loading, ids: readonly string[]): Promise<GroupOutcome> {
  const { deps, target, field } = loading
  const outcome = await deps.proxy.call(target.plan, target.access, await requestOf(loading, ids))
  if (outcome.kind === 'rate_limited') return outcome
  if (outcome.kind === 'upstream_error') {
    const message = `${ids.length === 1 ? ids[0] : `${ids.length} records`} could not be loaded: ${outcome.message}`
    return { kind: 'failed', warning: { field, rule: 'expand', message } }
  }
  const { result } = outcome
  const loaded: readonly Json[] = Array.isArray(result) ? result : result === null ? [] : [result]
  return { kind: 'ok', values: await keyedValues(loading, loaded, ids) }
}

async function requestOf({ field, plan, evaluation, signal }: Loading, ids: readonly string[]): Promise<ProxyRequest> {
  const { config, batch } = plan
  const call = { target: targetOf(config.resource, config.method), signal }
  if (batch === undefined) return { ...call, id: ids[0] }
  const own = { ...evaluation, bindings: { ...evaluation.bindings, ids } }
  const value = (map: FieldMapPlan | undefined, setting: string): Promise<Json | undefined> =>
    map === undefined ? Promise.resolve(undefined) : evaluateFieldMap(own, map, {}, `expand.${field}.batch.${setting}`)
  const query = asObject(await value(batch.query, 'query'))
  return { ...call, query, body: await value(batch.body, 'body'), page: { limit: ids.length } }
}

/** Values of loaded records by id: of a batch by its key, else the one that was asked for. */
async function keyedValues(
  { plan, evaluation, includeSensitive }: Loading,
  loaded: readonly Json[],
  ids: readonly string[],
): Promise<readonly (readonly [string, ExpandedValue])[]> {
  const roots = loaded.map(asRoot)
  const { fields, batch } = plan
  const columns = await evaluateColumns(evaluation, fields.leaves, roots)
  const [keys] = batch === undefined ? [] : await evaluateColumns(evaluation, [batch.key], roots)
  return roots.flatMap((_root, row) => {
    const id = keys === undefined ? (row === 0 ? ids[0] : undefined) : toText(keys.values[row] ?? null)
    return id === undefined ? [] : [[id, expandedValue(plan, columns, row, includeSensitive)] as const]
  })
}

function expandedValue(
  { fields, value: plan }: ExpansionPlan,
  columns: readonly ValueColumn[],
  row: number,
  includeSensitive: boolean,
): ExpandedValue {
  const coercion: Coercion = { warnings: undefined, includeSensitive }
  for (const [at, { failures }] of columns.entries()) {
    const failure = failures.get(row)
    const name = fields.leaves[at]?.field ?? ''
    const field = name === '' ? plan.field : `${plan.field}.${name}`
    if (failure !== undefined) warn(coercion, field, 'expression', failure.publicMessage)
  }
  const given = buildValue(fields.tree, columns, row)
  const value = given !== undefined && isJsonObject(given) ? coerceExpanded(plan, given, coercion) : {}
  return { value, warnings: coercion.warnings ?? [] }
}

function withReference(
  record: JsonObject,
  field: string,
  wanted: WantedIds | undefined,
  byId: ReadonlyMap<string, ExpandedValue>,
): JsonObject {
  if (wanted === undefined || wanted.ids.length === 0) return record
  const present = record[field] ?? null
  const known: readonly Json[] = Array.isArray(present) ? present : [present]
  const references = wanted.ids.map((id): JsonObject => {
    const own = known.find((each) => isJsonObject(each) && each.id === id)
    return { ...(isJsonObject(own ?? null) ? (own as JsonObject) : {}), ...byId.get(id)?.value, id }
  })
  const isList = wanted.isList || Array.isArray(present)
  const expanded = { ...record, [field]: isList ? references : (references[0] ?? null) }
  const warnings = wanted.ids.flatMap((id) => byId.get(id)?.warnings ?? [])
  return warnings.length === 0 ? expanded : { ...expanded, _warnings: addWarnings(record._warnings, warnings) }
}

/** The `_warnings` of a record with those of its references, up to the most that a record has. */
function addWarnings(own: Json | undefined, added: readonly MappingWarning[]): Json {
  const warnings = (Array.isArray(own) ? [...own] : []) as unknown as MappingWarning[]
  const coercion: Coercion = { warnings, includeSensitive: false }
  for (const { field, rule, message } of added) warn(coercion, field, rule, message)
  return warnings as unknown as Json
}
