import type { StepPlan } from '../../definition/index.ts'
import type { ActionOutcome, ActionStepResult } from './action-run.ts'

/** Longest error of a step that is kept. */
const STEP_ERROR_LENGTH_MAX = 500

/** The report of a step that ran. */
export function stepResult(
  { name, type }: StepPlan,
  end: ActionOutcome,
  startedAt: Date,
  endedAt: Date,
): ActionStepResult {
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
