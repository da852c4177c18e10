import { SyncJobRunService } from '../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { type CreateRunDeps, createRun, getRun, listRuns, type RunWatch, retryRun, stopRun } from '../../runs/index.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import { type IdempotencyDeps, runIdempotent } from './idempotency.ts'
import { runFilterFromProto, runInputFromProto, syncJobRunToProto } from './sync-job-run.convert.ts'

/** What the service needs. */
export interface SyncJobRunServiceDeps extends IdempotencyDeps {
  readonly runs: CreateRunDeps
  readonly runWatch: Pick<RunWatch, 'watch'>
}

/** Runs sync jobs by hand, and shows, stops and retries runs. */
export function syncJobRunService(deps: SyncJobRunServiceDeps): ServiceDefinition {
  const { database, runs, runWatch } = deps
  return defineService(SyncJobRunService, {
    createSyncJobRun: {
      access: 'environment',
      handle: (request, { principal: { environmentId } }) =>
        runIdempotent(deps, environmentId, SyncJobRunService.method.createSyncJobRun, request, async (tx) =>
          syncJobRunToProto(await createRun(runs, tx, environmentId, runInputFromProto(request))),
        ),
    },
    getSyncJobRun: {
      access: 'environment',
      handle: async ({ id }, { principal: { environmentId } }) =>
        syncJobRunToProto(await getRun(database.pool, environmentId, id)),
    },
    listSyncJobRuns: {
      access: 'environment',
      handle: async (request, { principal: { environmentId } }) => {
        const page = await listRuns(database.pool, environmentId, runFilterFromProto(request), request)
        return { syncJobRuns: page.items.map(syncJobRunToProto), nextPageToken: page.nextPageToken }
      },
    },
    stopSyncJobRun: {
      access: 'environment',
      handle: async ({ id }, { principal: { environmentId } }) =>
        syncJobRunToProto(await database.transaction((tx) => stopRun(tx, environmentId, id))),
    },
    retrySyncJobRun: {
      access: 'environment',
      handle: async ({ id }, { principal: { environmentId } }) =>
        syncJobRunToProto(await database.transaction((tx) => retryRun(runs, tx, environmentId, id))),
    },
    watchSyncJobRun: {
      access: 'environment',
      async *handle({ id }, { principal: { environmentId }, signal }) {
        for await (const run of runWatch.watch(environmentId, id, signal))
          yield { syncJobRun: run && syncJobRunToProto(run) }
      },
    },
  })
}
