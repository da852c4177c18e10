import type { MessageInitShape } from '@bufbuild/protobuf'
import type { ClaimedRunSchema, DaemonGroupSchema, DaemonSchema } from '../../../gen/patchbay/v1/daemon_pb.ts'
import type {
  HeartbeatRequest,
  HeldRunStateSchema,
  ReleaseRunRequest,
  ReportProgressRequest,
} from '../../../gen/patchbay/v1/daemon_service_pb.ts'
import type { JsonObject } from '../../base/index.ts'
import type { Assignment, Daemon, DaemonGroup, HeartbeatInput, HeldState, Progress } from '../../daemons/index.ts'
import type { LeaseKey } from '../../queue/index.ts'
import { structFrom } from './struct.ts'
import { resourceStatsFromProto, syncJobRunToProto } from './sync-job-run.ts'
import { timestampFrom } from './timestamp.ts'

/** A daemon as it stands now. */
export function daemonToProto({
  regions,
  registeredAt,
  lastSeenAt,
  ...daemon
}: Daemon): MessageInitShape<typeof DaemonSchema> {
  return {
    ...daemon,
    regions: [...regions],
    registeredAt: timestampFrom(registeredAt),
    lastSeenAt: timestampFrom(lastSeenAt),
  }
}

/** A group as it stands now. */
export function daemonGroupToProto({ oldestDueAt, ...group }: DaemonGroup): MessageInitShape<typeof DaemonGroupSchema> {
  return { ...group, oldestDueAt: timestampFrom(oldestDueAt) }
}

/** A run with everything that its holder needs. */
export function assignmentToProto(assignment: Assignment): MessageInitShape<typeof ClaimedRunSchema> {
  const { run, leaseId, leaseExpiresAt, checkpoint, previousRunDate, attemptsMax, tenantId } = assignment
  return {
    ...{ run: syncJobRunToProto(run), leaseId, attemptsMax, tenantId },
    leaseExpiresAt: timestampFrom(leaseExpiresAt),
    previousRunDate: timestampFrom(previousRunDate),
    checkpoint: checkpoint === null ? undefined : structFrom(checkpoint),
    context: structFrom(assignment.context),
    environmentVariables: structFrom(assignment.environmentVariables),
    resources: assignment.resources.map((resource) => ({
      idPath: [...resource.idPath],
      parentPaths: [...resource.parentPaths],
      previousRunDate: timestampFrom(resource.previousRunDate),
    })),
  }
}

/** What a daemon says of itself. */
export function heartbeatFromProto({ daemonId, isDraining, held }: HeartbeatRequest): HeartbeatInput {
  return { daemonId, isDraining, held: held.map(leaseFromProto) }
}

/** What has become of a lease. */
export function heldStateToProto(state: HeldState): MessageInitShape<typeof HeldRunStateSchema> {
  const { id: runId, leaseId } = state
  if (state.kind === 'lost') return { runId, leaseId, isLost: true }
  return { runId, leaseId, stopRequested: state.isStopRequested, leaseExpiresAt: timestampFrom(state.expiresAt) }
}

/** The lease that a message names. */
export function leaseFromProto({ runId, leaseId }: { readonly runId: string; readonly leaseId: string }): LeaseKey {
  return { id: runId, leaseId }
}

/** How far a run has come. */
export function progressFromProto({
  checkpoint,
  resourceStats,
}: Partial<Pick<ReportProgressRequest | ReleaseRunRequest, 'checkpoint'>> &
  Pick<ReportProgressRequest, 'resourceStats'>): Progress {
  // protobuf's JSON type is ours, and it was found to hold nothing that ours does not.
  return { checkpoint: checkpoint as JsonObject | undefined, stats: resourceStats.map(resourceStatsFromProto) }
}
