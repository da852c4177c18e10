import { SyncJobService } from '../../../gen/patchbay/v1/sync_job_service_pb.ts'
import { type Db, listQuery, pageById } from '../../database/index.ts'
import {
  createSyncJob,
  deleteSyncJob,
  findJobWarnings,
  getSyncJob,
  listSyncJobs,
  type SyncJobRecord,
  updateSyncJob,
} from '../../syncs/index.ts'
import { environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { syncJobChangeFromProto, syncJobInputFromProto, syncJobToProto } from './sync-job.convert.ts'
import { versionFrom } from './values.convert.ts'

/** Administers sync jobs. */
export function syncJobService(
  deps: Pick<ServiceDeps, 'database' | 'secrets' | 'clock' | 'unifiedCalls'>,
): ServiceDefinition {
  const { database, clock, unifiedCalls } = deps
  const jobDeps = { clock, mappings: unifiedCalls.mappings }
  return defineService(SyncJobService, {
    createSyncJob: (request, context) =>
      runIdempotent(deps, environmentIdOf(context), SyncJobService.method.createSyncJob, request, async (tx) =>
        show(tx, await createSyncJob(jobDeps, tx, environmentIdOf(context), syncJobInputFromProto(request))),
      ),
    getSyncJob: async ({ id }, context) =>
      await show(database.pool, await getSyncJob(database.pool, environmentIdOf(context), id)),
    listSyncJobs: async (request, context) => {
      const query = listQuery('sync_job', environmentIdOf(context))
      const page = await pageById(query, request, (range) =>
        listSyncJobs(database.pool, environmentIdOf(context), range),
      )
      const syncJobs = await showAll(database.pool, environmentIdOf(context), page.items)
      return { syncJobs, nextPageToken: page.nextPageToken }
    },
    updateSyncJob: async (request, context) => {
      const change = syncJobChangeFromProto(request)
      return await database.transaction(async (tx) =>
        show(tx, await updateSyncJob(jobDeps, tx, environmentIdOf(context), change)),
      )
    },
    deleteSyncJob: async ({ id, etag, force }, context) => {
      const input = { id, version: versionFrom(etag), force }
      await database.transaction((tx) => deleteSyncJob(tx, environmentIdOf(context), input))
      return {}
    },
  })
}

/** Jobs of an environment with what is doubtful about each. */
async function showAll(tx: Db, environmentId: string, jobs: readonly SyncJobRecord[]) {
  const warnings = await findJobWarnings(tx, environmentId, jobs)
  return jobs.map((job, index) => syncJobToProto(job, warnings[index]))
}

async function show(tx: Db, job: SyncJobRecord) {
  const [warnings] = await findJobWarnings(tx, job.environmentId, [job])
  return syncJobToProto(job, warnings)
}
