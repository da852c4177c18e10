import type { JsonObject } from '../base/index.ts'
import type { ActionStepResult } from '../proxy/index.ts'

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
