import { Failure } from '../base/index.ts'
import type { ActionPlan, Plan, StepPlan } from '../definitions/index.ts'
import { type ActionState, computedOutcome, runStep, shouldRunStep } from './action-step.ts'
import { scopedRefresher, withContextPatch } from './credential-refresh.ts'
import type { CallDependencies } from './dependencies.ts'
import { assertNoScalar, toRecords } from './extract.ts'
import type {
  ActionOutcome,
  ActionRequest,
  ActionRun,
  ActionStepResult,
  CallOutcome,
  NamedActionRequest,
} from './outcome.ts'
import type { PageStep } from './pages.ts'
import { createRedaction, redactFailure, tokensIn } from './redaction.ts'
import type { AccountAccess } from './request.ts'
import { assertNotReserved, findAction } from './resolve-target.ts'

/**
 * Runs an action for a caller; its outcome is that of its last step.
 *
 * @throws Failure as `call` does; METHOD_NOT_DEFINED also for the actions that are an account's own business
 */
export async function callAction(
  deps: CallDependencies,
  plan: Plan,
  account: AccountAccess,
  request: NamedActionRequest,
): Promise<CallOutcome> {
  assertNotReserved(request.target.action)
  const { outcome: end } = await runAction(deps, plan, account, request)
  if (end.kind === 'refused') throw end.failure
  return end
}

/**
 * An action as a list: of its records when the result is a list, else of its one result. Never paged.
 *
 * @throws Failure as `callAction` does; UPSTREAM_INVALID_RESPONSE when the result is a text
 */
export async function* actionPages(
  deps: CallDependencies,
  plan: Plan,
  account: AccountAccess,
  request: NamedActionRequest,
): AsyncGenerator<PageStep, void, void> {
  for (;;) {
    const outcome = await callAction(deps, plan, account, request)
    if (outcome.kind !== 'ok') yield { ...outcome, page: 1, state: null }
    else {
      const { result, rateLimit } = outcome
      if (typeof result === 'string') assertNoScalar(outcome, result)
      yield { kind: 'page', page: 1, records: toRecords(result), state: null, stopReason: 'unpaginated', rateLimit }
    }
    // Taking the next step after a rate limit runs the action once more.
    if (outcome.kind !== 'rate_limited') return
  }
}

/** How far an action has come. */
interface ActionProgress {
  readonly outcome: ActionOutcome
  readonly state: ActionState
}

/**
 * Runs a named action, reserved ones too, or the proof of a credential: its steps in order until one fails.
 *
 * What `update_context` steps computed is seen by later steps at once and handed to the keeper when all steps have passed;
 * of an action that fails nothing is kept. Whatever goes wrong after the start is told by `end`.
 *
 * @throws Failure METHOD_NOT_DEFINED, SANDBOX_ACCOUNT_READ_ONLY
 */
export async function runAction(
  deps: CallDependencies,
  plan: Plan,
  account: AccountAccess,
  request: ActionRequest,
): Promise<ActionRun> {
  const action = findAction(plan, account, request.target)
  const steps: ActionStepResult[] = []
  let progress: ActionProgress = {
    outcome: computedOutcome(null),
    state: { access: account, previous: undefined, steps: {}, patch: {} },
  }
  for (const step of action.steps) {
    const startedAt = deps.clock.now()
    const advanced = await runNextStep(withScopedRefresher(deps, action, progress.state), step, request, progress.state)
    if (advanced === undefined) continue
    progress = advanced
    steps.push(stepResult(step, progress.outcome, startedAt, deps.clock.now()))
    if (progress.outcome.kind !== 'ok') return { outcome: progress.outcome, steps }
  }
  return { outcome: await saveContext(deps, plan, progress), steps }
}

/** Runs the next step; `undefined` when it is to be skipped. */
async function runNextStep(
  deps: CallDependencies,
  step: StepPlan,
  request: ActionRequest,
  running: ActionState,
): Promise<ActionProgress | undefined> {
  // A third party may quote what an earlier step was given, a session for instance.
  deps.redaction.setSecrets('steps', () => tokensIn(running.steps))
  try {
    if (!(await shouldRunStep(deps, step, request, running))) return undefined
    const { outcome, access, patch } = await runStep(deps, step, request, running)
    if (outcome.kind !== 'ok') return { outcome: outcome, state: { ...running, access } }
    const next: ActionState = {
      access: withContextPatch(access, patch),
      previous: outcome.result,
      steps: { ...running.steps, [step.name]: outcome.result },
      patch: { ...running.patch, ...patch },
    }
    return { outcome: outcome, state: next }
  } catch (error) {
    return { outcome: failedAction(redactFailure(deps.redaction, error)), state: running }
  }
}

/** Anybody may read the context: where a third party repeated a credential the mask is kept. */
async function saveContext(
  { keeper }: CallDependencies,
  plan: Plan,
  { outcome: end, state: running }: ActionProgress,
): Promise<ActionOutcome> {
  if (Object.keys(running.patch).length === 0) return end
  try {
    await keeper?.updateContext(running.access, createRedaction(plan, running.access).redactObject(running.patch))
    return end
  } catch (error) {
    return failedAction(error)
  }
}

function failedAction(error: unknown): ActionOutcome {
  if (!(error instanceof Failure)) throw error
  return { kind: 'refused', failure: error }
}

function withScopedRefresher(deps: CallDependencies, { name }: ActionPlan, { patch }: ActionState): CallDependencies {
  return deps.keeper === undefined ? deps : { ...deps, keeper: scopedRefresher(deps.keeper, name, patch) }
}

/** Longest error of a step that is kept. */
const STEP_ERROR_LENGTH_MAX = 500

/** The report of a step that ran. */
function stepResult({ name, type }: StepPlan, end: ActionOutcome, startedAt: Date, endedAt: Date): ActionStepResult {
  const status = type === 'request' && end.kind !== 'refused' ? end.status : undefined
  const error = end.kind === 'ok' ? undefined : describeFailure(end).slice(0, STEP_ERROR_LENGTH_MAX)
  const durationMs = endedAt.getTime() - startedAt.getTime()
  return { name, type, ok: end.kind === 'ok', status, startedAt, durationMs, error }
}

function describeFailure(end: Exclude<ActionOutcome, { readonly kind: 'ok' }>): string {
  switch (end.kind) {
    case 'rate_limited':
      return `the upstream asks to wait ${end.retryAfterSeconds} seconds`
    case 'upstream_error':
      return `the upstream answered ${end.status}: ${end.message}`
    case 'refused':
      return end.failure.publicMessage
  }
}
