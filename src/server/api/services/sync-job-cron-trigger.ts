import { SyncJobCronTriggerService } from '../../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
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
} from '../../../sync/schedules/index.ts'
import { environmentIdOf } from '../caller.ts'
import { defineService, type Finding, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { byId, listRpc } from './list-rpc.ts'
import {
  syncJobCronTriggerToProto,
  tickToProto,
  triggerChangeFindings,
  triggerChangeFromProto,
  triggerFilterFromProto,
  triggerInputFromProto,
} from './sync-job-cron-trigger.convert.ts'
import { syncJobRunToProto } from './sync-job-run.convert.ts'
import { dateFrom, timestampFrom, versionFrom } from './values.convert.ts'

const { createSyncJobCronTrigger, runSyncJobCronTrigger } = SyncJobCronTriggerService.method

/** Administers the triggers of sync jobs and lists their ticks. */
export function syncJobCronTriggerService(
  deps: Pick<ServiceDeps, 'database' | 'secrets' | 'triggers'>,
): ServiceDefinition {
  const { database, triggers } = deps
  return defineService(
    SyncJobCronTriggerService,
    {
      createSyncJobCronTrigger: (request, context) =>
        runIdempotent(deps, environmentIdOf(context), createSyncJobCronTrigger, request, async (tx) =>
          syncJobCronTriggerToProto(
            await createTrigger(triggers, tx, environmentIdOf(context), triggerInputFromProto(request)),
          ),
        ),
      getSyncJobCronTrigger: async ({ id }, context) =>
        syncJobCronTriggerToProto(await getTrigger(database.pool, environmentIdOf(context), id)),
      listSyncJobCronTriggers: listRpc(
        SyncJobCronTriggerService.method.listSyncJobCronTriggers,
        syncJobCronTriggerToProto,
        byId({
          list: 'sync_job_cron_trigger',
          owner: environmentIdOf,
          filter: triggerFilterFromProto,
          read: (range, context, filter) => listTriggers(database.pool, environmentIdOf(context), filter, range),
        }),
      ),
      updateSyncJobCronTrigger: async (request, context) =>
        syncJobCronTriggerToProto(
          await updateTrigger(triggers, environmentIdOf(context), request.id, triggerChangeFromProto(request)),
        ),
      deleteSyncJobCronTrigger: async ({ id, etag }, context) => {
        await database.transaction((tx) => deleteTrigger(tx, environmentIdOf(context), id, versionFrom(etag)))
        return {}
      },
      pauseSyncJobCronTrigger: async ({ id }, context) =>
        syncJobCronTriggerToProto(
          await database.transaction((tx) => pauseTrigger(triggers, tx, environmentIdOf(context), id)),
        ),
      resumeSyncJobCronTrigger: async ({ id }, context) =>
        syncJobCronTriggerToProto(
          await database.transaction((tx) => resumeTrigger(triggers, tx, environmentIdOf(context), id)),
        ),
      runSyncJobCronTrigger: (request, context) =>
        runIdempotent(deps, environmentIdOf(context), runSyncJobCronTrigger, request, async (tx) =>
          syncJobRunToProto(await runTriggerNow(triggers, tx, environmentIdOf(context), request.id, request)),
        ),
      listSyncJobCronTriggerTicks: listRpc(
        SyncJobCronTriggerService.method.listSyncJobCronTriggerTicks,
        tickToProto,
        (request, context) => listTicks(database.pool, environmentIdOf(context), request.id, request),
      ),
      previewSyncJobCronTrigger: async ({ cronExpression, count, after }) => {
        const ticks = previewTicks(triggers, cronExpression, { count, after: dateFrom(after) })
        return { ticks: ticks.map((tick) => timestampFrom(tick)) }
      },
    },
    {
      createSyncJobCronTrigger: ({ cronExpression }) => cronFindings(triggers, cronExpression),
      updateSyncJobCronTrigger: (request) => [
        ...cronFindings(triggers, request.cronExpression),
        ...triggerChangeFindings(request),
      ],
    },
  )
}

/**
 * Findings about a cron expression, reported with all others of the request. An empty one may be absent; the operation itself
 * rejects it.
 */
function cronFindings(triggers: UpdateDeps, expression = ''): readonly Finding[] {
  if (expression === '') return []
  return checkCron(triggers, expression).map((violation) => ({ ...violation, reason: 'CRON_EXPRESSION_INVALID' }))
}
