import { EventSchema } from '../../../../gen/patchbay/v1/event_pb.ts'
import { EventService, type ListEventsRequest } from '../../../../gen/patchbay/v1/event_service_pb.ts'
import { notFound } from '../../../foundation/base/index.ts'
import {
  checkEventTypes,
  type EventFilter,
  type EventRecord,
  eventTypesOf,
  findEvent,
  listEvents,
} from '../../../platform/outbox/index.ts'
import { expungeEvent } from '../../../webhooks/outbound/index.ts'
import { environmentIdOf } from '../caller.ts'
import { defineService, type Finding, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { listRpc } from './list-rpc.ts'
import { shapeOf } from './shape.ts'
import { checkRange } from './time-range.ts'
import { dateFrom } from './values.convert.ts'

/** Reads the events of an environment. */
export function eventService({ database }: Pick<ServiceDeps, 'database'>): ServiceDefinition {
  return defineService(
    EventService,
    {
      getEvent: async ({ id }, context) => {
        const event = await findEvent(database.pool, environmentIdOf(context), id)
        if (event === undefined) throw notFound('event', id)
        return eventToProto(event)
      },
      listEvents: listRpc(EventService.method.listEvents, eventToProto, (request, context) =>
        listEvents(database.pool, environmentIdOf(context), eventFilterFromProto(request), request),
      ),
      expungeEvent: async ({ id }, context) =>
        eventToProto(await database.transaction((tx) => expungeEvent(tx, environmentIdOf(context), id))),
    },
    { listEvents: checkFilter },
  )
}

function checkFilter(request: ListEventsRequest): readonly Finding[] {
  return [...checkRange(request), ...checkEventTypes(request.types, 'types')]
}

function eventFilterFromProto({
  type,
  types,
  subjectId,
  integratedAccountId,
  since,
  until,
}: ListEventsRequest): EventFilter {
  const asked = types.length === 0 ? undefined : eventTypesOf(types)
  const named = type === undefined ? asked : [type].filter((name) => asked?.includes(name) ?? true)
  return { types: named, subjectId, integratedAccountId, since: dateFrom(since), until: dateFrom(until) }
}

/** An event as the contract shows it. */
export const eventToProto = shapeOf(EventSchema).from<EventRecord>({ test: ({ isTest }) => isTest })
