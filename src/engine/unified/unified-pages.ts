import type { JsonObject } from '../../foundation/json/index.ts'
import type { RateLimitedOutcome, RecordsPage } from '../proxy/outcome.ts'
import type { PageDelayed, PageStep } from '../proxy/pages.ts'
import { buildCall, prepareRequest } from './build-call.ts'
import { ofAnswer } from './call-unified.ts'
import { loadReferences } from './expansions.ts'
import { mapAnswer, mapError } from './map-answer.ts'
import { hasProgress, type PageProgress, readProgress, storedProgress } from './page-progress.ts'
import type { UnifiedDependencies, UnifiedRequest, UnifiedTarget } from './request.ts'
import { runStepsOf, withResults } from './run-steps.ts'

/**
 * A whole unified list page by page, resumable: the steps of `ApiProxy.pages` with unified records. The steps of the mapping
 * before the call run once, also when a list is resumed; those after it run for each page, before its references are loaded. A
 * rate limit keeps what is read of the page: who goes on after the wait, or resumes with the progress of the step, has the page in
 * as many windows as its requests take.
 *
 * @param state of an earlier step; absent or `null`: from the start
 * @param stored `progress` of the step that had the state; absent or `null`: none
 * @throws Failure as `callUnified` and `ApiProxy.pages`
 */
export async function* unifiedPages(
  deps: UnifiedDependencies,
  target: UnifiedTarget,
  request: UnifiedRequest,
  state: JsonObject | null = null,
  stored: JsonObject | null = null,
): AsyncGenerator<UnifiedPageStep, void, void> {
  const { mapping } = target
  const prepared = prepareRequest(deps, target, request)
  let read = readProgress(stored)
  let at: PagePlace = { page: read.page?.page ?? 1, state }
  const before = yield* retryLimited(at, read, () =>
    runStepsOf('before', deps, target, request, prepared, undefined, { results: read.before }),
  )
  if (before.kind === 'upstream_error') {
    yield { ...(await mapError(deps, mapping, before, prepared)), ...at }
    return
  }
  const ready = withResults(prepared, { before: before.results })
  const call = await buildCall(deps, target, request, ready)
  const pagesFrom = (from: JsonObject | null) => deps.proxy.pages(target.plan, target.access, call, from)
  for await (const step of resumedPages(read.page, pagesFrom, state)) {
    at = { page: step.page, state: step.kind === 'page' ? at.state : step.state }
    if (step.kind === 'rate_limited') yield delayed(step, at, read)
    else if (step.kind === 'upstream_error') yield { ...(await mapError(deps, mapping, step, ready)), ...at }
    else {
      read.page = step
      const page = read
      const answer = { result: [...step.records], headers: step.headers ?? {} }
      const after = yield* retryLimited(at, page, () =>
        runStepsOf('after', deps, target, request, ready, answer, { results: page.after }),
      )
      if (after.kind === 'upstream_error') {
        yield { ...(await mapError(deps, mapping, after, ready)), ...at }
        return
      }
      const { scope } = withResults(ready, { after: after.results })
      const mapped = await mapAnswer(deps, mapping, after.result ?? answer.result, scope, request).catch(
        (error: unknown) => {
          throw ofAnswer(error, step.logId)
        },
      )
      const loaded = yield* retryLimited(at, page, () =>
        loadReferences(deps, target, request, mapped, scope, page.references),
      )
      yield { ...step, records: loaded.records }
      at = { page: step.page, state: step.state }
      read = { ...readProgress(null), before: read.before }
    }
  }
}

/** A step through a unified list; a rate limit with what is read of the page. */
type UnifiedPageStep = PageStep | (PageDelayed & { readonly progress: () => JsonObject })

/** The pages of a list, the first of which may be read already. */
async function* resumedPages(
  first: RecordsPage | undefined,
  pagesFrom: (state: JsonObject | null) => AsyncIterable<PageStep>,
  state: JsonObject | null,
): AsyncGenerator<PageStep, void, void> {
  if (first !== undefined) yield first
  if (first === undefined || first.state !== null) yield* pagesFrom(first?.state ?? state)
}

function delayed(limited: RateLimitedOutcome, at: PagePlace, read: PageProgress): UnifiedPageStep {
  const step = { ...limited, ...at }
  return hasProgress(read) ? { ...step, progress: () => storedProgress(read) } : step
}

/** Where a step that was not read resumes. */
type PagePlace = Pick<PageDelayed, 'page' | 'state'>

/** Repeats work that a rate limit interrupts, as the page of it is requested again; each limit is a step. */
async function* retryLimited<Outcome extends { readonly kind: string }>(
  at: PagePlace,
  read: PageProgress,
  work: () => Promise<Outcome | RateLimitedOutcome>,
): AsyncGenerator<UnifiedPageStep, Exclude<Outcome, RateLimitedOutcome>, void> {
  for (;;) {
    const outcome = await work()
    if (!isLimited(outcome)) return outcome as Exclude<Outcome, RateLimitedOutcome>
    yield delayed(outcome, at, read)
  }
}

function isLimited(outcome: { readonly kind: string }): outcome is RateLimitedOutcome {
  return outcome.kind === 'rate_limited'
}
