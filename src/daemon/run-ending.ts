import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  CompleteRunRequestSchema,
  FailRunRequestSchema,
  ReleaseRunRequestSchema,
} from '../../gen/patchbay/v1/daemon_service_pb.ts'
import { assertNever } from '../base/index.ts'
import type { RunOutcome } from '../queue/index.ts'

/** What of an ending does not depend on who holds the run. */
type SettlementRequest<
  Schema extends typeof CompleteRunRequestSchema | typeof FailRunRequestSchema | typeof ReleaseRunRequestSchema,
> = Omit<MessageInitShape<Schema>, '$typeName' | '$unknown' | 'runId' | 'leaseId'>

/** The call that tells the service how a run ended. */
export type SettlementCall =
  | { readonly call: 'completeRun'; readonly request: SettlementRequest<typeof CompleteRunRequestSchema> }
  | { readonly call: 'failRun'; readonly request: SettlementRequest<typeof FailRunRequestSchema> }
  | { readonly call: 'releaseRun'; readonly request: SettlementRequest<typeof ReleaseRunRequestSchema> }

/** Bounds of the contract. */
const MESSAGE_LENGTH_MAX = 8_192
const WAIT_SECONDS_MAX = 86_400

/**
 * How the service is told. Checkpoint and counters were reported before; by these the service knows whether all was read. A run that was stopped is handed back: the service
 * knows whether it is to go on elsewhere.
 */
export function settlementCallFor(outcome: RunOutcome): SettlementCall {
  switch (outcome.kind) {
    case 'completed':
    case 'partially_completed':
      return { call: 'completeRun', request: {} }
    case 'stopped':
      return { call: 'releaseRun', request: {} }
    case 'rate_limited':
      return { call: 'releaseRun', request: { waitSeconds: secondsOf(outcome.afterMs) } }
    case 'failed':
      return { call: 'failRun', request: { error: errorOf(outcome.error), retryable: false } }
    case 'retry': {
      const wait = outcome.afterMs === undefined ? {} : { waitSeconds: secondsOf(outcome.afterMs) }
      return { call: 'failRun', request: { error: errorOf(outcome.error), retryable: true, ...wait } }
    }
    default:
      return assertNever(outcome)
  }
}

function errorOf({ reason, message }: { readonly reason: string; readonly message: string }) {
  return { reason, message: message.slice(0, MESSAGE_LENGTH_MAX) }
}

function secondsOf(ms: number): number {
  return Math.min(WAIT_SECONDS_MAX, Math.max(0, Math.ceil(ms / 1_000)))
}
