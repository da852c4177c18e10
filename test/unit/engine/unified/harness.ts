import { findShippedMapping, findShippedModel } from '../../../../src/engine/catalog/index.ts'
import { compilePlan, type Plan, resolveConfig } from '../../../../src/engine/definitions/index.ts'
import type { CompiledExpression } from '../../../../src/engine/expressions/evaluator.ts'
import { createEvaluator, type Evaluator } from '../../../../src/engine/expressions/index.ts'
import { type AccountAccess, createProxy } from '../../../../src/engine/proxy/index.ts'
import {
  callUnified,
  compileMapping,
  FILTER_OPERATORS,
  type FilterOperator,
  type MappingPlan,
  mergeMappings,
  parseModel,
  type UnifiedModel,
  type UnifiedOutcome,
  type UnifiedRequest,
  type UnifiedResource,
} from '../../../../src/engine/unified/index.ts'
import type { UnifiedFilter } from '../../../../src/engine/unified/mapping.ts'
import { type Clock, systemClock } from '../../../../src/foundation/base/index.ts'
import type { EgressRequest, EgressResponse } from '../../../../src/foundation/egress/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { readGoldenFile } from '../catalog/golden-file.ts'
import { shipped } from '../catalog/shipped.ts'
import { CLOCK } from './engine-support.ts'
import type { CaseResult, FixtureCase, FixtureRequest } from './fixture-file.ts'

/** By name of the resource, by name of the method or `*`: the configs of a shipped mapping. */
type MappingResources = Readonly<Record<string, Readonly<Record<string, JsonObject>>>>

/** Where a mapping must work without a child process: an evaluator whose sandbox does not start. */
export function createInlineEvaluator(): Evaluator {
  const evaluator = createEvaluator({
    startSandbox: () => {
      throw new Error('a shipped mapping was evaluated in a sandbox')
    },
  })
  const naming = <Value>(expression: string | CompiledExpression, value: Promise<Value>): Promise<Value> =>
    value.catch((error: Error) => {
      throw new Error(`${error.message}: ${typeof expression === 'string' ? expression : expression.text}`)
    })
  return {
    evaluate: (expression, ...rest) => naming(expression, evaluator.evaluate(expression, ...rest)),
    evaluateAll: async (expressions, ...rest) =>
      (await Promise.all(expressions.map((each) => naming(each, evaluator.evaluateAll([each], ...rest))))).flat(),
    [Symbol.asyncDispose]: () => evaluator[Symbol.asyncDispose](),
  }
}

const models = new Map<string, UnifiedModel>()

export function modelOf(name: string): UnifiedModel {
  const document = findShippedModel(name)
  if (document === undefined) throw new Error(`no shipped model ${name}`)
  const model = models.get(name) ?? parseModel(document)
  models.set(name, model)
  return model
}

export function resourceOf(model: string, name: string): UnifiedResource {
  const resource = modelOf(model).resources.get(name)
  if (resource === undefined) throw new Error(`no resource ${model}/${name}`)
  return resource
}

function mappingResources(model: string, integration: string): MappingResources {
  return findShippedMapping(model, integration)?.resources as MappingResources
}

/** The methods that a mapping has for each of its resources, `*` left out. */
export function mappedMethods(model: string, integration: string): Map<string, readonly string[]> {
  return new Map(
    Object.entries(mappingResources(model, integration)).map(([resource, methods]) => [
      resource,
      Object.keys(methods).filter((method) => method !== '*'),
    ]),
  )
}

/** The shipped config of one method: that of all methods with its own merged over it. */
export function methodConfig(model: string, integration: string, resource: string, method: string): JsonObject {
  return mergedMapping(model, integration, resource, method).config
}

const mappingPlans = new Map<string, MappingPlan>()

export function mappingPlan(model: string, integration: string, resource: string, method: string): MappingPlan {
  const key = `${model}/${resource}/${integration}/${method}`
  const plan =
    mappingPlans.get(key) ??
    compileMapping(mergedMapping(model, integration, resource, method), resourceOf(model, resource), method)
  mappingPlans.set(key, plan)
  return plan
}

function mergedMapping(model: string, integration: string, resource: string, method: string) {
  const { '*': shared = {}, [method]: own } = mappingResources(model, integration)[resource] ?? {}
  if (own === undefined) throw new Error(`${model}/${resource} of ${integration} has no method ${method}`)
  return mergeMappings([
    { layer: 'shipped', config: shared },
    { layer: 'shipped', config: own },
  ])
}

const plans = new Map<string, Plan>()

/** The shipped definition, compiled. */
export function definitionPlan(integration: string): Plan {
  const plan = plans.get(integration) ?? compilePlan(resolveConfig(shipped(integration).config, {}).config)
  plans.set(integration, plan)
  return plan
}

export function accountOf(integration: string, context: JsonObject = {}): AccountAccess {
  const account = readGoldenFile(integration)?.account ?? {}
  return {
    id: 'account-1',
    isSandbox: false,
    credentials: {},
    ...account,
    context: { ...account.context, ...context },
    environmentVariables: { ...account.environmentVariables },
  }
}

/** Evaluators of a test file: one for the definition, whose own expressions may need the sandbox, and one for the mapping. */
export interface Evaluators {
  readonly definition: Evaluator
  readonly mapping: Evaluator
}

/** A case that was run. */
export interface CaseRun {
  readonly outcome: UnifiedOutcome
  readonly requests: readonly FixtureRequest[]
}

/**
 * Runs a case through the real proxy: answers the requests in the order of the exchanges.
 *
 * @throws Error when a request is not as an exchange says, when there are more, or fewer
 */
export async function runCase(
  evaluators: Evaluators,
  place: { readonly model: string; readonly integration: string; readonly resource: string },
  fixture: FixtureCase,
  options: {
    readonly includeRemoteData?: boolean
    readonly includeSensitive?: boolean
    /** Answers that are left over, or that are missing: the last one again, are no error. */
    readonly anyNumber?: boolean
  } = {},
): Promise<CaseRun> {
  const { model, integration, resource } = place
  const { anyNumber = false, ...included } = options
  const requests: FixtureRequest[] = []
  const proxy = createProxy({
    http: {
      send: async (request) => answer(request, fixture, requests, anyNumber),
      stream: () => Promise.reject(new Error('unified calls do not stream')),
    },
    evaluator: evaluators.definition,
    clock: CLOCK,
    random: () => 0.5,
    nonce: () => 'n0nce',
  })
  const outcome = await callUnified(
    { proxy, evaluator: evaluators.mapping, clock: clockOf(fixture) },
    {
      plan: definitionPlan(integration),
      access: accountOf(integration, fixture.context),
      mapping: mappingPlan(model, integration, resource, fixture.method),
    },
    { includeSensitive: true, ...requestOf(fixture), ...included },
  )
  if (requests.length < fixture.exchanges.length && !anyNumber)
    throw new Error(
      `${requests.length} of ${fixture.exchanges.length} exchanges were used: ${JSON.stringify(requests)}`,
    )
  return { outcome, requests }
}

/** The present time, for cases that do not say when they are called: their results may not depend on it. */
function clockOf({ called_at: calledAt }: FixtureCase): Pick<Clock, 'now'> {
  return calledAt === undefined ? systemClock : { now: () => new Date(calledAt) }
}

function requestOf(fixture: FixtureCase): UnifiedRequest {
  const { sort_by: sortBy, limit, cursor } = fixture
  return {
    id: fixture.id,
    filters: Object.entries(fixture.filters ?? {}).flatMap(([field, value]) => filtersOf(field, value)),
    sort:
      sortBy === undefined
        ? undefined
        : { field: sortBy.replace(/^-/, ''), direction: sortBy.startsWith('-') ? 'desc' : 'asc' },
    query: fixture.query,
    body: fixture.body,
    remoteFields: fixture.remote_fields,
    expand: fixture.expand,
    page: limit === undefined && cursor === undefined ? undefined : { limit, cursor },
  }
}

function filtersOf(field: string, value: Json): UnifiedFilter[] {
  if (!isJsonObject(value)) return [{ field, op: 'eq', value }]
  return Object.entries(value).map(([op, of]) => {
    if (!FILTER_OPERATORS.includes(op as FilterOperator)) throw new Error(`no operator ${op}`)
    return { field, op: op as FilterOperator, value: of }
  })
}

function answer(
  request: EgressRequest,
  { exchanges }: FixtureCase,
  requests: FixtureRequest[],
  anyNumber: boolean,
): EgressResponse {
  const sent = shownRequest(request)
  const exchange = exchanges[requests.length] ?? (anyNumber ? exchanges.at(-1) : undefined)
  requests.push(sent)
  if (exchange === undefined) throw new Error(`an exchange is missing for ${JSON.stringify(sent)}`)
  assertSent(sent, exchange.request)
  const { status = 200, headers = {}, body } = exchange.response
  const isText = typeof body === 'string'
  const type = body === undefined || isText ? {} : { 'content-type': 'application/json' }
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return {
    status,
    headers: { ...type, ...lower },
    body: Buffer.from(body === undefined ? '' : isText ? body : JSON.stringify(body)),
    url: request.url,
  }
}

function assertSent(sent: FixtureRequest, wanted: FixtureRequest | undefined): void {
  if (wanted === undefined) return
  for (const part of ['method', 'path', 'query', 'body'] as const) {
    const value = wanted[part]
    if (value === undefined || canonical(value as Json) === canonical(sent[part] as Json)) continue
    throw new Error(`${part} of a request: wanted ${canonical(value as Json)}, sent ${JSON.stringify(sent)}`)
  }
}

function shownRequest({ method, url, headers, body }: EgressRequest): FixtureRequest {
  const { pathname, searchParams } = new URL(url)
  const query: Record<string, string | string[]> = {}
  for (const name of new Set(searchParams.keys())) {
    const values = searchParams.getAll(name)
    query[name] = values.length === 1 ? (values[0] ?? '') : values
  }
  const text = body === undefined ? undefined : typeof body === 'string' ? body : Buffer.from(body).toString()
  const isJson = /\bjson\b/.test(headers['content-type'] ?? '')
  return {
    method,
    path: decodeURI(pathname),
    ...(Object.keys(query).length === 0 ? {} : { query }),
    ...(text === undefined ? {} : { body: isJson ? (JSON.parse(text) as Json) : text }),
  }
}

/** JSON with sorted keys: equal for equal values. */
export function canonical(value: Json | undefined): string {
  return JSON.stringify(value ?? null, (_key, item: Json) =>
    isJsonObject(item) ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1))) : item,
  )
}

/** The records of a successful outcome: those of a list, or the one. */
export function recordsOf(outcome: UnifiedOutcome): readonly JsonObject[] {
  if (outcome.kind !== 'ok' || outcome.result === null) return []
  return Array.isArray(outcome.result) ? (outcome.result as JsonObject[]) : [outcome.result as JsonObject]
}

/** What the golden file has of a run. */
export function caseResult({ outcome, requests }: CaseRun): CaseResult {
  if (outcome.kind === 'ok') {
    const { result, page, warnings, ignoredFilters } = outcome
    return JSON.parse(
      JSON.stringify({
        requests,
        outcome: outcome.kind,
        result,
        ...(page === undefined ? {} : { next_cursor: page.nextCursor !== null }),
        warnings,
        ignored_filters: ignoredFilters,
      }),
    ) as CaseResult
  }
  const { kind, status, ...error } = outcome
  const {
    body: _body,
    rateLimit: _rateLimit,
    headers: _headers,
    isPassedOn: _isPassedOn,
    request: _request,
    ...shown
  } = error as typeof error & JsonObject
  return JSON.parse(JSON.stringify({ requests, outcome: kind, status, error: shown })) as CaseResult
}
