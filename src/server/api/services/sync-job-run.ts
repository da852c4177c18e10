import { SyncJobRunService } from '../../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { createRun, getRun, listRuns, retryRun, stopRun } from '../../../sync/runs/index.ts'
import { environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { listRpc } from './list-rpc.ts'
import { runFilterFromProto, runInputFromProto, syncJobRunToProto } from './sync-job-run.convert.ts'

/** Creates runs by hand, and shows, watches, stops and retries runs. */
export function syncJobRunService(
  deps: Pick<ServiceDeps, 'database' | 'secrets' | 'runs' | 'runWatch'>,
): ServiceDefinition {
  const { database, runs, runWatch } = deps
  return defineService(SyncJobRunService, {
    createSyncJobRun: (request, context) =>
      runIdempotent(deps, environmentIdOf(context), SyncJobRunService.method.createSyncJobRun, request, async (tx) =>
        syncJobRunToProto(await createRun(runs, tx, environmentIdOf(context), runInputFromProto(request))),
      ),
    getSyncJobRun: async ({ id }, context) =>
      syncJobRunToProto(await getRun(database.pool, environmentIdOf(context), id)),
    listSyncJobRuns: listRpc(SyncJobRunService.method.listSyncJobRuns, syncJobRunToProto, (request, context) =>
      listRuns(database.pool, environmentIdOf(context), runFilterFromProto(request), request),
    ),
    stopSyncJobRun: async ({ id }, context) =>
      syncJobRunToProto(await database.transaction((tx) => stopRun(tx, environmentIdOf(context), id))),
    retrySyncJobRun: async ({ id }, context) =>
      syncJobRunToProto(await database.transaction((tx) => retryRun(runs, tx, environmentIdOf(context), id))),
    async *watchSyncJobRun({ id }, context) {
      for await (const run of runWatch.watch(environmentIdOf(context), id, context.signal))
        yield { syncJobRun: run && syncJobRunToProto(run) }
    },
  })
}
