import type { ActionOutcome, ActionRequest, ActionStepResult } from '../../engine/proxy/index.ts'
import { assertNever, type Failure, isTransient } from '../../foundation/base/index.ts'
import type { ActivationChange } from './dependencies.ts'

/** The phases of an activation, and the keys of `last_action_result`. */
export type ActivationPhase = 'post_install' | 'validation'

/** The third party or the definition rejects the account. */
export interface ActivationError {
  readonly kind: 'failed'
  readonly error: string
  readonly code: Extract<ActivationChange, { readonly kind: 'failed' }>['code']
  /** What the third party said, in its own words; absent: `error` tells it. */
  readonly said?: string | undefined
}

/** How a phase ended. */
export type PhaseOutcome =
  | { readonly kind: 'passed' }
  | ActivationError
  /** A transient error: no response, or a rate limit. */
  | { readonly kind: 'inconclusive'; readonly error: string; readonly retryAfterMs: number | undefined }
  /** The customer has to choose first; it counts as no attempt. */
  | { readonly kind: 'choice'; readonly error: string; readonly fields: readonly string[] }
  /** The installation is disabled: the account cannot be checked, which counts as no attempt. */
  | { readonly kind: 'postponed'; readonly error: string; readonly retryAfterMs: number }

/** A phase with its outcome, and the steps that ran. */
export interface PhaseResult {
  readonly phase: ActivationPhase
  readonly outcome: PhaseOutcome
  readonly steps: readonly ActionStepResult[]
}

/** The action of the definition that a phase runs. */
export type ActivationTarget = ActionRequest['target']

/** Delay before the next look at an account of a disabled installation. */
const DISABLED_RETRY_MS = 60_000

/** Each request of a step is sent once: the whole activation is retried, and its error shown meanwhile. */
export const STEP_LIMITS = { attemptsMax: 1, timeoutMs: 15_000 } as const

const UNAUTHORIZED = 401
const FORBIDDEN = 403

/** What an action of a phase says about the account. @param last the step that ran last */
export function outcomeOfAction(
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

/** What a failure of a phase says. @param error redacted; absent: the message of the failure */
export function outcomeOfFailure(failure: Failure, phase: ActivationPhase, error?: string): PhaseOutcome {
  const { reason, publicMessage, retryAfterSeconds } = failure
  if (reason === 'INTEGRATION_DISABLED')
    return { kind: 'postponed', error: publicMessage, retryAfterMs: DISABLED_RETRY_MS }
  const text = error ?? `${phase} failed: ${publicMessage}`
  const { provider_message: said } = failure.metadata
  if (!isTransient(failure)) return { kind: 'failed', error: text, code: codeOfFailure(reason, phase), said }
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
