import type { ActionStepResult, ApiProxy } from '../../engine/proxy/index.ts'
import { catchFailure, Failure } from '../../foundation/base/index.ts'
import { isJsonObject, type JsonObject } from '../../foundation/json/index.ts'
import type { Lease } from '../../foundation/queue/index.ts'
import {
  type ActivationPhase,
  type ActivationTarget,
  outcomeOfAction,
  outcomeOfFailure,
  type PhaseOutcome,
  type PhaseResult,
  STEP_LIMITS,
} from './activation-outcome.ts'
import { checkIdentity, checkIdentityInContext } from './check-identity.ts'
import type { AccountDependencies } from './dependencies.ts'
import { listOpenChoices } from './due-fields.ts'
import { loadAccountForCall } from './load-account.ts'
import { connectPlanOf, type ResolvedAccount } from './resolved-account.ts'
import type { Activation } from './sql/activation.ts'
import type { AccountRef } from './sql/integrated-account.ts'

/** What activating accounts takes. */
export type ActivationDependencies = Pick<
  AccountDependencies,
  | 'database'
  | 'reader'
  | 'secrets'
  | 'definitions'
  | 'evaluator'
  | 'contextValues'
  | 'tokens'
  | 'linkSessions'
  | 'subscriptions'
  | 'random'
> & { readonly proxy: Pick<ApiProxy, 'runAction'> }

/**
 * Runs the phases of a connecting account until one does not pass. First its identity is compared, where the definition says
 * how: an account of another company at the third party is not prepared. Then `post_install`, unless its result is stored already; then
 * `validation`, once the customer has made the choices that it waits for: the verification request of its credentials and the action
 * of that name. Phases without steps in the definition are left out: when all that are yielded have passed, the account works.
 *
 * A result is yielded before the next phase begins, so that it can be stored. The account is loaded again for each phase, with
 * the context that `post_install` changed. Requests are sent outside of transactions.
 */
export async function* runActivationSteps(
  deps: ActivationDependencies,
  lease: Lease<Activation>,
  signal: AbortSignal,
): AsyncGenerator<PhaseResult, void, void> {
  const connected = await loadForActivation(deps, lease)
  if (!('account' in connected)) return yield connected
  const mismatch = await checkIdentity(deps, connected, lease, signal)
  if (mismatch !== undefined) return yield mismatch
  for (const { phase, targetsOf } of PHASES) {
    const resolved = await loadForActivation(deps, lease)
    if (!('account' in resolved)) return yield resolved
    const choice = phase === 'validation' ? await choiceOutcome(deps, resolved) : undefined
    if (choice !== undefined) return yield { phase, outcome: choice, steps: [] }
    const targets = targetsOf(resolved)
    if (targets.length === 0) continue
    const result = await runPhase(deps, resolved, { phase, targets, leaseId: lease.leaseId }, signal)
    yield result
    if (result.outcome.kind !== 'passed') return
  }
  const active = await loadForActivation(deps, lease)
  if (!('account' in active)) return yield active
  const other = await checkIdentityInContext(deps, active, lease)
  if (other !== undefined) yield other
}

/** The choices of the customer that an account waits for, whether or not its definition validates it. */
async function choiceOutcome(
  deps: Pick<ActivationDependencies, 'evaluator'>,
  resolved: ResolvedAccount,
): Promise<PhaseOutcome | undefined> {
  const open = await catchFailure(() => listOpenChoices(deps, resolved))
  if (open instanceof Failure) return outcomeOfFailure(open, 'validation')
  if (open.length === 0) return undefined
  const names = open.map(({ name, label }) => `${label} (${name})`).join(', ')
  return { kind: 'choice', error: `waits for the customer's choice: ${names}`, fields: open.map(({ name }) => name) }
}

const PHASES: readonly {
  readonly phase: ActivationPhase
  targetsOf(resolved: ResolvedAccount): readonly ActivationTarget[]
}[] = [
  { phase: 'post_install', targetsOf: postInstallTargets },
  { phase: 'validation', targetsOf: validationTargets },
]

function postInstallTargets({ plan, account }: ResolvedAccount): ActivationTarget[] {
  const done = account.lastActionResult.post_install
  const isDone = Array.isArray(done) && done.every((step) => isJsonObject(step) && step.ok === true)
  return plan.actions.has('post_install') && !isDone ? [{ kind: 'action', action: 'post_install' }] : []
}

function validationTargets(resolved: ResolvedAccount): ActivationTarget[] {
  const connect = connectPlanOf(resolved)
  return [
    ...(connect?.verification === undefined ? [] : [{ kind: 'verification', credential: connect.key } as const]),
    ...(resolved.plan.actions.has('validation') ? [{ kind: 'action', action: 'validation' } as const] : []),
  ]
}

async function runPhase(
  deps: Pick<ActivationDependencies, 'proxy'>,
  { plan, access }: ResolvedAccount,
  {
    phase,
    targets,
    leaseId,
  }: {
    readonly phase: ActivationPhase
    readonly targets: readonly ActivationTarget[]
    /** Of the activation, without which the phase changes no context. */
    readonly leaseId: string
  },
  signal: AbortSignal,
): Promise<PhaseResult> {
  const steps: ActionStepResult[] = []
  for (const target of targets) {
    const request = { target, leaseId, signal, limits: STEP_LIMITS }
    const run = await catchFailure(() => deps.proxy.runAction(plan, access, request))
    if (run instanceof Failure) return { phase, outcome: outcomeOfFailure(run, phase), steps }
    steps.push(...run.steps)
    const outcome = outcomeOfAction(run.outcome, { phase, target }, run.steps.at(-1))
    if (outcome.kind !== 'passed') return { phase, outcome, steps }
  }
  return { phase, outcome: { kind: 'passed' }, steps }
}

/** The account with a token; a rejected token request is a failed validation. */
async function loadForActivation(
  deps: ActivationDependencies,
  { environmentId, id }: AccountRef,
): Promise<ResolvedAccount | PhaseResult> {
  const startedAt = new Date()
  const loaded = await catchFailure(() => loadAccountForCall(deps, environmentId, id, 'activation'))
  if (!(loaded instanceof Failure)) return loaded
  return { phase: 'validation', outcome: outcomeOfFailure(loaded, 'validation'), steps: tokenStep(loaded, startedAt) }
}

/** The rejected request for a token as a step, where one was sent. */
function tokenStep({ publicMessage, metadata }: Failure, startedAt: Date): readonly ActionStepResult[] {
  const { log_id: logId } = metadata
  if (logId === undefined) return []
  const durationMs = Date.now() - startedAt.getTime()
  const result = { ok: false, status: undefined, startedAt, durationMs, error: publicMessage, logId }
  return [{ name: 'token', type: 'request', ...result }]
}

/** The part of `last_action_result` for a phase: a list of `{name, type, ok, status?, started_at, duration_ms, error?, log_id?}`. */
export function phaseResultJson(phase: ActivationPhase, steps: readonly ActionStepResult[]): JsonObject {
  return { [phase]: steps.map(stepResultJson) }
}

function stepResultJson({ name, type, ok, status, startedAt, durationMs, error, logId }: ActionStepResult): JsonObject {
  return {
    name,
    type,
    ok,
    ...(status === undefined ? {} : { status }),
    started_at: startedAt.toISOString(),
    duration_ms: durationMs,
    ...(error === undefined ? {} : { error }),
    ...(logId === undefined ? {} : { log_id: logId }),
  }
}
