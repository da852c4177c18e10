import { Failure } from '../../foundation/base/index.ts'
import { canonicalJson, type JsonObject } from '../../foundation/json/index.ts'
import { Redactor } from '../../foundation/redaction/index.ts'
import type { Plan, StepPlan } from '../definitions/plan.ts'
import { type ActionState, computedOutcome, runStep, shouldRunStep } from './action-step.ts'
import { logIdOf } from './classify-response.ts'
import { dependenciesForStep, withContextPatch } from './credential-refresh.ts'
import type { CallDependencies } from './dependencies.ts'
import { assertNoScalar, toRecords } from './extract.ts'
import type { ActionOutcome, ActionRun, ActionStepResult, CallOutcome } from './outcome.ts'
import type { PageStep } from './pages.ts'
import { callSecrets, redactFailure, tokensIn } from './redaction.ts'
import type { AccountAccess, ActionRequest, NamedActionRequest } from './request.ts'
import { assertNotReserved, findAction, isReserved } from './resolve-target.ts'

/**
 * Runs a named action for a caller; the outcome is that of its last step.
 *
 * @throws Failure as `call` does; METHOD_NOT_DEFINED also for reserved actions
 */
export async function callAction(
  deps: CallDependencies,
  plan: Plan,
  account: AccountAccess,
  request: NamedActionRequest,
): Promise<CallOutcome> {
  assertNotReserved(request.target.action)
  const { outcome } = await runAction(deps, plan, account, request)
  if (outcome.kind === 'failed') throw outcome.failure
  // The caller did not ask for the answer to this step.
  return outcome.kind === 'upstream_error' ? { ...outcome, isPassedOn: false } : outcome
}

/**
 * A named action as a list of one page: its records when the result is a list, else its one result.
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
      const { result, rateLimit, headers } = outcome
      if (typeof result === 'string') assertNoScalar(outcome, result)
      const records = toRecords(result)
      yield { kind: 'page', page: 1, records, state: null, stopReason: 'unpaginated', rateLimit, headers }
    }
    // After a rate limit the next step runs the action once more.
    if (outcome.kind !== 'rate_limited') return
  }
}

/** The outcome of the last step, and the state for the next. */
interface ActionProgress {
  readonly outcome: ActionOutcome
  readonly state: ActionState
}

/**
 * Runs a named or reserved action, or the verification of a credential: its steps in order until one fails.
 *
 * Later steps see the changes of `update_context` steps; the account gets them when all steps have succeeded. A failure of a
 * step is the outcome `failed`.
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
    const before = deps.requestLine.logId
    const advanced = await runNextStep(
      dependenciesForStep(deps, action.name, progress.state.patch),
      step,
      request,
      progress.state,
    )
    if (advanced === undefined) continue
    progress = advanced
    const logged = deps.requestLine.logId === before ? {} : logIdOf(deps)
    steps.push({ ...stepResult(step, progress.outcome, startedAt, deps.clock.now()), ...logged })
    if (progress.outcome.kind !== 'ok') return { outcome: progress.outcome, steps }
  }
  return { outcome: await saveContext(deps, plan, progress, request), steps }
}

/** Runs the next step; `undefined` when `run_if` skips it. */
async function runNextStep(
  deps: CallDependencies,
  step: StepPlan,
  request: ActionRequest,
  state: ActionState,
): Promise<ActionProgress | undefined> {
  // A third party may quote results of earlier steps, such as a session token.
  deps.redaction.setSecrets('steps', () => tokensIn(state.steps))
  try {
    if (!(await shouldRunStep(deps, step, request, state))) return undefined
    const { outcome, access, patch } = await runStep(deps, step, request, state)
    if (outcome.kind !== 'ok') return { outcome, state: { ...state, access } }
    const next: ActionState = {
      access: withContextPatch(access, patch),
      previous: outcome.result,
      steps: { ...state.steps, [step.name]: outcome.result },
      patch: { ...state.patch, ...patch },
    }
    return { outcome, state: next }
  } catch (error) {
    return { outcome: failedAction(redactFailure(deps, error)), state: state }
  }
}

/** Stores the changes of the context. It is readable through the API, so a change that holds a credential is an error. */
async function saveContext(
  { accountReporter }: CallDependencies,
  plan: Plan,
  { outcome, state: { access, patch } }: ActionProgress,
  { target, leaseId }: ActionRequest,
): Promise<ActionOutcome> {
  if (Object.keys(patch).length === 0) return outcome
  const isOfDefinition = target.kind !== 'action' || isReserved(target.action)
  try {
    assertNoSecrets(callSecrets(plan, access), patch)
    await accountReporter?.updateContext(access, patch, isOfDefinition, leaseId)
    return outcome
  } catch (error) {
    return failedAction(error)
  }
}

/** A shorter secret, such as a PIN, may be in a value by chance. */
const SECRET_LENGTH_MIN = 8

/** @throws Failure DEFINITION_INVALID naming the keys of a change that hold secrets of the call */
function assertNoSecrets(secrets: readonly string[], patch: JsonObject): void {
  const redaction = new Redactor(() => secrets.filter(({ length }) => length >= SECRET_LENGTH_MIN))
  const keys = Object.keys(patch).filter((key) => {
    const { [key]: value = null } = patch
    return canonicalJson(redaction.redactJson(value)) !== canonicalJson(value)
  })
  if (keys.length === 0) return
  const advice =
    'the context is shown to its readers: read the credential where it is sent, as {{oauth.token.access_token}}'
  throw new Failure('DEFINITION_INVALID', `update_context would store a credential as ${keys.join(', ')}; ${advice}`)
}

function failedAction(error: unknown): ActionOutcome {
  if (!(error instanceof Failure)) throw error
  return { kind: 'failed', failure: error }
}

/** Length limit of the error in a step report. */
const STEP_ERROR_LENGTH_MAX = 500

function stepResult(
  { name, type }: StepPlan,
  outcome: ActionOutcome,
  startedAt: Date,
  endedAt: Date,
): ActionStepResult {
  const status = type === 'request' && outcome.kind !== 'failed' ? outcome.status : undefined
  const error = outcome.kind === 'ok' ? undefined : describeFailure(outcome).slice(0, STEP_ERROR_LENGTH_MAX)
  const durationMs = endedAt.getTime() - startedAt.getTime()
  return { name, type, ok: outcome.kind === 'ok', status, startedAt, durationMs, error }
}

function describeFailure(outcome: Exclude<ActionOutcome, { readonly kind: 'ok' }>): string {
  switch (outcome.kind) {
    case 'rate_limited':
      return `the upstream asks to wait ${outcome.retryAfterSeconds} seconds`
    case 'upstream_error':
      return `the upstream answered ${outcome.status}: ${outcome.message}`
    case 'failed':
      return outcome.failure.publicMessage
  }
}
