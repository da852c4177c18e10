import { isUtf8 } from 'node:buffer'
import { InboundEventSchema } from '../../../../gen/patchbay/v1/inbound_event_pb.ts'
import {
  InboundEventService,
  type ListInboundEventsRequest,
  type ReplayInboundEventsRequest,
} from '../../../../gen/patchbay/v1/inbound_event_service_pb.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import { startTask } from '../../../foundation/queue/index.ts'
import {
  expungeInboundEvent,
  getInboundEvent,
  INBOUND_REPLAY_TASK,
  INBOUND_STATES,
  type InboundEventDetail,
  type InboundEventSummary,
  type InboundFilter,
  listInboundEvents,
  replayInboundEvent,
} from '../../../webhooks/inbound/index.ts'
import { environmentIdOf } from '../caller.ts'
import { structFrom, valueFrom } from '../messages/struct.ts'
import { defineService, type Finding, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { listRpc } from './list-rpc.ts'
import { shapeOf } from './shape.ts'
import { taskToProto } from './task.ts'
import { checkRange } from './time-range.ts'
import { dateFrom, parseEnum } from './values.convert.ts'

const { replayInboundEvent: replayOne, replayInboundEvents: replayMany } = InboundEventService.method

/** Shows what third parties sent. */
export function inboundEventService(deps: Pick<ServiceDeps, 'database' | 'secrets'>): ServiceDefinition {
  const { database } = deps
  return defineService(
    InboundEventService,
    {
      getInboundEvent: async ({ id }, context) =>
        inboundEventToProto(await getInboundEvent(database.pool, environmentIdOf(context), id)),
      listInboundEvents: listRpc(
        InboundEventService.method.listInboundEvents,
        inboundEventToProto,
        (request, context) =>
          listInboundEvents(database.pool, environmentIdOf(context), inboundFilterFromProto(request), request),
      ),
      replayInboundEvent: (request, context) =>
        runIdempotent(deps, environmentIdOf(context), replayOne, request, async (tx) => {
          const id = request.id.toLowerCase()
          await replayInboundEvent(tx, environmentIdOf(context), id)
          return inboundEventToProto(await getInboundEvent(tx, environmentIdOf(context), id))
        }),
      replayInboundEvents: (request, context) =>
        runIdempotent(deps, environmentIdOf(context), replayMany, request, async (tx) => {
          const { kind } = INBOUND_REPLAY_TASK
          return taskToProto(
            await startTask(tx, { environmentId: environmentIdOf(context), kind, params: replayParams(request) }),
          )
        }),
      expungeInboundEvent: async ({ id }, context) =>
        inboundEventToProto(await database.transaction((tx) => expungeInboundEvent(tx, environmentIdOf(context), id))),
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

/** What was received; the answer about one event alone has its content, its items and its trace. */
const inboundEventToProto = shapeOf(InboundEventSchema).from<InboundEventSummary & Partial<InboundEventDetail>>({
  duplicateCount: ({ duplicates }) => duplicates,
  // Of one event alone.
  trace: ({ items, trace }) => items && trace && structFrom(trace),
  headers: ({ content }) => content?.headers.map(([name, value]) => ({ name, value })),
  body: ({ content }) => content && textOf(content.body),
  bodyBase64: ({ content }) => content && base64Of(content.body),
  payload: ({ content }) =>
    content === undefined || content.payload === null ? undefined : valueFrom(content.payload),
})

/** Text as text, anything else in base64. */
function textOf(body: Uint8Array): string | undefined {
  return isUtf8(body) ? Buffer.from(body).toString('utf8') : undefined
}

/** Of what is no text. */
function base64Of(body: Uint8Array): string | undefined {
  return isUtf8(body) ? undefined : Buffer.from(body).toString('base64')
}
