import { assertNever, Failure, type FailureReason, isJsonObject, type JsonObject } from '../base/index.ts'
import type { ActionOutcome, ActionRequest, ActionStepResult, Proxy as Engine } from '../proxy/index.ts'
import { connectPlanOf, type LoadAccountDeps, loadAccountForCall, type ResolvedAccount } from './load-account.ts'
import type { AccountRef } from './sql/activation.ts'

/** What running the steps of an account needs. */
export interface ActivationStepsDeps extends LoadAccountDeps {
  readonly proxy: Pick<Engine, 'runAction'>
}

/** What came of a phase. */
type PhaseOutcome =
  | { readonly kind: 'passed' }
  /** The third party, or the definition, said no. */
  | { readonly kind: 'refused'; readonly error: string }
  /** Nothing is known: it did not answer, or asked to wait. */
  | { readonly kind: 'unknown'; readonly error: string; readonly afterMs: number | undefined }
  /** There is nothing to find out just now, and nobody to blame. */
  | { readonly kind: 'postponed'; readonly error: string; readonly afterMs: number }

/** A phase that ended. */
export interface PhaseResult {
  readonly phase: ActivationPhase
  readonly outcome: PhaseOutcome
  readonly steps: readonly ActionStepResult[]
}

type ActivationTarget = ActionRequest['target']

/** Failures that are nobody's verdict about the account. */
const TRANSIENT_REASONS: ReadonlySet<FailureReason> = new Set<FailureReason>([
  ...(['UPSTREAM_UNREACHABLE', 'UPSTREAM_INVALID_RESPONSE', 'DEADLINE_EXCEEDED', 'CANCELLED'] as const),
  ...(['TOKEN_REQUEST_FAILED', 'RATE_LIMITED', 'DATABASE_UNAVAILABLE', 'SHUTTING_DOWN'] as const),
])

/** How long an account of a disabled installation is left alone. */
const DISABLED_RETRY_MS = 60_000

/** A request of a step is sent once and waited for so long: the connector tries the account again, and shows why. */
const STEP_LIMITS = { attemptsMax: 1, timeoutMs: 15_000 } as const

/**
 * Runs the steps of a connecting account, phase by phase, until one does not pass: `post_install`, unless its result is
 * stored already; then the verification request of its credentials and `validation`. A phase that the definition has no
 * steps for does not come up: when all that came have passed, the account works. No request is repeated within a try.
 *
 * A phase is handed over before the next one begins, so that it can be stored. What `post_install` changed of the context is
 * there for what follows. Calls are made outside of transactions.
 */
export async function* runActivationSteps(
  deps: ActivationStepsDeps,
  account: AccountRef,
  signal: AbortSignal,
): AsyncGenerator<PhaseResult, void, void> {
  for (const { phase, targetsOf } of PHASES) {
    const ready = await loadForActivation(deps, account)
    if (!('account' in ready)) return yield ready
    const targets = targetsOf(ready)
    if (targets.length === 0) continue
    const end = await runPhase(deps, ready, phase, targets, signal)
    yield end
    if (end.outcome.kind !== 'passed') return
  }
}

const PHASES: readonly {
  readonly phase: ActivationPhase
  targetsOf(ready: ResolvedAccount): readonly ActivationTarget[]
}[] = [
  { phase: 'post_install', targetsOf: postInstallTargets },
  { phase: 'validation', targetsOf: validationTargets },
]

function postInstallTargets({ plan, account }: ResolvedAccount): ActivationTarget[] {
  const done = account.lastActionResult.post_install
  const isDone = Array.isArray(done) && done.every((step) => isJsonObject(step) && step.ok === true)
  return plan.actions.has('post_install') && !isDone ? [{ kind: 'action', action: 'post_install' }] : []
}

function validationTargets(ready: ResolvedAccount): ActivationTarget[] {
  const connect = connectPlanOf(ready)
  return [
    ...(connect?.verification === undefined ? [] : [{ kind: 'verification', format: connect.format } as const]),
    ...(ready.plan.actions.has('validation') ? [{ kind: 'action', action: 'validation' } as const] : []),
  ]
}

async function runPhase(
  deps: ActivationStepsDeps,
  { plan, access }: ResolvedAccount,
  phase: ActivationPhase,
  targets: readonly ActivationTarget[],
  signal: AbortSignal,
): Promise<PhaseResult> {
  const steps: ActionStepResult[] = []
  for (const target of targets) {
    const run = await catchFailure(() => deps.proxy.runAction(plan, access, { target, signal, limits: STEP_LIMITS }))
    if (run instanceof Failure) return { phase, outcome: outcomeOfFailure(run, phase), steps }
    steps.push(...run.steps)
    const verdict = outcomeOfAction(run.outcome, phase, run.steps.at(-1))
    if (verdict.kind !== 'passed') return { phase, outcome: verdict, steps }
  }
  return { phase, outcome: { kind: 'passed' }, steps }
}

/** The account with a token; without one there is nothing to prove, so that a token that is refused is a failed proof. */
async function loadForActivation(
  deps: ActivationStepsDeps,
  { environmentId, id }: AccountRef,
): Promise<ResolvedAccount | PhaseResult> {
  const ready = await catchFailure(() => loadAccountForCall(deps, environmentId, id, 'connect'))
  if (!(ready instanceof Failure)) return ready
  return { phase: 'validation', outcome: outcomeOfFailure(ready, 'validation'), steps: [] }
}

async function catchFailure<Result>(work: () => Promise<Result>): Promise<Result | Failure> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

function outcomeOfAction(end: ActionOutcome, phase: ActivationPhase, last: ActionStepResult | undefined): PhaseOutcome {
  const error = last?.error === undefined ? `${phase} failed` : `${phase} failed at ${last.name}: ${last.error}`
  switch (end.kind) {
    case 'ok':
      return { kind: 'passed' }
    case 'rate_limited':
      return { kind: 'unknown', error, afterMs: end.retryAfterSeconds * 1_000 }
    case 'upstream_error':
      return end.action === 'retry' ? { kind: 'unknown', error, afterMs: undefined } : { kind: 'refused', error }
    case 'refused':
      // The step has the message without secrets; what has no step failed after the last of them.
      return outcomeOfFailure(end.failure, phase, last?.error === undefined ? undefined : error)
    default:
      return assertNever(end)
  }
}

function outcomeOfFailure(failure: Failure, phase: ActivationPhase, error?: string): PhaseOutcome {
  const { reason, publicMessage, retryAfterSeconds } = failure
  if (reason === 'INTEGRATION_DISABLED') return { kind: 'postponed', error: publicMessage, afterMs: DISABLED_RETRY_MS }
  const text = error ?? `${phase} failed: ${publicMessage}`
  if (!TRANSIENT_REASONS.has(reason)) return { kind: 'refused', error: text }
  return {
    kind: 'unknown',
    error: text,
    afterMs: retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1_000,
  }
}

/** Which steps of connecting an account: what prepares it, and what proves it. The keys of `last_action_result`. */
export type ActivationPhase = 'post_install' | 'validation'

/** What `last_action_result` keeps of a phase: a list of `{name, type, ok, status?, started_at, duration_ms, error?}`. */
export function phaseResultJson(phase: ActivationPhase, steps: readonly ActionStepResult[]): JsonObject {
  return { [phase]: steps.map(stepResultJson) }
}

function stepResultJson({ name, type, ok, status, startedAt, durationMs, error }: ActionStepResult): JsonObject {
  return {
    name,
    type,
    ok,
    ...(status === undefined ? {} : { status }),
    started_at: startedAt.toISOString(),
    duration_ms: durationMs,
    ...(error === undefined ? {} : { error }),
  }
}
