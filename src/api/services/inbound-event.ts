import { isUtf8 } from 'node:buffer'
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { InboundEventSchema, InboundItemSchema } from '../../../gen/patchbay/v1/inbound_event_pb.ts'
import {
  InboundEventService,
  type ListInboundEventsRequest,
} from '../../../gen/patchbay/v1/inbound_event_service_pb.ts'
import {
  expungeInboundEvent,
  getInboundEvent,
  INBOUND_STATES,
  type InboundEventDetail,
  type InboundEventSummary,
  type InboundFilter,
  type InboundItemRecord,
  listInboundEvents,
} from '../../inbound-webhooks/index.ts'
import { environmentIdOf } from '../caller.ts'
import { structFrom, valueFrom } from '../messages/struct.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { checkRange } from './page.ts'
import { dateFrom, parseEnum, timestampFrom } from './values.convert.ts'

/** Shows what third parties sent. */
export function inboundEventService({ database }: Pick<ServiceDeps, 'database'>): ServiceDefinition {
  return defineService(
    InboundEventService,
    {
      getInboundEvent: async ({ id }, context) =>
        detailToProto(await getInboundEvent(database.pool, environmentIdOf(context), id)),
      listInboundEvents: async (request, context) => {
        const filter = inboundFilterFromProto(request)
        const page = await listInboundEvents(database.pool, environmentIdOf(context), filter, request)
        return { inboundEvents: page.items.map(summaryToProto), nextPageToken: page.nextPageToken }
      },
      expungeInboundEvent: async ({ id }, context) =>
        detailToProto(await database.transaction((tx) => expungeInboundEvent(tx, environmentIdOf(context), id))),
    },
    { listInboundEvents: checkRange },
  )
}

function inboundFilterFromProto(request: ListInboundEventsRequest): InboundFilter {
  const { sourceId, integratedAccountId, lookupValue } = request
  const state = parseEnum(INBOUND_STATES, request.state)
  return {
    state,
    sourceId,
    integratedAccountId,
    lookupValue,
    since: dateFrom(request.since),
    until: dateFrom(request.until),
  }
}

function summaryToProto(event: InboundEventSummary) {
  return {
    id: event.id,
    environmentId: event.environmentId,
    sourceKind: event.sourceKind,
    sourceId: event.sourceId,
    environmentIntegrationId: event.environmentIntegrationId,
    integratedAccountId: event.integratedAccountId ?? undefined,
    state: event.state,
    signature: event.signature,
    method: event.method,
    path: event.path,
    query: event.query,
    remoteAddress: event.remoteAddress,
    bodyBytes: event.bodyBytes,
    dedupeKey: event.dedupeKey ?? undefined,
    duplicateCount: event.duplicates,
    receivedAt: timestampFrom(event.receivedAt),
    providerTime: timestampFrom(event.providerTime),
    processedAt: timestampFrom(event.processedAt),
    error: event.error === null ? undefined : structFrom(event.error),
    hasContent: event.hasContent,
  } satisfies MessageInitShape<typeof InboundEventSchema>
}

function detailToProto(event: InboundEventDetail): MessageInitShape<typeof InboundEventSchema> {
  const { content, items, trace } = event
  return {
    ...summaryToProto(event),
    trace: structFrom(trace),
    ...(content === undefined
      ? {}
      : {
          headers: content.headers.map(([name, value]) => ({ name, value })),
          ...bodyToProto(content.body),
          payload: content.payload === null ? undefined : valueFrom(content.payload),
        }),
    items: items.map(itemToProto),
  }
}

/** Text as text, anything else in base64. */
function bodyToProto(body: Uint8Array): { readonly body: string } | { readonly bodyBase64: string } {
  const bytes = Buffer.from(body)
  return isUtf8(bytes) ? { body: bytes.toString('utf8') } : { bodyBase64: bytes.toString('base64') }
}

function itemToProto(item: InboundItemRecord): MessageInitShape<typeof InboundItemSchema> {
  return {
    index: item.index,
    state: item.state,
    integratedAccountId: item.integratedAccountId ?? undefined,
    lookupValue: item.lookupValue ?? undefined,
    eventId: item.eventId ?? undefined,
    resource: item.resource ?? undefined,
    recordId: item.recordId ?? undefined,
    detail: item.detail ?? undefined,
  }
}
