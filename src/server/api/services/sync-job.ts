import { SyncJobService } from '../../../../gen/patchbay/v1/sync_job_service_pb.ts'
import type { Db } from '../../../foundation/database/index.ts'
import {
  createSyncJob,
  deleteSyncJob,
  findJobWarnings,
  getSyncJob,
  listSyncJobs,
  type SyncJobRecord,
  updateSyncJob,
} from '../../../sync/jobs/index.ts'
import { environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { byId, listRpc } from './list-rpc.ts'
import { syncJobChangeFromProto, syncJobInputFromProto, syncJobToProto } from './sync-job.convert.ts'
import { versionFrom } from './values.convert.ts'

/** Administers sync jobs. */
export function syncJobService(
  deps: Pick<ServiceDeps, 'database' | 'secrets' | 'clock' | 'unifiedCalls'>,
): ServiceDefinition {
  const { database, clock, unifiedCalls } = deps
  const jobDeps = { clock, mappings: unifiedCalls.mappings }
  const readJobs = byId({
    list: 'sync_job',
    owner: environmentIdOf,
    read: (range, context) => listSyncJobs(database.pool, environmentIdOf(context), range),
  })
  return defineService(SyncJobService, {
    createSyncJob: (request, context) =>
      runIdempotent(deps, environmentIdOf(context), SyncJobService.method.createSyncJob, request, async (tx) =>
        show(tx, await createSyncJob(jobDeps, tx, environmentIdOf(context), syncJobInputFromProto(request))),
      ),
    getSyncJob: async ({ id }, context) =>
      await show(database.pool, await getSyncJob(database.pool, environmentIdOf(context), id)),
    listSyncJobs: listRpc(SyncJobService.method.listSyncJobs, syncJobToProto, async (request, context) => {
      const page = await readJobs(request, context)
      const found = await findJobWarnings(database.pool, environmentIdOf(context), page.items)
      return { ...page, items: page.items.map((job, index) => ({ ...job, findings: found[index] })) }
    }),
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

async function show(tx: Db, job: SyncJobRecord) {
  const [findings] = await findJobWarnings(tx, job.environmentId, [job])
  return syncJobToProto({ ...job, findings })
}
