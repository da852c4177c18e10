import type { MessageInitShape } from '@bufbuild/protobuf'
import type { EventSchema } from '../../../gen/patchbay/v1/event_pb.ts'
import { EventService } from '../../../gen/patchbay/v1/event_service_pb.ts'
import { notFound } from '../../base/index.ts'
import { expungeEvent } from '../../deliveries/index.ts'
import { type EventRecord, findEvent, listEvents } from '../../events/index.ts'
import { environmentIdOf } from '../caller.ts'
import { structFrom } from '../messages/struct.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { queryOf } from './page.ts'
import { timestampFrom } from './values.convert.ts'

/** Reads the events of an environment. */
export function eventService({ database }: Pick<ServiceDeps, 'database'>): ServiceDefinition {
  return defineService(EventService, {
    getEvent: async ({ id }, context) => {
      const event = await findEvent(database.pool, environmentIdOf(context), id)
      if (event === undefined) throw notFound('event', id)
      return eventToProto(event)
    },
    listEvents: async (request, context) => {
      const { type, subjectId } = request
      const query = queryOf('event', environmentIdOf(context), { type, subjectId })
      const page = await listEvents(database.pool, environmentIdOf(context), { type, subjectId }, query, request)
      return { events: page.items.map(eventToProto), nextPageToken: page.nextPageToken }
    },
    expungeEvent: async ({ id }, context) =>
      eventToProto(await database.transaction((tx) => expungeEvent(tx, environmentIdOf(context), id))),
  })
}

/** An event as the contract shows it. */
export function eventToProto(event: EventRecord): MessageInitShape<typeof EventSchema> {
  return {
    id: event.id,
    environmentId: event.environmentId,
    type: event.type,
    subjectId: event.subjectId ?? undefined,
    payload: structFrom(event.payload),
    createdAt: timestampFrom(event.createdAt),
    expungedAt: timestampFrom(event.expungedAt),
  }
}
