import type { JsonObject } from '../base/index.ts'
import type { PageDelayed, PageStep, RateLimitedOutcome } from '../proxy/index.ts'
import { buildCall, prepareRequest } from './build-call.ts'
import { runStepsOf, withResults } from './call-unified.ts'
import { type KeptReferences, loadReferences } from './expansions.ts'
import { mapAnswer, mapError } from './map-answer.ts'
import type { UnifiedDependencies, UnifiedRequest, UnifiedTarget } from './request.ts'

/**
 * A whole unified list page by page, resumable: the steps of `ApiProxy.pages` with unified records. The steps of the mapping
 * before the call run once, also when a list is resumed; those after it run for each page, before its references are loaded. A
 * rate limit between references keeps those that are loaded: who goes on after the wait has the page in as many windows as its
 * requests take.
 *
 * @param state of an earlier step; absent or `null`: from the start
 * @throws Failure as `callUnified` and `ApiProxy.pages`
 */
export async function* unifiedPages(
  deps: UnifiedDependencies,
  target: UnifiedTarget,
  request: UnifiedRequest,
  state: JsonObject | null = null,
): AsyncGenerator<PageStep, void, void> {
  const { mapping } = target
  const prepared = prepareRequest(target, request)
  let at: PagePlace = { page: 1, state }
  const before = yield* retryLimited(at, () => runStepsOf('before', deps, target, request, prepared))
  if (before.kind === 'upstream_error') {
    yield { ...(await mapError(deps, mapping, before, prepared)), ...at }
    return
  }
  const ready = withResults(prepared, { before: before.results })
  const call = await buildCall(deps, target, request, ready)
  for await (const step of deps.proxy.pages(target.plan, target.access, call, state)) {
    at = { page: step.page, state: step.kind === 'page' ? at.state : step.state }
    if (step.kind === 'rate_limited') yield step
    else if (step.kind === 'upstream_error') yield { ...(await mapError(deps, mapping, step, ready)), ...at }
    else {
      const answer = { result: [...step.records], headers: step.headers ?? {} }
      const after = yield* retryLimited(at, () => runStepsOf('after', deps, target, request, ready, answer))
      if (after.kind === 'upstream_error') {
        yield { ...(await mapError(deps, mapping, after, ready)), ...at }
        return
      }
      const { scope } = withResults(ready, { after: after.results })
      const mapped = await mapAnswer(deps, mapping, after.result ?? answer.result, scope, request)
      const kept: KeptReferences = new Map()
      const loaded = yield* retryLimited(at, () => loadReferences(deps, target, request, mapped, scope, kept))
      yield { ...step, records: loaded.records }
      at = { page: step.page, state: step.state }
    }
  }
}

/** Where a step that was not read resumes. */
type PagePlace = Pick<PageDelayed, 'page' | 'state'>

/** Repeats work that a rate limit interrupts, as the page of it is requested again; each limit is a step. */
async function* retryLimited<Outcome extends { readonly kind: string }>(
  at: PagePlace,
  work: () => Promise<Outcome | RateLimitedOutcome>,
): AsyncGenerator<PageStep, Exclude<Outcome, RateLimitedOutcome>, void> {
  for (;;) {
    const outcome = await work()
    if (!isLimited(outcome)) return outcome as Exclude<Outcome, RateLimitedOutcome>
    yield { ...outcome, ...at }
  }
}

function isLimited(outcome: { readonly kind: string }): outcome is RateLimitedOutcome {
  return outcome.kind === 'rate_limited'
}
