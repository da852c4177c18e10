import {
  CallLogContentSchema,
  CallLogEntrySchema,
  CallLogTimingsSchema,
} from '../../../../gen/patchbay/v1/call_log_pb.ts'
import { CALL_CAUSES, CALL_CLASSES, type LoggedContent } from '../../../engine/proxy/index.ts'
import type { CallLogFilter, LogEntryRecord, WholeLogEntry } from '../../../platform/call-log/index.ts'
import { shapeOf } from './shape.ts'
import { parseEnum } from './values.convert.ts'

const timingsToProto = shapeOf(CallLogTimingsSchema).from<LogEntryRecord>()

const contentToProto = shapeOf(CallLogContentSchema).from<LoggedContent>({
  requestHeaders: ({ requestHeaders }) => headersToProto(requestHeaders),
  responseHeaders: ({ responseHeaders }) => headersToProto(responseHeaders),
})

/** An entry; the answer about one alone has its headers and bodies. */
export const logEntryToProto = shapeOf(CallLogEntrySchema).from<LogEntryRecord & Partial<WholeLogEntry>>({
  timings: timingsToProto,
  content: ({ content }) => content && contentToProto(content),
})

function headersToProto(headers: LoggedContent['requestHeaders']) {
  return Object.entries(headers).map(([name, value]) => ({ name, value }))
}

/** The filters that List and Watch have in common. */
export interface FilterRequest {
  readonly integratedAccountId?: string | undefined
  readonly environmentIntegrationId?: string | undefined
  readonly resource?: string | undefined
  readonly class?: string | undefined
  readonly cause?: string | undefined
  readonly causeId?: string | undefined
  readonly failed: boolean
  readonly pathContains?: string | undefined
}

/** Reads the filters of a request. */
export function filterFromProto(request: FilterRequest): CallLogFilter {
  const { integratedAccountId, environmentIntegrationId, resource, causeId, failed, pathContains } = request
  return {
    integratedAccountId,
    environmentIntegrationId,
    resource,
    class: parseEnum(CALL_CLASSES, request.class),
    cause: parseEnum(CALL_CAUSES, request.cause),
    causeId,
    failed: failed || undefined,
    pathContains,
  }
}
