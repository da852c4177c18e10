import { SyncJobService } from '../../../gen/patchbay/v1/sync_job_service_pb.ts'
import type { Clock } from '../../base/index.ts'
import { createSyncJob, deleteSyncJob, getSyncJob, listSyncJobs, updateSyncJob } from '../../syncs/index.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import { type IdempotencyDeps, runIdempotent } from './idempotency.ts'
import { pageById, queryOf } from './page.ts'
import { syncJobChangeFromProto, syncJobInputFromProto, syncJobToProto } from './sync-job.convert.ts'
import { versionFrom } from './values.convert.ts'

/** What the service needs. */
export interface SyncJobServiceDeps extends IdempotencyDeps {
  readonly clock: Clock
}

/** Keeps the plans of syncs. */
export function syncJobService(deps: SyncJobServiceDeps): ServiceDefinition {
  const { database } = deps
  return defineService(SyncJobService, {
    createSyncJob: {
      access: 'environment',
      handle: (request, { principal: { environmentId } }) =>
        runIdempotent(deps, environmentId, SyncJobService.method.createSyncJob, request, async (tx) =>
          syncJobToProto(await createSyncJob(deps, tx, environmentId, syncJobInputFromProto(request))),
        ),
    },
    getSyncJob: {
      access: 'environment',
      handle: async ({ id }, { principal: { environmentId } }) =>
        syncJobToProto(await getSyncJob(database.pool, environmentId, id)),
    },
    listSyncJobs: {
      access: 'environment',
      handle: async (request, { principal: { environmentId } }) => {
        const query = queryOf('sync_job', environmentId)
        const page = await pageById(query, request, (range) => listSyncJobs(database.pool, environmentId, range))
        return { syncJobs: page.items.map(syncJobToProto), nextPageToken: page.nextPageToken }
      },
    },
    updateSyncJob: {
      access: 'environment',
      handle: async (request, { principal: { environmentId } }) => {
        const change = syncJobChangeFromProto(request)
        return syncJobToProto(await database.transaction((tx) => updateSyncJob(tx, environmentId, change)))
      },
    },
    deleteSyncJob: {
      access: 'environment',
      handle: async ({ id, etag, force }, { principal: { environmentId } }) => {
        const input = { id, version: versionFrom(etag), force }
        await database.transaction((tx) => deleteSyncJob(tx, environmentId, input))
        return {}
      },
    },
  })
}
