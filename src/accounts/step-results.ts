import type { JsonObject } from '../base/index.ts'
import type { StepResult } from '../proxy/index.ts'

/** Which steps of connecting an account: what prepares it, and what proves it. The keys of `last_action_result`. */
export type Phase = 'post_install' | 'validation'

/** What `last_action_result` keeps of a phase: a list of `{name, type, ok, status?, started_at, duration_ms, error?}`. */
export function writeResults(phase: Phase, steps: readonly StepResult[]): JsonObject {
  return { [phase]: steps.map(writeStep) }
}

function writeStep({ name, type, ok, status, startedAt, durationMs, error }: StepResult): JsonObject {
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
