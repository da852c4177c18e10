import { SyncJobCronTriggerService } from '../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import {
  checkCron,
  createTrigger,
  deleteTrigger,
  getTrigger,
  listTicks,
  listTriggers,
  pauseTrigger,
  previewTicks,
  resumeTrigger,
  runTriggerNow,
  type UpdateDeps,
  updateTrigger,
} from '../../schedules/index.ts'
import { defineService, type Finding, type ServiceDefinition } from '../operation.ts'
import { type IdempotencyDeps, runIdempotent } from './idempotency.ts'
import { pageById, queryOf } from './page.ts'
import {
  syncJobCronTriggerToProto,
  tickToProto,
  triggerChangeFromProto,
  triggerFilterFromProto,
  triggerInputFromProto,
} from './sync-job-cron-trigger.convert.ts'
import { syncJobRunToProto } from './sync-job-run.convert.ts'
import { dateFrom, timestampFrom, versionFrom } from './values.convert.ts'

const { createSyncJobCronTrigger, runSyncJobCronTrigger } = SyncJobCronTriggerService.method

/** What the service needs. */
export interface SyncJobCronTriggerServiceDeps extends IdempotencyDeps {
  readonly triggers: UpdateDeps
}

/** Schedules sync jobs and tells what became of every tick. */
export function syncJobCronTriggerService(deps: SyncJobCronTriggerServiceDeps): ServiceDefinition {
  const { database, triggers } = deps
  return defineService(SyncJobCronTriggerService, {
    createSyncJobCronTrigger: {
      access: 'environment',
      check: ({ cronExpression }) => cronFindings(triggers, cronExpression),
      handle: (request, { principal: { environmentId } }) =>
        runIdempotent(deps, environmentId, createSyncJobCronTrigger, request, async (tx) =>
          syncJobCronTriggerToProto(await createTrigger(triggers, tx, environmentId, triggerInputFromProto(request))),
        ),
    },
    getSyncJobCronTrigger: {
      access: 'environment',
      handle: async ({ id }, { principal: { environmentId } }) =>
        syncJobCronTriggerToProto(await getTrigger(database.pool, environmentId, id)),
    },
    listSyncJobCronTriggers: {
      access: 'environment',
      handle: async (request, { principal: { environmentId } }) => {
        const filter = triggerFilterFromProto(request)
        const query = queryOf('sync_job_cron_trigger', environmentId, { ...filter })
        const page = await pageById(query, request, (range) =>
          listTriggers(database.pool, environmentId, filter, range),
        )
        const syncJobCronTriggers = page.items.map(syncJobCronTriggerToProto)
        return { syncJobCronTriggers, nextPageToken: page.nextPageToken }
      },
    },
    updateSyncJobCronTrigger: {
      access: 'environment',
      check: ({ cronExpression }) => cronFindings(triggers, cronExpression),
      handle: async (request, { principal: { environmentId } }) =>
        syncJobCronTriggerToProto(
          await updateTrigger(triggers, environmentId, request.id, triggerChangeFromProto(request)),
        ),
    },
    deleteSyncJobCronTrigger: {
      access: 'environment',
      handle: async ({ id, etag }, { principal: { environmentId } }) => {
        await database.transaction((tx) => deleteTrigger(tx, environmentId, id, versionFrom(etag)))
        return {}
      },
    },
    pauseSyncJobCronTrigger: {
      access: 'environment',
      handle: async ({ id }, { principal: { environmentId } }) =>
        syncJobCronTriggerToProto(await database.transaction((tx) => pauseTrigger(triggers, tx, environmentId, id))),
    },
    resumeSyncJobCronTrigger: {
      access: 'environment',
      handle: async ({ id }, { principal: { environmentId } }) =>
        syncJobCronTriggerToProto(await database.transaction((tx) => resumeTrigger(triggers, tx, environmentId, id))),
    },
    runSyncJobCronTrigger: {
      access: 'environment',
      handle: (request, { principal: { environmentId } }) =>
        runIdempotent(deps, environmentId, runSyncJobCronTrigger, request, async (tx) =>
          syncJobRunToProto(await runTriggerNow(triggers, tx, environmentId, request.id)),
        ),
    },
    listSyncJobCronTriggerTicks: {
      access: 'environment',
      handle: async (request, { principal: { environmentId } }) => {
        const page = await listTicks(database.pool, environmentId, request.id, request)
        return { ticks: page.items.map(tickToProto), nextPageToken: page.nextPageToken }
      },
    },
    previewSyncJobCronTrigger: {
      access: 'environment',
      handle: async ({ cronExpression, count, after }) => {
        const ticks = previewTicks(triggers, cronExpression, { count, after: dateFrom(after) })
        return { ticks: ticks.map((tick) => timestampFrom(tick)) }
      },
    },
  })
}

/**
 * What is wrong with a given expression, to be told together with everything else that is wrong with the request. An empty
 * one may just be absent; the operation itself refuses it.
 */
function cronFindings(triggers: UpdateDeps, expression = ''): readonly Finding[] {
  if (expression === '') return []
  return checkCron(triggers, expression).map((violation) => ({ ...violation, reason: 'CRON_EXPRESSION_INVALID' }))
}
