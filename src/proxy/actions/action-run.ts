import type { Failure } from '../../base/index.ts'
import type { StepPlan } from '../../definition/index.ts'
import type { CallOutcome } from '../outcome.ts'
import type { CallTarget, ProxyRequest } from '../request.ts'

/** What is run step by step. The proof of a credential is an action of one step, which is called `verification`. */
export type ActionTarget = Extract<CallTarget, { readonly kind: 'action' | 'verification' }>

/** A call in steps. Headers and page of the caller do not take part. */
export type ActionRequest = ProxyRequest & { readonly target: ActionTarget }

/** A caller's call of a named action. */
export type NamedActionRequest = ProxyRequest & { readonly target: Extract<CallTarget, { readonly kind: 'action' }> }

export function isActionRequest(request: ProxyRequest): request is NamedActionRequest {
  return request.target.kind === 'action'
}

/** What an action came to. */
export interface ActionRun {
  readonly outcome: ActionOutcome
  /** The steps that ran, in order; those that `run_if` skipped left no trace. */
  readonly steps: readonly ActionStepResult[]
}

/**
 * How it ended: as the last step that ran, or as the first that failed.
 *
 * The `result` of `ok` is that of the last step, `null` when none ran; status, headers and body are those of the upstream
 * only when the last step is a request.
 */
export type ActionOutcome = CallOutcome | { readonly kind: 'refused'; readonly failure: Failure }

/** One step as it is reported; says nothing of what was sent or received but the status. */
export interface ActionStepResult {
  readonly name: string
  readonly type: StepPlan['type']
  readonly ok: boolean
  /** Of the upstream, for requests that were answered. */
  readonly status: number | undefined
  readonly startedAt: Date
  readonly durationMs: number
  /** Present when it failed; credentials and results of earlier steps are masked in it. */
  readonly error: string | undefined
}
