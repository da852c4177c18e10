import { assertNever, Failure, isJsonObject, isTransient, type JsonObject } from '../base/index.ts'
import type { ActionOutcome, ActionRequest, ActionStepResult, ApiProxy } from '../proxy/index.ts'
import type { AccountDependencies, ActivationChange } from './dependencies.ts'
import { loadAccountForCall } from './load-account.ts'
import { connectPlanOf, type ResolvedAccount } from './resolved-account.ts'
import type { AccountRef } from './sql/integrated-account.ts'

/** What activating accounts takes. */
export type ActivationDependencies = Pick<
  AccountDependencies,
  'database' | 'reader' | 'secrets' | 'definitions' | 'contextValues' | 'tokens' | 'linkSessions' | 'random'
> & { readonly proxy: Pick<ApiProxy, 'runAction'> }

/** The phases of an activation, and the keys of `last_action_result`. */
export type ActivationPhase = 'post_install' | 'validation'

/** The third party or the definition rejects the account. */
export interface ActivationError {
  readonly kind: 'failed'
  readonly error: string
  readonly code: Extract<ActivationChange, { readonly kind: 'failed' }>['code']
}

type PhaseOutcome =
  | { readonly kind: 'passed' }
  | ActivationError
  /** A transient error: no response, or a rate limit. */
  | { readonly kind: 'inconclusive'; readonly error: string; readonly retryAfterMs: number | undefined }
  /** The installation is disabled: the account cannot be checked, which counts as no attempt. */
  | { readonly kind: 'postponed'; readonly error: string; readonly retryAfterMs: number }

/** A phase with its outcome, and the steps that ran. */
export interface PhaseResult {
  readonly phase: ActivationPhase
  readonly outcome: PhaseOutcome
  readonly steps: readonly ActionStepResult[]
}

type ActivationTarget = ActionRequest['target']

/** Delay before the next look at an account of a disabled installation. */
const DISABLED_RETRY_MS = 60_000

/** Each request of a step is sent once: the whole activation is retried, and its error shown meanwhile. */
const STEP_LIMITS = { attemptsMax: 1, timeoutMs: 15_000 } as const

/**
 * Runs the phases of a connecting account until one does not pass: `post_install`, unless its result is stored already; then
 * `validation`, which is the verification request of its credentials and the action of that name. Phases without steps in the
 * definition are left out: when all that are yielded have passed, the account works.
 *
 * A result is yielded before the next phase begins, so that it can be stored. The account is loaded again for each phase, with
 * the context that `post_install` changed. Requests are sent outside of transactions.
 */
export async function* runActivationSteps(
  deps: ActivationDependencies,
  account: AccountRef,
  signal: AbortSignal,
): AsyncGenerator<PhaseResult, void, void> {
  for (const { phase, targetsOf } of PHASES) {
    const resolved = await loadForActivation(deps, account)
    if (!('account' in resolved)) return yield resolved
    const targets = targetsOf(resolved)
    if (targets.length === 0) continue
    const result = await runPhase(deps, resolved, phase, targets, signal)
    yield result
    if (result.outcome.kind !== 'passed') return
  }
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
    ...(connect?.verification === undefined ? [] : [{ kind: 'verification', format: connect.format } as const]),
    ...(resolved.plan.actions.has('validation') ? [{ kind: 'action', action: 'validation' } as const] : []),
  ]
}

async function runPhase(
  deps: Pick<ActivationDependencies, 'proxy'>,
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
  const loaded = await catchFailure(() => loadAccountForCall(deps, environmentId, id, 'activation'))
  if (!(loaded instanceof Failure)) return loaded
  return { phase: 'validation', outcome: outcomeOfFailure(loaded, 'validation'), steps: [] }
}

async function catchFailure<Result>(work: () => Promise<Result>): Promise<Result | Failure> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

const UNAUTHORIZED = 401
const FORBIDDEN = 403

function outcomeOfAction(
  action: ActionOutcome,
  { phase, target }: { readonly phase: ActivationPhase; readonly target: ActivationTarget },
  last: ActionStepResult | undefined,
): PhaseOutcome {
  const error = last?.error === undefined ? `${phase} failed` : `${phase} failed at ${last.name}: ${last.error}`
  switch (action.kind) {
    case 'ok':
      return { kind: 'passed' }
    case 'rate_limited':
      return { kind: 'inconclusive', error, retryAfterMs: action.retryAfterSeconds * 1_000 }
    case 'upstream_error':
      return action.action === 'retry'
        ? { kind: 'inconclusive', error, retryAfterMs: undefined }
        : {
            kind: 'failed',
            error,
            code: isRejection(action.status, target) ? 'credentials_rejected' : ERROR_CODE[phase],
          }
    case 'failed':
      // The message of the step is redacted. Without one the action failed after its last step.
      return outcomeOfFailure(action.failure, phase, last?.error === undefined ? undefined : error)
    default:
      return assertNever(action)
  }
}

/** Whether a status says that the credentials are wrong: 401, and of the request that verifies them 403. */
function isRejection(status: number, { kind }: ActivationTarget): boolean {
  return status === UNAUTHORIZED || (kind === 'verification' && status === FORBIDDEN)
}

const ERROR_CODE = { post_install: 'post_install_error', validation: 'validation_error' } as const

function outcomeOfFailure(failure: Failure, phase: ActivationPhase, error?: string): PhaseOutcome {
  const { reason, publicMessage, retryAfterSeconds } = failure
  if (reason === 'INTEGRATION_DISABLED')
    return { kind: 'postponed', error: publicMessage, retryAfterMs: DISABLED_RETRY_MS }
  const text = error ?? `${phase} failed: ${publicMessage}`
  if (!isTransient(failure)) return { kind: 'failed', error: text, code: codeOfFailure(reason, phase) }
  return {
    kind: 'inconclusive',
    error: text,
    retryAfterMs: retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1_000,
  }
}

function codeOfFailure(reason: Failure['reason'], phase: ActivationPhase): ActivationError['code'] {
  if (reason === 'CREDENTIALS_INVALID') return 'credentials_rejected'
  return ERROR_CODE[phase]
}

/** The part of `last_action_result` for a phase: a list of `{name, type, ok, status?, started_at, duration_ms, error?}`. */
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
