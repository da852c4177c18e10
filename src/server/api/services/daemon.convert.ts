import type { MessageInitShape } from '@bufbuild/protobuf'
import { ClaimedRunSchema, DaemonGroupSchema, DaemonSchema } from '../../../../gen/patchbay/v1/daemon_pb.ts'
import type {
  HeartbeatRequest,
  HeldRunStateSchema,
  ReleaseRunRequest,
  ReportProgressRequest,
} from '../../../../gen/patchbay/v1/daemon_service_pb.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import type { LeaseKey } from '../../../foundation/queue/index.ts'
import type {
  Assignment,
  Daemon,
  DaemonGroup,
  HeartbeatInput,
  LeaseState,
  ReportedProgress,
} from '../../../sync/daemons/index.ts'
import type { Finding } from '../operation.ts'
import { shapeOf } from './shape.ts'
import { resourceStatsFromProto, syncJobRunToProto } from './sync-job-run.convert.ts'
import { findTextProblems, objectInText, timestampFrom } from './values.convert.ts'

/** The current state of a daemon. */
export const daemonToProto = shapeOf(DaemonSchema).from<Daemon>()

/** The current state of a daemon group. */
export const daemonGroupToProto = shapeOf(DaemonGroupSchema).from<DaemonGroup>()

/** A claimed run with everything that a daemon needs to execute it. */
export const assignmentToProto = shapeOf(ClaimedRunSchema).from<Assignment>({
  run: ({ run }) => syncJobRunToProto(run),
  valuesJson: valuesText,
})

/** The free-form values of a run as text, which keeps numbers that binary protobuf would change. */
function valuesText({ run, checkpoint, context, environmentVariables }: Assignment): string {
  const { args, resources } = run
  return JSON.stringify({ args, resources, context, environment_variables: environmentVariables, checkpoint })
}

/** Check of a progress report: the checkpoint is given once. */
export function progressFindings({
  checkpoint,
  checkpointJson,
}: Pick<ReportProgressRequest | ReleaseRunRequest, 'checkpoint' | 'checkpointJson'>): readonly Finding[] {
  const isTwice = checkpoint !== undefined && checkpointJson !== ''
  const twice = {
    field: 'checkpoint',
    description: 'cannot be given together with checkpoint_json',
    rule: 'duplicate_field',
  }
  return [...findTextProblems('checkpoint_json', checkpointJson), ...(isTwice ? [twice] : [])]
}

/** Check of a release: an error says why the run waits. */
export function releaseFindings(request: ReleaseRunRequest): readonly Finding[] {
  const isUnused = request.error !== undefined && request.waitSeconds === undefined
  const unused = {
    field: 'error',
    description: 'is for a run that waits: set wait_seconds too',
    rule: 'error.without_wait',
  }
  return [...progressFindings(request), ...(isUnused ? [unused] : [])]
}

/** The state that a daemon reports about itself. */
export function heartbeatFromProto({ daemonId, isDraining, held }: HeartbeatRequest): HeartbeatInput {
  return { daemonId, isDraining, held: held.map(leaseFromProto) }
}

/** The state of a lease after a heartbeat. */
export function heldStateToProto(state: LeaseState): MessageInitShape<typeof HeldRunStateSchema> {
  const { id: runId, leaseId } = state
  if (state.kind === 'lost') return { runId, leaseId, isLost: true }
  return { runId, leaseId, stopRequested: state.isStopRequested, leaseExpiresAt: timestampFrom(state.expiresAt) }
}

/** The lease that a message names. */
export function leaseFromProto({ runId, leaseId }: { readonly runId: string; readonly leaseId: string }): LeaseKey {
  return { id: runId, leaseId }
}

/** The reported progress of a run. */
export function progressFromProto({
  checkpoint,
  checkpointJson = '',
  resourceStats,
}: Partial<Pick<ReportProgressRequest | ReleaseRunRequest, 'checkpoint' | 'checkpointJson'>> &
  Pick<ReportProgressRequest, 'resourceStats'>): ReportedProgress {
  // protobuf's JSON type is ours, and validation has rejected values that ours does not allow.
  return {
    checkpoint: objectInText(checkpointJson) ?? (checkpoint as JsonObject | undefined),
    stats: resourceStats.map(resourceStatsFromProto),
  }
}
