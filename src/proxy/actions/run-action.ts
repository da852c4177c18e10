import { Failure } from '../../base/index.ts'
import type { ActionPlan, Plan, StepPlan } from '../../definition/index.ts'
import type { CallDependencies } from '../dependencies.ts'
import { createRedaction, redactFailure, tokensIn } from '../redaction.ts'
import type { AccountAccess } from '../request.ts'
import type { ActionOutcome, ActionRequest, ActionRun, ActionStepResult } from './action-run.ts'
import { findAction } from './find-action.ts'
import { scopedRefresher, withContextPatch } from './keeper-within.ts'
import { type ActionState, computedOutcome, runStep, shouldRunStep } from './run-step.ts'
import { stepResult } from './step-result.ts'

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
