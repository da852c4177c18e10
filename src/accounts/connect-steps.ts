import { assertNever, Failure, type FailureReason, isJsonObject } from '../base/index.ts'
import type { ActionEnd, ActionRequest, Proxy as Engine, StepResult } from '../proxy/index.ts'
import type { AccountRef } from '../storage/index.ts'
import { connectPlanOf, type ReadyAccount, type ReadyDeps, readyAccess } from './ready-account.ts'
import type { Phase } from './step-results.ts'

/** What running the steps of an account needs. */
export interface ConnectStepsDeps extends ReadyDeps {
  readonly proxy: Pick<Engine, 'runAction'>
}

/** What came of a phase. */
type Verdict =
  | { readonly kind: 'passed' }
  /** The third party, or the definition, said no. */
  | { readonly kind: 'refused'; readonly error: string }
  /** Nothing is known: it did not answer, or asked to wait. */
  | { readonly kind: 'unknown'; readonly error: string; readonly afterMs: number | undefined }
  /** There is nothing to find out just now, and nobody to blame. */
  | { readonly kind: 'postponed'; readonly error: string; readonly afterMs: number }

/** A phase that ended. */
export interface PhaseEnd {
  readonly phase: Phase
  readonly verdict: Verdict
  readonly steps: readonly StepResult[]
}

type Target = ActionRequest['target']

/** Failures that are nobody's verdict about the account. */
const PASSING: ReadonlySet<FailureReason> = new Set<FailureReason>([
  ...(['UPSTREAM_UNREACHABLE', 'UPSTREAM_INVALID_RESPONSE', 'DEADLINE_EXCEEDED', 'CANCELLED'] as const),
  ...(['TOKEN_REQUEST_FAILED', 'RATE_LIMITED', 'DATABASE_UNAVAILABLE', 'SHUTTING_DOWN'] as const),
])

/** How long an account of a disabled installation is left alone. */
const DISABLED_MS = 60_000

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
export async function* runConnectSteps(
  deps: ConnectStepsDeps,
  account: AccountRef,
  signal: AbortSignal,
): AsyncGenerator<PhaseEnd, void, void> {
  for (const { phase, targetsOf } of PHASES) {
    const ready = await load(deps, account)
    if (!('account' in ready)) return yield ready
    const targets = targetsOf(ready)
    if (targets.length === 0) continue
    const end = await runPhase(deps, ready, phase, targets, signal)
    yield end
    if (end.verdict.kind !== 'passed') return
  }
}

const PHASES: readonly { readonly phase: Phase; targetsOf(ready: ReadyAccount): readonly Target[] }[] = [
  { phase: 'post_install', targetsOf: installTargets },
  { phase: 'validation', targetsOf: proofTargets },
]

function installTargets({ plan, account }: ReadyAccount): Target[] {
  const done = account.lastActionResult.post_install
  const isDone = Array.isArray(done) && done.every((step) => isJsonObject(step) && step.ok === true)
  return plan.actions.has('post_install') && !isDone ? [{ kind: 'action', action: 'post_install' }] : []
}

function proofTargets(ready: ReadyAccount): Target[] {
  const connect = connectPlanOf(ready)
  return [
    ...(connect?.verification === undefined ? [] : [{ kind: 'verification', format: connect.format } as const]),
    ...(ready.plan.actions.has('validation') ? [{ kind: 'action', action: 'validation' } as const] : []),
  ]
}

async function runPhase(
  deps: ConnectStepsDeps,
  { plan, access }: ReadyAccount,
  phase: Phase,
  targets: readonly Target[],
  signal: AbortSignal,
): Promise<PhaseEnd> {
  const steps: StepResult[] = []
  for (const target of targets) {
    const run = await caught(() => deps.proxy.runAction(plan, access, { target, signal, limits: STEP_LIMITS }))
    if (run instanceof Failure) return { phase, verdict: verdictOfFailure(run, phase), steps }
    steps.push(...run.steps)
    const verdict = verdictOf(run.end, phase, run.steps.at(-1))
    if (verdict.kind !== 'passed') return { phase, verdict, steps }
  }
  return { phase, verdict: { kind: 'passed' }, steps }
}

/** The account with a token; without one there is nothing to prove, so that a token that is refused is a failed proof. */
async function load(deps: ConnectStepsDeps, { environmentId, id }: AccountRef): Promise<ReadyAccount | PhaseEnd> {
  const ready = await caught(() => readyAccess(deps, environmentId, id, 'connect'))
  if (!(ready instanceof Failure)) return ready
  return { phase: 'validation', verdict: verdictOfFailure(ready, 'validation'), steps: [] }
}

async function caught<Result>(work: () => Promise<Result>): Promise<Result | Failure> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

function verdictOf(end: ActionEnd, phase: Phase, last: StepResult | undefined): Verdict {
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
      return verdictOfFailure(end.failure, phase, last?.error === undefined ? undefined : error)
    default:
      return assertNever(end)
  }
}

function verdictOfFailure(failure: Failure, phase: Phase, error?: string): Verdict {
  const { reason, publicMessage, retryAfterSeconds } = failure
  if (reason === 'INTEGRATION_DISABLED') return { kind: 'postponed', error: publicMessage, afterMs: DISABLED_MS }
  const text = error ?? `${phase} failed: ${publicMessage}`
  if (!PASSING.has(reason)) return { kind: 'refused', error: text }
  return {
    kind: 'unknown',
    error: text,
    afterMs: retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1_000,
  }
}
