import { Failure, invalidFields, suggest, suggestOneOf, type Violation } from '../../foundation/base/index.ts'
import { canonicalJson, isJsonObject, type Json, type JsonObject, overlay } from '../../foundation/json/index.ts'
import { hasRecordId, sendsRecord } from '../definitions/method-kinds.ts'
import type { ProxyRequest } from '../proxy/request.ts'
import { findWrongParameters } from './check-parameters.ts'
import { evaluateFieldMap, type FieldMapPlan } from './field-map.ts'
import {
  filterBindings,
  filterQuery,
  type PreparedFilters,
  prepareFilters,
  unknownName,
  writtenFilters,
} from './filters.ts'
import { idPartsProblem } from './id-parts.ts'
import { bindingsOf } from './map-records.ts'
import type { IgnoredFilter, MappingScope, MappingWarning } from './mapping.ts'
import { type Evaluation, evaluateMappingExpression } from './mapping-expression.ts'
import type { MappingPlan } from './mapping-plan.ts'
import type { UnifiedDependencies, UnifiedRequest, UnifiedTarget } from './request.ts'
import { toText } from './scalar-values.ts'
import { asObject, targetOf } from './steps.ts'
import { type ValidatedBody, validateBody } from './validate-body.ts'

/** A unified request, checked before anything is sent. */
export interface PreparedRequest {
  readonly filters: PreparedFilters
  readonly body: ValidatedBody
  /** Root of the expressions of the request: the body of a write, else empty. */
  readonly root: JsonObject
  readonly scope: MappingScope
  readonly ignored: readonly IgnoredFilter[]
  readonly warnings: readonly MappingWarning[]
}

/** Names of fields in a message. */
const FIELDS_SHOWN_MAX = 6

const NO_BODY: ValidatedBody = { unified: {}, outgoing: {} }

/** Checks a unified request. @throws Failure INVALID_FIELD naming what is wrong */
export function prepareRequest(
  { clock }: Pick<UnifiedDependencies, 'clock'>,
  { mapping, access }: UnifiedTarget,
  request: UnifiedRequest,
): PreparedRequest {
  const { method, resource } = mapping
  if (hasRecordId(method) && (request.id ?? '') === '')
    throw invalidFields([{ field: 'id', description: 'is required', rule: 'required' }])
  const idProblem = idPartsProblem(mapping.request.idParts.get('id'), request.id)
  if (idProblem !== undefined) throw invalidFields([{ field: 'id', description: idProblem, rule: 'id_parts' }])
  const filters = prepareFilters(mapping.request, resource, request.filters ?? [])
  const ignoredOrders = ignoredSort(mapping, request)
  const ignored = [...filters.ignored, ...ignoredOrders]
  const wrong = findWrongParameters(mapping, ignored)
  if (wrong.length > 0) throw invalidFields(wrong)
  if (request.strictFilters === true && ignored.length > 0) throw notHonoured(mapping, ignored)
  assertExpandable(mapping, request)
  const body = sendsRecord(method) ? validateBody(resource, method, request.body, mapping.request) : freeBody(request)
  if (sendsRecord(method)) assertWrites(mapping, body, request)
  return {
    filters,
    body,
    root: body.outgoing,
    scope: {
      calledAt: clock.now().toISOString(),
      context: access.context,
      query: request.query,
      filters: filterBindings(filters),
      sort: ignoredOrders.length === 0 ? request.sort : undefined,
      id: request.id,
      body: body.outgoing,
      parent: request.parent,
      owner: access.environmentId,
    },
    ignored,
    warnings: sendsRecord(method) ? unreadFields(mapping, body.unified) : [],
  }
}

/** The order of a request, where the provider is not asked for it. */
function ignoredSort({ request: plan, resource }: MappingPlan, { sort }: UnifiedRequest): readonly IgnoredFilter[] {
  if (sort === undefined) return []
  const { field, direction } = sort
  const known = plan.sorts.get(field)
  if (known?.[direction] !== undefined) return []
  if (known === undefined && !resource.node.properties.has(field))
    return [unknownName(field, 'sort', plan.sorts.keys())]
  return [{ field, op: 'sort', reason: known === undefined ? 'not_supported' : 'operator_not_supported' }]
}

function notHonoured({ filters, sorts }: MappingPlan, ignored: readonly IgnoredFilter[]): Failure {
  const honoured = [...filters].map(([field, operators]) => `${field} (${operators.join(', ')})`).join('; ')
  const describe = ({ field, op }: IgnoredFilter): Violation =>
    op === 'sort'
      ? { field: 'sort_by', description: `cannot be ${field}${suggestOneOf(field, sorts)}`, rule: 'filter' }
      : {
          field,
          description: `is not honoured with ${op}: this integration has ${honoured || 'no filters'}${suggest(field, filters.keys())}`,
          rule: 'filter',
        }
  return invalidFields(ignored.map(describe))
}

function assertExpandable({ expandable }: MappingPlan, { expand = [] }: UnifiedRequest): void {
  const unknown = expand.filter((field) => !expandable.has(field))
  if (unknown.length === 0) return
  const describe = (field: string) => `names ${field}, which cannot be expanded${suggestOneOf(field, expandable)}`
  throw invalidFields(unknown.map((field) => ({ field: 'expand', description: describe(field), rule: 'unknown' })))
}

/** A write without a field would send a request that writes nothing. */
function assertWrites({ method, resource }: MappingPlan, { unified }: ValidatedBody, request: UnifiedRequest): void {
  const { remoteFields, query } = request
  if (Object.keys({ ...unified, ...remoteFields, ...query }).length > 0) return
  const writable = [...resource.node.properties].filter(([, { isReadOnly }]) => !isReadOnly).map(([name]) => name)
  const fields = writable.slice(0, FIELDS_SHOWN_MAX).join(', ')
  const description = `has nothing to ${method}: it needs a field of the resource, such as ${fields}, or remote_fields`
  throw invalidFields([{ field: 'body', description, rule: 'required' }])
}

/** The body of a method of the mapping's own is passed on as it is. */
function freeBody({ body }: UnifiedRequest): ValidatedBody {
  return isJsonObject(body ?? null) ? { unified: body as JsonObject, outgoing: body as JsonObject } : NO_BODY
}

function unreadFields({ request, config }: MappingPlan, body: JsonObject): readonly MappingWarning[] {
  const { readFields } = request
  if (readFields === undefined || config.request?.body === undefined) return []
  return Object.keys(body)
    .filter((field) => !readFields.has(field))
    .map((field) => ({
      field,
      rule: 'not_mapped',
      message: 'the mapping of this integration does not send it; use remote_fields',
    }))
}

/** The evaluation of the expressions of a request. */
export function evaluationOf({ evaluator }: Pick<UnifiedDependencies, 'evaluator'>, scope: MappingScope): Evaluation {
  return { evaluator, bindings: bindingsOf(scope), owner: scope.owner }
}

/**
 * The call of the proxy for a prepared request.
 *
 * @throws Failure EXPRESSION_FAILED, METHOD_NOT_DEFINED for a method that the mapping does not allow
 */
export async function buildCall(
  deps: Pick<UnifiedDependencies, 'evaluator'>,
  { mapping }: UnifiedTarget,
  request: UnifiedRequest,
  prepared: PreparedRequest,
): Promise<ProxyRequest> {
  const { request: plan } = mapping
  const { root } = prepared
  const given = evaluationOf(deps, prepared.scope)
  const filters = await writtenFilters(given, prepared.filters)
  const evaluation = { ...given, bindings: { ...given.bindings, filters, sort: prepared.scope.sort ?? {} } }
  const value = (map: FieldMapPlan | undefined, setting: string): Promise<Json | undefined> =>
    map === undefined ? Promise.resolve(undefined) : evaluateFieldMap(evaluation, map, root, `request.${setting}`)
  const sort = request.sort === undefined ? undefined : plan.sorts.get(request.sort.field)?.[request.sort.direction]
  const query = {
    ...asObject(await value(plan.query, 'query')),
    ...(await filterQuery(evaluation, prepared.filters)),
    ...asObject(sort === undefined ? undefined : await evaluateFieldMap(evaluation, sort, root, 'sort')),
    ...request.query,
  }
  return {
    target: targetOf(plan.resource, await methodOf(evaluation, mapping, root)),
    id: plan.id === undefined ? request.id : await evaluateMappingExpression(evaluation, plan.id, root, 'request.id'),
    query,
    body: outgoingBody(mapping, request, await value(plan.body, 'body')),
    headers: await headersOf(evaluation, mapping, root),
    args: asObject(await value(plan.args, 'args')),
    page: { ...request.page, list: listOf(mapping, request) },
    signal: request.signal,
  }
}

/**
 * What a cursor of a unified list is bound to: the request as its caller made it, because what a mapping makes of it may differ from
 * page to page, as with the time of day.
 */
function listOf({ resource, method }: MappingPlan, request: UnifiedRequest): JsonObject {
  const { id = null, filters = [], sort = null, query = {}, body = null } = request
  const texts = filters.map(({ field, op, value }) => canonicalJson([field, op, value])).sort()
  return {
    resource: `${resource.model}/${resource.name}`,
    method,
    id,
    filters: texts,
    sort: sort && { ...sort },
    query,
    body,
  }
}

async function methodOf(evaluation: Evaluation, { request }: MappingPlan, root: JsonObject): Promise<string> {
  const { method } = request
  if (typeof method === 'string') return method
  const { expression, allowed } = method
  const name = await evaluateMappingExpression(evaluation, expression, root, 'method')
  if (typeof name === 'string' && allowed.has(name)) return name
  const chosen = typeof name === 'string' ? name.slice(0, 100) : 'no method'
  throw new Failure(
    'METHOD_NOT_DEFINED',
    `the mapping chose ${chosen}, which it does not declare${suggestOneOf(chosen, allowed)}`,
  )
}

/** The mapped body with the caller's own keys over it; a method of the mapping's own passes its body on. */
function outgoingBody({ request: plan, method }: MappingPlan, request: UnifiedRequest, mapped: Json | undefined) {
  const isFree = plan.body === undefined && !sendsRecord(method)
  const body = isFree ? request.body : mapped
  const { remoteFields } = request
  if (remoteFields === undefined) return body
  return isJsonObject(body ?? {}) ? overlay((body ?? {}) as JsonObject, remoteFields) : body
}

async function headersOf(
  evaluation: Evaluation,
  { request }: MappingPlan,
  root: JsonObject,
): Promise<Record<string, string> | undefined> {
  if (request.headers.size === 0) return undefined
  const headers: Record<string, string> = {}
  for (const [name, leaf] of request.headers) {
    const text = toText((await evaluateMappingExpression(evaluation, leaf, root, `request.headers.${name}`)) ?? null)
    if (text !== undefined) headers[name] = text
  }
  return headers
}
