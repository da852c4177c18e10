import { Failure } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { isForOneRecord } from '../definitions/method-kinds.ts'
import type { RateLimitedOutcome, SuccessOutcome, UpstreamErrorOutcome } from '../proxy/outcome.ts'
import { buildCall, type PreparedRequest, prepareRequest } from './build-call.ts'
import { assertCleared } from './cleared-fields.ts'
import { loadReferences } from './expansions.ts'
import { mapAnswer, mapError } from './map-answer.ts'
import type { UnifiedDependencies, UnifiedOutcome, UnifiedRequest, UnifiedSuccess, UnifiedTarget } from './request.ts'
import { runStepsOf, withResults } from './run-steps.ts'

/**
 * One call of a unified method: validates the request, calls the provider through the proxy, maps the answer. Of a list it
 * reads one page.
 *
 * @throws Failure INVALID_FIELD (id, body, filters, sort_by, expand), EXPRESSION_FAILED, and those of `ApiProxy.call`
 */
export async function callUnified(
  deps: UnifiedDependencies,
  target: UnifiedTarget,
  request: UnifiedRequest,
): Promise<UnifiedOutcome> {
  const prepared = prepareRequest(deps, target, request)
  const before = await runStepsOf('before', deps, target, request, prepared)
  if (before.kind !== 'done') return endedBySteps(deps, target, before, prepared)
  const ready = withResults(prepared, { before: before.results })
  await assertCleared(deps, target, request, ready)
  const outcome = await deps.proxy.call(target.plan, target.access, await buildCall(deps, target, request, ready))
  if (outcome.kind === 'rate_limited') return outcome
  if (outcome.kind === 'upstream_error') return await mapError(deps, target.mapping, outcome, ready)
  try {
    const after = await runStepsOf('after', deps, target, request, ready, outcome)
    if (after.kind !== 'done') return await endedBySteps(deps, target, after, ready)
    const answered = withResults(ready, { after: after.results })
    return await answerOf(deps, target, request, answered, { ...outcome, result: after.result ?? outcome.result })
  } catch (error) {
    throw ofAnswer(error, outcome.logId)
  }
}

/** The error of what was made of an answer, with the request of that answer. */
export function ofAnswer(error: unknown, logId: string | undefined): unknown {
  return error instanceof Failure && logId !== undefined ? error.withMetadata({ log_id: logId }) : error
}

/** The outcome of a step that ended the call, with the error as the mapping words it. */
async function endedBySteps(
  deps: UnifiedDependencies,
  { mapping }: UnifiedTarget,
  outcome: RateLimitedOutcome | UpstreamErrorOutcome,
  prepared: PreparedRequest,
): Promise<RateLimitedOutcome | UpstreamErrorOutcome> {
  return outcome.kind === 'rate_limited' ? outcome : await mapError(deps, mapping, outcome, prepared)
}

async function answerOf(
  deps: UnifiedDependencies,
  target: UnifiedTarget,
  request: UnifiedRequest,
  prepared: PreparedRequest,
  outcome: SuccessOutcome,
): Promise<UnifiedOutcome> {
  const { mapping } = target
  const mapped = await mapAnswer(deps, mapping, outcome.result, prepared.scope, request)
  const loaded = await loadReferences(deps, target, request, mapped, prepared.scope)
  if (loaded.kind === 'rate_limited') return loaded
  const answer: UnifiedSuccess = {
    kind: 'ok',
    status: outcome.status,
    result: resultOf(mapping.method, outcome, loaded.records, request.id),
    page: outcome.page,
    isPartial: mapping.config.response?.partial ?? false,
    ignoredFilters: prepared.ignored,
    warnings: [...prepared.warnings, ...loaded.warnings],
    raw: outcome.body,
    rateLimit: outcome.rateLimit,
    logId: outcome.logId,
  }
  return answer
}

function resultOf(
  method: string,
  { page }: SuccessOutcome,
  records: readonly JsonObject[],
  id: string | undefined,
): UnifiedSuccess['result'] {
  const [first = null] = records
  if (method === 'delete') return { id: id ?? null, ...first }
  const isList = method === 'list' || (page !== undefined && !isForOneRecord(method))
  return isList ? records : first
}
