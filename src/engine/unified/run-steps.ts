import type { JsonObject } from '../../foundation/json/index.ts'
import type { SuccessOutcome } from '../proxy/outcome.ts'
import { evaluationOf, type PreparedRequest } from './build-call.ts'
import type { UnifiedDependencies, UnifiedRequest, UnifiedTarget } from './request.ts'
import { runSteps, type StepRun, type StepsOutcome } from './steps.ts'

/** Runs the steps before or after a call; those after it read the provider's answer as `$response` and `$headers` (lower-case names). */
export function runStepsOf(
  variable: StepRun['variable'],
  deps: UnifiedDependencies,
  target: UnifiedTarget,
  request: UnifiedRequest,
  prepared: PreparedRequest,
  answer?: Pick<SuccessOutcome, 'result' | 'headers'>,
  { isDryRun = false, results = {} }: Partial<Pick<StepRun, 'isDryRun' | 'results'>> = {},
): Promise<StepsOutcome> {
  const run = stepRunOf(variable, deps, target, request, prepared)
  const answered = answer === undefined ? {} : { response: answer.result, headers: { ...answer.headers } }
  const evaluation = { ...run.evaluation, bindings: { ...run.evaluation.bindings, ...answered } }
  return runSteps({ ...run, evaluation, isDryRun, results }, target.mapping.request[variable])
}

/** What the steps of a prepared request run with, before any of them has run. */
export function stepRunOf(
  variable: StepRun['variable'],
  deps: UnifiedDependencies,
  target: UnifiedTarget,
  { signal }: UnifiedRequest,
  { scope, root }: PreparedRequest,
): StepRun {
  return { deps, target, evaluation: evaluationOf(deps, scope), root, signal, variable, isDryRun: false, results: {} }
}

/** The request with results of steps. */
export function withResults(
  prepared: PreparedRequest,
  results: { readonly before?: JsonObject; readonly after?: JsonObject },
): PreparedRequest {
  return { ...prepared, scope: { ...prepared.scope, ...results } }
}
