import { DaemonService } from '../../../../gen/patchbay/v1/daemon_service_pb.ts'
import {
  claimRuns,
  completeRun,
  failRun,
  HEARTBEAT_SECONDS,
  heartbeat,
  LEASE_SECONDS,
  listDaemonGroups,
  listDaemons,
  registerDaemon,
  releaseRun,
  reportProgress,
} from '../../../sync/daemons/index.ts'
import { environmentIdOf } from '../caller.ts'
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
  releaseFindings,
} from './daemon.convert.ts'
import type { ServiceDeps } from './deps.ts'
import { byId, listRpc } from './list-rpc.ts'
import { runErrorFromProto, syncJobRunToProto } from './sync-job-run.convert.ts'

/** Margin before the deadline of a claim, so that its answer arrives in time. */
const ANSWER_MS = 250

/** Registers daemons, leases runs to them, and takes their reports. */
export function daemonService({ daemons }: Pick<ServiceDeps, 'daemons'>): ServiceDefinition {
  const { pool } = daemons.database
  return defineService(
    DaemonService,
    {
      registerDaemon: async ({ label, groupKey, regions, version }, context) => ({
        daemonId: await registerDaemon(pool, environmentIdOf(context), { label, groupKey, regions, version }),
        heartbeatSeconds: HEARTBEAT_SECONDS,
        leaseSeconds: LEASE_SECONDS,
      }),
      listDaemons: listRpc(
        DaemonService.method.listDaemons,
        daemonToProto,
        byId({
          list: 'daemon',
          owner: environmentIdOf,
          filter: ({ groupKey }) => ({ groupKey }),
          read: (range, context, filter) => listDaemons(pool, environmentIdOf(context), filter, range),
        }),
      ),
      listDaemonGroups: listRpc(DaemonService.method.listDaemonGroups, daemonGroupToProto, (request, context) =>
        listDaemonGroups(pool, environmentIdOf(context), request),
      ),
      claimRuns: async ({ daemonId, capacity, waitSeconds }, context) => {
        const waitMs = Math.min(waitSeconds * 1_000, (context.timeoutMs() ?? Number.POSITIVE_INFINITY) - ANSWER_MS)
        const input = { daemonId, capacity: capacity === 0 ? 1 : capacity, waitMs }
        const runs = await claimRuns(daemons, environmentIdOf(context), input, context.signal)
        return { runs: runs.map(assignmentToProto) }
      },
      heartbeat: async (request, context) => {
        const held = await heartbeat(daemons, environmentIdOf(context), heartbeatFromProto(request))
        return { held: held.map(heldStateToProto) }
      },
      reportProgress: async (request, context) => {
        const progress = { ...progressFromProto(request), waitMs: millisecondsOf(request.waitSeconds) }
        const saved = await reportProgress(daemons, environmentIdOf(context), leaseFromProto(request), progress)
        return { stopRequested: saved.isStopRequested }
      },
      completeRun: async (request, context) => {
        const progress = progressFromProto(request)
        return syncJobRunToProto(
          await completeRun(daemons, environmentIdOf(context), leaseFromProto(request), progress),
        )
      },
      failRun: async (request, context) => {
        const { error, retryable: isRetryable, uncounted: isUncounted, waitSeconds } = request
        if (error === undefined) throw new Error('the contract let a failure without an error through')
        const how = { error: runErrorFromProto(error), isRetryable, isUncounted, waitMs: millisecondsOf(waitSeconds) }
        const progress = progressFromProto(request)
        return syncJobRunToProto(
          await failRun(daemons, environmentIdOf(context), leaseFromProto(request), progress, how),
        )
      },
      releaseRun: async (request, context) => {
        const { error, waitSeconds } = request
        const wait =
          waitSeconds === undefined ? undefined : { ms: waitSeconds * 1_000, error: error && runErrorFromProto(error) }
        const progress = progressFromProto(request)
        return syncJobRunToProto(
          await releaseRun(daemons, environmentIdOf(context), leaseFromProto(request), progress, wait),
        )
      },
    },
    { reportProgress: progressFindings, releaseRun: releaseFindings },
  )
}

function millisecondsOf(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1_000
}
