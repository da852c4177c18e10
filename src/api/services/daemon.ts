import { DaemonService } from '../../../gen/patchbay/v1/daemon_service_pb.ts'
import {
  type ClaimDeps,
  claimRuns,
  completeRun,
  type FailureDeps,
  failRun,
  HEARTBEAT_SECONDS,
  heartbeat,
  LEASE_SECONDS,
  listDaemonGroups,
  listDaemons,
  registerDaemon,
  releaseRun,
  reportProgress,
} from '../../daemons/index.ts'
import type { RunQueue } from '../../runs/index.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import {
  assignmentToProto,
  daemonGroupToProto,
  daemonToProto,
  heartbeatFromProto,
  heldStateToProto,
  leaseFromProto,
  progressFindings,
  progressFromProto,
} from './daemon.convert.ts'
import { pageById, queryOf } from './page.ts'
import { syncJobRunToProto } from './sync-job-run.convert.ts'

/** What the service needs. */
export interface DaemonServiceDeps {
  readonly daemons: ClaimDeps &
    FailureDeps & { readonly queue: Pick<RunQueue, 'claim' | 'heartbeat' | 'save' | 'settle'> }
}

/** The answer to a claim leaves so long before the deadline of the call, to arrive in time. */
const ANSWER_MS = 250

/** Hands runs to daemons. */
export function daemonService({ daemons }: DaemonServiceDeps): ServiceDefinition {
  const { pool: direct } = daemons.database
  return defineService(DaemonService, {
    registerDaemon: {
      access: 'environment',
      handle: async ({ label, groupKey, regions, version }, { principal: { environmentId } }) => ({
        daemonId: await registerDaemon(direct, environmentId, { label, groupKey, regions, version }),
        heartbeatSeconds: HEARTBEAT_SECONDS,
        leaseSeconds: LEASE_SECONDS,
      }),
    },
    listDaemons: {
      access: 'environment',
      handle: async (request, { principal: { environmentId } }) => {
        const { groupKey } = request
        const query = queryOf('daemon', environmentId, { groupKey })
        const page = await pageById(query, request, (range) => listDaemons(direct, environmentId, { groupKey }, range))
        return { daemons: page.items.map(daemonToProto), nextPageToken: page.nextPageToken }
      },
    },
    listDaemonGroups: {
      access: 'environment',
      handle: async (request, { principal: { environmentId } }) => {
        const page = await listDaemonGroups(direct, environmentId, request)
        return { daemonGroups: page.items.map(daemonGroupToProto), nextPageToken: page.nextPageToken }
      },
    },
    claimRuns: {
      access: 'environment',
      handle: async ({ daemonId, capacity, waitSeconds }, call) => {
        const waitMs = Math.min(waitSeconds * 1_000, call.remainingMs() - ANSWER_MS)
        const input = { daemonId, capacity: capacity === 0 ? 1 : capacity, waitMs }
        const runs = await claimRuns(daemons, call.principal.environmentId, input, call.signal)
        return { runs: runs.map(assignmentToProto) }
      },
    },
    heartbeat: {
      access: 'environment',
      handle: async (request, { principal: { environmentId } }) => {
        const held = await heartbeat(daemons, environmentId, heartbeatFromProto(request))
        return { held: held.map(heldStateToProto) }
      },
    },
    reportProgress: {
      access: 'environment',
      check: progressFindings,
      handle: async (request, { principal: { environmentId } }) => {
        const progress = progressFromProto(request)
        const saved = await reportProgress(daemons, environmentId, leaseFromProto(request), progress)
        return { stopRequested: saved.isStopRequested }
      },
    },
    completeRun: {
      access: 'environment',
      handle: async (request, { principal: { environmentId } }) => {
        const progress = progressFromProto(request)
        return syncJobRunToProto(await completeRun(daemons, environmentId, leaseFromProto(request), progress))
      },
    },
    failRun: {
      access: 'environment',
      handle: async (request, { principal: { environmentId } }) => {
        const { error, retryable: isRetryable, waitSeconds } = request
        if (error === undefined) throw new Error('the contract let a failure without an error through')
        const { reason, message } = error
        const how = { error: { reason, message }, isRetryable, waitMs: millisecondsOf(waitSeconds) }
        const progress = progressFromProto(request)
        return syncJobRunToProto(await failRun(daemons, environmentId, leaseFromProto(request), progress, how))
      },
    },
    releaseRun: {
      access: 'environment',
      check: progressFindings,
      handle: async (request, { principal: { environmentId } }) => {
        const waitMs = millisecondsOf(request.waitSeconds)
        const progress = progressFromProto(request)
        return syncJobRunToProto(await releaseRun(daemons, environmentId, leaseFromProto(request), progress, waitMs))
      },
    },
  })
}

function millisecondsOf(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1_000
}
