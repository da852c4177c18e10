import { CallLogService } from '../../../../gen/patchbay/v1/call_log_service_pb.ts'
import { countDrops, getLogEntry, listLogEntries } from '../../../platform/call-log/index.ts'
import { environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import { filterFromProto, logEntryToProto } from './call-log.convert.ts'
import type { ServiceDeps } from './deps.ts'
import { checkRange } from './time-range.ts'
import { dateFrom } from './values.convert.ts'

/** Reads the request log. */
export function callLogService({
  database,
  secrets,
  callLog,
  callLogWatch,
}: Pick<ServiceDeps, 'database' | 'secrets' | 'callLog' | 'callLogWatch'>): ServiceDefinition {
  return defineService(
    CallLogService,
    {
      getCallLogEntry: async ({ id }, context) => {
        await callLog.flush()
        return logEntryToProto(await getLogEntry(secrets, database.pool, environmentIdOf(context), id))
      },
      listCallLogEntries: async (request, context) => {
        const environmentId = environmentIdOf(context)
        const filter = { ...filterFromProto(request), since: dateFrom(request.since), until: dateFrom(request.until) }
        await callLog.flush()
        const { items, nextPageToken } = await listLogEntries(database.pool, environmentId, filter, request)
        const droppedCount = await countDrops(database.pool, environmentId)
        return { callLogEntries: items.map(logEntryToProto), nextPageToken, droppedCount }
      },
      async *watchCallLogEntries(request, context) {
        const entries = callLogWatch.watch(environmentIdOf(context), filterFromProto(request), context.signal)
        for await (const entry of entries) yield { callLogEntry: entry && logEntryToProto(entry) }
      },
    },
    { listCallLogEntries: checkRange },
  )
}
