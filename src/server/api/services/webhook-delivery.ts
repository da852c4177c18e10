import type { ServiceImpl } from '@connectrpc/connect'
import {
  WebhookDeliveryAttemptSchema,
  WebhookDeliverySchema,
  WebhookDeliveryTimingsSchema,
} from '../../../../gen/patchbay/v1/webhook_delivery_pb.ts'
import { type ListWebhookDeliveriesRequest, WebhookService } from '../../../../gen/patchbay/v1/webhook_service_pb.ts'
import {
  type AttemptRecord,
  DELIVERY_ATTEMPTS_MAX,
  DELIVERY_STATES,
  type DeliveryDetail,
  type DeliveryFilter,
  type DeliveryRecord,
  getDelivery,
  type HeaderPairs,
  listDeliveries,
  replayDelivery,
  startRecovery,
  summariseDeliveries,
  testWebhook,
} from '../../../webhooks/outbound/index.ts'
import { environmentIdOf } from '../caller.ts'
import type { ServiceDeps } from './deps.ts'
import { eventToProto } from './event.ts'
import { runIdempotent } from './idempotency.ts'
import { shapeOf } from './shape.ts'
import { taskToProto } from './task.ts'
import type { RangeRequest } from './time-range.ts'
import { dateFrom, parseEnum, timestampFrom } from './values.convert.ts'

const {
  testWebhook: testMethod,
  replayWebhookDelivery,
  recoverWebhookDeliveries,
  replayMissingWebhookDeliveries,
} = WebhookService.method

type DeliveryMethod =
  | 'listWebhookDeliveries'
  | 'getWebhookDelivery'
  | 'testWebhook'
  | 'replayWebhookDelivery'
  | 'recoverWebhookDeliveries'
  | 'replayMissingWebhookDeliveries'

/** The operations that show deliveries and send again what a webhook did not get. */
export function webhookDeliveryHandlers(
  deps: Pick<ServiceDeps, 'database' | 'secrets' | 'clock'>,
): Pick<ServiceImpl<typeof WebhookService>, DeliveryMethod> {
  const { database } = deps
  return {
    listWebhookDeliveries: async (request, context) => {
      const [environmentId, filter] = [environmentIdOf(context), deliveryFilterFromProto(request)]
      const page = await listDeliveries(database.pool, environmentId, filter, request)
      const counts = request.includeCounts ? await countsOf(deps, environmentId, filter) : undefined
      return { webhookDeliveries: page.items.map(deliveryToProto), nextPageToken: page.nextPageToken, counts }
    },
    getWebhookDelivery: async ({ id }, context) =>
      deliveryToProto(await getDelivery(database.pool, environmentIdOf(context), id)),
    testWebhook: (request, context) =>
      runIdempotent(deps, environmentIdOf(context), testMethod, request, async (tx) =>
        deliveryToProto(await testWebhook(tx, environmentIdOf(context), request.id, request.eventType)),
      ),
    replayWebhookDelivery: (request, context) =>
      runIdempotent(deps, environmentIdOf(context), replayWebhookDelivery, request, async (tx) =>
        deliveryToProto(await replayDelivery(tx, environmentIdOf(context), request.id)),
      ),
    recoverWebhookDeliveries: (request, context) =>
      runIdempotent(deps, environmentIdOf(context), recoverWebhookDeliveries, request, async (tx) =>
        taskToProto(await startRecovery(deps, tx, environmentIdOf(context), request.id, 'recover', rangeFrom(request))),
      ),
    replayMissingWebhookDeliveries: (request, context) =>
      runIdempotent(deps, environmentIdOf(context), replayMissingWebhookDeliveries, request, async (tx) =>
        taskToProto(await startRecovery(deps, tx, environmentIdOf(context), request.id, 'missing', rangeFrom(request))),
      ),
  }
}

function rangeFrom({ since, until }: RangeRequest) {
  const from = dateFrom(since)
  if (from === undefined) throw new Error('the contract let a range without a beginning through')
  return { since: from, until: dateFrom(until) }
}

function deliveryFilterFromProto(request: ListWebhookDeliveriesRequest): DeliveryFilter {
  const { eventType, webhookId, integratedAccountId, eventId } = request
  return {
    state: parseEnum(DELIVERY_STATES, request.state),
    eventType,
    webhookId,
    integratedAccountId,
    eventId,
    since: dateFrom(request.since),
    until: dateFrom(request.until),
  }
}

async function countsOf({ database }: Pick<ServiceDeps, 'database'>, environmentId: string, filter: DeliveryFilter) {
  const { total, isComplete, states, eventTypes, webhooks } = await summariseDeliveries(
    database.pool,
    environmentId,
    filter,
  )
  return { total, isComplete, states: [...states], eventTypes: [...eventTypes], webhookIds: [...webhooks] }
}

const timingsToProto = shapeOf(WebhookDeliveryTimingsSchema).from<AttemptRecord>()

const attemptToProto = shapeOf(WebhookDeliveryAttemptSchema).from<AttemptRecord>({
  number: ({ n }) => n,
  finishedAt: ({ startedAt, totalMs }) => timestampFrom(new Date(startedAt.getTime() + totalMs)),
  timings: timingsToProto,
  requestHeaders: ({ requestHeaders }) => headersToProto(requestHeaders),
  responseHeaders: ({ responseHeaders }) => headersToProto(responseHeaders ?? []),
})

/** A delivery; the answer about one alone has its attempts and its event. */
const deliveryToProto = shapeOf(WebhookDeliverySchema).from<DeliveryRecord & Partial<DeliveryDetail>>({
  attemptCount: ({ attempts }) => attempts,
  attemptCountMax: () => DELIVERY_ATTEMPTS_MAX,
  attempts: ({ attemptRecords }) => attemptRecords?.map(attemptToProto),
  event: ({ event }) => event && eventToProto(event),
})

function headersToProto(headers: HeaderPairs) {
  return headers.map(([name, value]) => ({ name, value }))
}
