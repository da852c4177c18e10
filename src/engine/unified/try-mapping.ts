import { type Clock, Failure, suggestOneOf } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { compilePlan } from '../definitions/compile.ts'
import type { Evaluator } from '../expressions/evaluator.ts'
import { createProxy } from '../proxy/proxy.ts'
import { callUnified } from './call-unified.ts'
import { createFixtureHttp, type MappingFixture, type TriedCall, type TriedExchange } from './fixture.ts'
import type { FieldTrace, UnifiedFilter } from './mapping.ts'
import type { MappingPlan } from './mapping-plan.ts'
import { FILTER_OPERATORS, type FilterOperator } from './mapping-schema.ts'
import { previewUnified } from './preview-unified.ts'
import type { UnifiedDependencies, UnifiedOutcome, UnifiedRequest, UnifiedTarget } from './request.ts'
import { sampleAccount, withoutAuthorization } from './sample-account.ts'

/** What became of a mapping that was tried. */
export interface TriedMapping {
  /** Requests and answers, in order; of a live account none, since they may hold its secrets. */
  readonly exchanges: readonly TriedExchange[]
  /** Absent: the call failed before an answer was mapped, with `failure`. */
  readonly outcome: UnifiedOutcome | undefined
  readonly failure: Failure | undefined
  /** Of each record, how its fields came about; absent without records. */
  readonly traces: readonly (readonly FieldTrace[])[] | undefined
  /** Exchanges of the fixture that were not used. */
  readonly unused: number
}

/** What a fixture is tried with. */
export interface FixtureDependencies {
  readonly evaluator: Pick<Evaluator, 'evaluate' | 'evaluateAll'>
  readonly clock: Pick<Clock, 'now'>
}

/**
 * Runs a fixture through the proxy and a mapping, for a sample account: nothing is sent.
 *
 * @param definition config of the integration
 * @param environmentId whose share of the sandbox is used; absent: that of calls without one
 */
export async function tryFixture(
  { evaluator, clock }: FixtureDependencies,
  mapping: MappingPlan,
  definition: JsonObject,
  fixture: MappingFixture,
  environmentId?: string,
): Promise<TriedMapping> {
  const http = createFixtureHttp(fixture)
  const calledAt = fixture.called_at === undefined ? clock.now() : new Date(fixture.called_at)
  const now = () => calledAt
  const proxy = createProxy({
    http: { send: http.send, stream: () => Promise.reject(new Error('unified calls do not stream')) },
    evaluator,
    // The waits of retries and limits take no time.
    clock: { now, monotonicMs: () => 0, sleep: async () => {} },
  })
  const target = {
    plan: compilePlan(withoutAuthorization(definition)),
    access: { ...sampleAccount(definition, fixture.context), environmentId },
    mapping,
  }
  const tried = await tryCall({ proxy, evaluator, clock: { now } }, target, fixtureRequest(fixture))
  return { ...tried, exchanges: http.exchanges, unused: fixture.exchanges.length - http.exchanges.length }
}

/** Makes a unified call and traces the records of its answer. Failures are part of the result. */
export async function tryCall(
  deps: UnifiedDependencies,
  target: UnifiedTarget,
  request: UnifiedRequest,
): Promise<TriedMapping> {
  const nothing = { exchanges: [], outcome: undefined, failure: undefined, traces: undefined, unused: 0 }
  try {
    const outcome = await callUnified(deps, target, request)
    return { ...nothing, outcome, traces: await traceAnswer(deps, target, request, outcome) }
  } catch (error) {
    if (error instanceof Failure) return { ...nothing, failure: error }
    throw error
  }
}

/** Maps the answer once more, as the sample of a dry run, which records how each field came about. */
async function traceAnswer(
  deps: UnifiedDependencies,
  target: UnifiedTarget,
  request: UnifiedRequest,
  outcome: UnifiedOutcome,
): Promise<TriedMapping['traces']> {
  if (outcome.kind !== 'ok') return undefined
  const sample = { status: outcome.status, headers: {}, body: outcome.raw }
  return (await previewUnified(deps, target, { ...request, sample })).traces
}

/** The unified call of a fixture. @throws Failure INVALID_FIELD for an unknown operator */
export function fixtureRequest(fixture: TriedCall): UnifiedRequest {
  const { id, query, body, expand, sort_by: sortBy, limit, cursor } = fixture
  return {
    id,
    query,
    body,
    expand,
    remoteFields: fixture.remote_fields,
    filters: Object.entries(fixture.filters ?? {}).flatMap(([field, value]) => filtersOf(field, value)),
    sort:
      sortBy === undefined
        ? undefined
        : { field: sortBy.replace(/^-/, ''), direction: sortBy.startsWith('-') ? 'desc' : 'asc' },
    page: limit === undefined && cursor === undefined ? undefined : { limit, cursor },
    includeSensitive: true,
  }
}

function filtersOf(field: string, value: Json): readonly UnifiedFilter[] {
  if (!isJsonObject(value)) return [{ field, op: 'eq', value }]
  return Object.entries(value).map(([name, of]) => {
    const op = FILTER_OPERATORS.find((known: FilterOperator) => known === name)
    if (op === undefined)
      throw new Failure(
        'INVALID_FIELD',
        `filters.${field}.${name} is no operator${suggestOneOf(name, FILTER_OPERATORS)}`,
      )
    return { field, op, value: of }
  })
}
