import {
  CallLogContentSchema,
  CallLogEntrySchema,
  CallLogTimingsSchema,
} from '../../../../gen/patchbay/v1/call_log_pb.ts'
import { CALL_CLASSES } from '../../../engine/proxy/index.ts'
import type { CallLogFilter, LogEntryContent, LogEntryRecord } from '../../../platform/call-log/index.ts'
import { shapeOf } from './shape.ts'
import { parseEnum } from './values.convert.ts'

const timingsToProto = shapeOf(CallLogTimingsSchema).from<LogEntryRecord>()

const contentToProto = shapeOf(CallLogContentSchema).from<LogEntryContent>({
  requestHeaders: ({ requestHeaders }) => headersToProto(requestHeaders),
  requestBody: ({ requestBody }) => requestBody ?? '',
  responseHeaders: ({ responseHeaders }) => headersToProto(responseHeaders),
  responseBody: ({ responseBody }) => responseBody ?? '',
})

/** An entry; the answer about one alone has its headers and bodies. */
export const logEntryToProto = shapeOf(CallLogEntrySchema).from<LogEntryRecord & Partial<LogEntryContent>>({
  timings: timingsToProto,
  content: (entry) => (entry.responseBody == null ? undefined : contentToProto(entry as LogEntryContent)),
})

function headersToProto(headers: LogEntryContent['requestHeaders']) {
  return (headers ?? []).map(([name, value]) => ({ name, value }))
}

/** The filters that List and Watch have in common. */
export interface FilterRequest {
  readonly integratedAccountId?: string | undefined
  readonly environmentIntegrationId?: string | undefined
  readonly resource?: string | undefined
  readonly class?: string | undefined
  readonly causeId?: string | undefined
}

/** Reads the filters of a request. */
export function filterFromProto(request: FilterRequest): CallLogFilter {
  const { integratedAccountId, environmentIntegrationId, resource, causeId } = request
  return {
    integratedAccountId,
    environmentIntegrationId,
    resource,
    class: parseEnum(CALL_CLASSES, request.class),
    causeId,
  }
}
