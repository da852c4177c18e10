import type { MessageInitShape } from '@bufbuild/protobuf'
import type { EventSchema } from '../../../gen/patchbay/v1/event_pb.ts'
import { EventService, type ListEventsRequest } from '../../../gen/patchbay/v1/event_service_pb.ts'
import { notFound } from '../../base/index.ts'
import { expungeEvent } from '../../deliveries/index.ts'
import {
  checkEventTypes,
  type EventFilter,
  type EventRecord,
  eventTypesOf,
  findEvent,
  listEvents,
} from '../../events/index.ts'
import { environmentIdOf } from '../caller.ts'
import { structFrom } from '../messages/struct.ts'
import { defineService, type Finding, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { checkRange } from './time-range.ts'
import { dateFrom, timestampFrom } from './values.convert.ts'

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
      listEvents: async (request, context) => {
        const [environmentId, filter] = [environmentIdOf(context), eventFilterFromProto(request)]
        const page = await listEvents(database.pool, environmentId, filter, request)
        return { events: page.items.map(eventToProto), nextPageToken: page.nextPageToken }
      },
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
export function eventToProto(event: EventRecord): MessageInitShape<typeof EventSchema> {
  return {
    id: event.id,
    environmentId: event.environmentId,
    type: event.type,
    subjectId: event.subjectId ?? undefined,
    integratedAccountId: event.integratedAccountId ?? undefined,
    payload: structFrom(event.payload),
    createdAt: timestampFrom(event.createdAt),
    test: event.isTest ?? false,
    expungedAt: timestampFrom(event.expungedAt),
  }
}
