import type { JsonObject } from '../base/index.ts'
import type { PageStep } from '../proxy/index.ts'
import { buildCall, prepareRequest } from './build-call.ts'
import { endedBySteps, runStepsOf, withResults } from './call-unified.ts'
import { mapAnswer, mapError } from './map-answer.ts'
import type { UnifiedDependencies, UnifiedRequest, UnifiedTarget } from './request.ts'
import { loadReferences } from './side-load.ts'

/**
 * A whole unified list page by page, resumable: the steps of `ApiProxy.pages` with unified records. The steps before the call
 * run once, also when a list is resumed; those after it do not run.
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
  let before = await runStepsOf('before', deps, target, request, prepared)
  while (before.kind !== 'done') {
    yield { ...(await endedBySteps(deps, target, before, prepared)), page: 1, state }
    if (before.kind === 'upstream_error') return
    before = await runStepsOf('before', deps, target, request, prepared)
  }
  const ready = withResults(prepared, { before: before.results })
  const call = await buildCall(deps, target, request, ready)
  let current = state
  for await (const step of deps.proxy.pages(target.plan, target.access, call, state)) {
    if (step.kind === 'rate_limited') yield step
    else if (step.kind === 'upstream_error') {
      const { page, state: at } = step
      yield { ...(await mapError(deps, mapping, step, ready)), page, state: at }
    } else {
      const mapped = await mapAnswer(deps, mapping, [...step.records], ready.scope, request)
      let loaded = await loadReferences(deps, target, request, mapped, ready.scope)
      while (loaded.kind === 'rate_limited') {
        yield { ...loaded, page: step.page, state: current }
        loaded = await loadReferences(deps, target, request, mapped, ready.scope)
      }
      yield { ...step, records: loaded.records }
      current = step.state
    }
  }
}
