import { isUtf8 } from 'node:buffer'
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { InboundEventSchema, InboundItemSchema } from '../../../gen/patchbay/v1/inbound_event_pb.ts'
import {
  InboundEventService,
  type ListInboundEventsRequest,
  type ReplayInboundEventsRequest,
} from '../../../gen/patchbay/v1/inbound_event_service_pb.ts'
import type { JsonObject } from '../../base/index.ts'
import {
  expungeInboundEvent,
  getInboundEvent,
  INBOUND_REPLAY_TASK,
  INBOUND_STATES,
  type InboundEventDetail,
  type InboundEventSummary,
  type InboundFilter,
  type InboundItemRecord,
  listInboundEvents,
  replayInboundEvent,
} from '../../inbound-webhooks/index.ts'
import { startTask } from '../../tasks/index.ts'
import { environmentIdOf } from '../caller.ts'
import { structFrom, valueFrom } from '../messages/struct.ts'
import { defineService, type Finding, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { taskToProto } from './task.ts'
import { checkRange } from './time-range.ts'
import { dateFrom, parseEnum, timestampFrom } from './values.convert.ts'

const { replayInboundEvent: replayOne, replayInboundEvents: replayMany } = InboundEventService.method

/** Shows what third parties sent. */
export function inboundEventService(deps: Pick<ServiceDeps, 'database' | 'secrets'>): ServiceDefinition {
  const { database } = deps
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
      replayInboundEvent: (request, context) =>
        runIdempotent(deps, environmentIdOf(context), replayOne, request, async (tx) => {
          const id = request.id.toLowerCase()
          await replayInboundEvent(tx, environmentIdOf(context), id)
          return detailToProto(await getInboundEvent(tx, environmentIdOf(context), id))
        }),
      replayInboundEvents: (request, context) =>
        runIdempotent(deps, environmentIdOf(context), replayMany, request, async (tx) => {
          const { kind } = INBOUND_REPLAY_TASK
          return taskToProto(
            await startTask(tx, { environmentId: environmentIdOf(context), kind, params: replayParams(request) }),
          )
        }),
      expungeInboundEvent: async ({ id }, context) =>
        detailToProto(await database.transaction((tx) => expungeInboundEvent(tx, environmentIdOf(context), id))),
    },
    {
      listInboundEvents: checkRange,
      replayInboundEvents: (request) => [...checkRange(request), ...checkFilter(request)],
    },
  )
}

/** A finding when a replay has no filter: it would send the events of everything that was ever received again. */
function checkFilter(request: ReplayInboundEventsRequest): readonly Finding[] {
  if (Object.keys(replayParams(request)).length > 0) return []
  const description =
    'must have at least one of state, source_id, integrated_account_id, lookup_value, since and until; for all requests, give since'
  return [{ field: 'request', description, rule: 'filter.required' }]
}

/** The parameters of the task, in the names of the request. */
function replayParams(request: ReplayInboundEventsRequest): JsonObject {
  const { state, sourceId, integratedAccountId, lookupValue, since, until } = request
  const given = {
    state,
    source_id: sourceId,
    integrated_account_id: integratedAccountId,
    lookup_value: lookupValue,
    after: dateFrom(since)?.toISOString(),
    before: dateFrom(until)?.toISOString(),
  }
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
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
