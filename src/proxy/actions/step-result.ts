import type { StepPlan } from '../../definition/index.ts'
import type { ActionEnd, StepResult } from './action-run.ts'

/** Longest error of a step that is kept. */
const ERROR_LENGTH_MAX = 500

/** The report of a step that ran. */
export function stepResult({ name, type }: StepPlan, end: ActionEnd, startedAt: Date, endedAt: Date): StepResult {
  const status = type === 'request' && end.kind !== 'refused' ? end.status : undefined
  const error = end.kind === 'ok' ? undefined : describe(end).slice(0, ERROR_LENGTH_MAX)
  const durationMs = endedAt.getTime() - startedAt.getTime()
  return { name, type, ok: end.kind === 'ok', status, startedAt, durationMs, error }
}

function describe(end: Exclude<ActionEnd, { readonly kind: 'ok' }>): string {
  switch (end.kind) {
    case 'rate_limited':
      return `the upstream asks to wait ${end.retryAfterSeconds} seconds`
    case 'upstream_error':
      return `the upstream answered ${end.status}: ${end.message}`
    case 'refused':
      return end.failure.publicMessage
  }
}
