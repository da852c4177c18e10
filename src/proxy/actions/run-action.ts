import { Failure } from '../../base/index.ts'
import type { ActionPlan, Plan, StepPlan } from '../../definition/index.ts'
import type { CallDependencies } from '../dependencies.ts'
import { redactFailure, redactionOf, tokensIn } from '../redaction.ts'
import type { AccountAccess } from '../request.ts'
import type { ActionEnd, ActionRequest, ActionRun, StepResult } from './action-run.ts'
import { findAction } from './find-action.ts'
import { keeperWithin, withContext } from './keeper-within.ts'
import { computed, isWanted, type RunningContext, runStep } from './run-step.ts'
import { stepResult } from './step-result.ts'

/** How far an action has come. */
interface Progress {
  readonly end: ActionEnd
  readonly running: RunningContext
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
  const steps: StepResult[] = []
  let progress: Progress = {
    end: computed(null),
    running: { access: account, previous: undefined, steps: {}, patch: {} },
  }
  for (const step of action.steps) {
    const startedAt = deps.clock.now()
    const advanced = await advance(within(deps, action, progress.running), step, request, progress.running)
    if (advanced === undefined) continue
    progress = advanced
    steps.push(stepResult(step, progress.end, startedAt, deps.clock.now()))
    if (progress.end.kind !== 'ok') return { end: progress.end, steps }
  }
  return { end: await keepContext(deps, plan, progress), steps }
}

/** Runs the next step; `undefined` when it is to be skipped. */
async function advance(
  deps: CallDependencies,
  step: StepPlan,
  request: ActionRequest,
  running: RunningContext,
): Promise<Progress | undefined> {
  // A third party may quote what an earlier step was given, a session for instance.
  deps.redaction.learn('steps', () => tokensIn(running.steps))
  try {
    if (!(await isWanted(deps, step, request, running))) return undefined
    const { outcome, access, patch } = await runStep(deps, step, request, running)
    if (outcome.kind !== 'ok') return { end: outcome, running: { ...running, access } }
    const next: RunningContext = {
      access: withContext(access, patch),
      previous: outcome.result,
      steps: { ...running.steps, [step.name]: outcome.result },
      patch: { ...running.patch, ...patch },
    }
    return { end: outcome, running: next }
  } catch (error) {
    return { end: refused(redactFailure(deps.redaction, error)), running }
  }
}

/** Anybody may read the context: where a third party repeated a credential the mask is kept. */
async function keepContext({ keeper }: CallDependencies, plan: Plan, { end, running }: Progress): Promise<ActionEnd> {
  if (Object.keys(running.patch).length === 0) return end
  try {
    await keeper?.updateContext(running.access, redactionOf(plan, running.access).object(running.patch))
    return end
  } catch (error) {
    return refused(error)
  }
}

function refused(error: unknown): ActionEnd {
  if (!(error instanceof Failure)) throw error
  return { kind: 'refused', failure: error }
}

function within(deps: CallDependencies, { name }: ActionPlan, { patch }: RunningContext): CallDependencies {
  return deps.keeper === undefined ? deps : { ...deps, keeper: keeperWithin(deps.keeper, name, patch) }
}
