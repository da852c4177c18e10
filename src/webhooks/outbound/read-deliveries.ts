import { notFound } from '../../foundation/base/index.ts'
import { type Db, type ListPage, type ListPageRequest, listQuery, pageById } from '../../foundation/database/index.ts'
import { type EventRecord, findEvent } from '../../platform/outbox/index.ts'
import type { AttemptRecord, DeliveryRecord } from './delivery.ts'
import {
  countDeliveries,
  type DeliveryCount,
  type DeliveryFilter,
  findDelivery,
  listAttempts,
  listDeliveryRecords,
} from './sql/history.ts'

/** A delivery with its attempts and its event. */
export interface DeliveryDetail extends DeliveryRecord {
  /** First one first; the newest ATTEMPTS_SHOWN_MAX. */
  readonly attemptRecords: readonly AttemptRecord[]
  /** Absent: its day is over. */
  readonly event: EventRecord | undefined
}

/** Counts of the newest deliveries that match a filter. */
export interface DeliveryCounts {
  /** Of deliveries that were counted. */
  readonly total: number
  /** Whether those are all that match. */
  readonly isComplete: boolean
  /** Largest first, each at most VALUES_MAX. */
  readonly states: readonly ValueCount[]
  readonly eventTypes: readonly ValueCount[]
  readonly webhooks: readonly ValueCount[]
}

/** How many have a value. */
interface ValueCount {
  readonly value: string
  readonly count: number
}

/** Each has up to 16 KiB of a response and the headers. */
const ATTEMPTS_SHOWN_MAX = 20
/** Counting so many takes some 10 ms. */
const COUNTED_MAX = 10_000
const VALUES_MAX = 100

/** A page of deliveries, newest first; filters combine with and. @throws Failure PAGE_TOKEN_INVALID */
export async function listDeliveries(
  tx: Db,
  environmentId: string,
  filter: DeliveryFilter,
  request: ListPageRequest,
): Promise<ListPage<DeliveryRecord>> {
  const query = listQuery('delivery', environmentId, filter)
  return await pageById(query, request, (range) => listDeliveryRecords(tx, environmentId, filter, range))
}

/** Counts the newest COUNTED_MAX deliveries that match, by state, event type and webhook. */
export async function summariseDeliveries(
  tx: Db,
  environmentId: string,
  filter: DeliveryFilter,
): Promise<DeliveryCounts> {
  const counts = await countDeliveries(tx, environmentId, filter, COUNTED_MAX)
  const total = counts.reduce((sum, { count }) => sum + count, 0)
  return {
    total,
    isComplete: total < COUNTED_MAX,
    states: sumBy(counts, ({ state }) => state),
    eventTypes: sumBy(counts, ({ eventType }) => eventType),
    webhooks: sumBy(counts, ({ webhookId }) => webhookId),
  }
}

function sumBy(counts: readonly DeliveryCount[], keyOf: (group: DeliveryCount) => string): readonly ValueCount[] {
  const sums = new Map<string, number>()
  for (const group of counts) sums.set(keyOf(group), (sums.get(keyOf(group)) ?? 0) + group.count)
  const largestFirst = [...sums].sort((one, other) => other[1] - one[1]).slice(0, VALUES_MAX)
  return largestFirst.map(([value, count]) => ({ value, count }))
}

/** A delivery with its attempts and its event. @throws Failure RESOURCE_NOT_FOUND */
export async function getDelivery(tx: Db, environmentId: string, id: string): Promise<DeliveryDetail> {
  const delivery = await getDeliveryRecord(tx, environmentId, id)
  const attemptRecords = await listAttempts(tx, environmentId, id, ATTEMPTS_SHOWN_MAX)
  return { ...delivery, attemptRecords, event: await findEvent(tx, environmentId, delivery.eventId) }
}

/** The delivery as it is stored. @throws Failure RESOURCE_NOT_FOUND */
export async function getDeliveryRecord(tx: Db, environmentId: string, id: string): Promise<DeliveryRecord> {
  const delivery = await findDelivery(tx, environmentId, id)
  if (delivery === undefined) throw notFound('webhook_delivery', id)
  return delivery
}
