import type { Json } from '../../base/index.ts'
import { execute, jsonb, query, queryOne, type SqlValue, type Tx } from '../../database/index.ts'
import { type CarriedValues, type QueueSql, queueSql } from './queue-table.ts'

/** An item to be put into a queue. */
export interface WaitingItem {
  readonly id: string
  readonly environmentId: string
  /** Claims are fair between flows. */
  readonly flowId: string
  readonly region: string
  /** Who may claim it. */
  readonly group: string
  /** Absent: at once. */
  readonly availableAt?: Date
  /** Attempts that were made before and count no more. Absent: none. */
  readonly attempt?: number
}

/** What a claimant asks for. */
export interface LeaseRequest {
  readonly group: string
  /** Only items of these regions; null: of any. */
  readonly regions: readonly string[] | null
  /** One id per item wanted at most. */
  readonly leaseIds: readonly string[]
  /** Items of the group that may be held at once, by all holders together, advisory under concurrency; null: any number. */
  readonly heldMax: number | null
  readonly holder: string
  readonly leaseMs: number
}

/** Names a lease; the lease id is the fence. */
export interface LeaseKey {
  readonly id: string
  readonly leaseId: string
}

/** A lease just taken. */
export interface TakenLease extends LeaseKey {
  readonly environmentId: string
  readonly flowId: string
  /** From 1. */
  readonly attempt: number
  /** Attempts up to this one are no part of the limit. */
  readonly attemptBase: number
  readonly expiresAt: Date
}

/** A lease that goes on. */
export interface RenewedLease extends LeaseKey {
  readonly expiresAt: Date
  readonly isStopRequested: boolean
}

/** What a held item becomes. */
export interface LeaseSettlement extends LeaseKey {
  readonly status: string
  readonly error: Json
  /** Attempts that count so far. */
  readonly attempt: number
  /** Back into the queue after so long; null: it is over. */
  readonly delayMs: number | null
}

/** What a held item has become. */
export interface SettledItem extends LeaseKey {
  readonly environmentId: string
  readonly flowId: string
  /** `stopped` also for an item that was to wait again although a stop had been requested. */
  readonly status: string
  readonly error: Json
  /** Attempts that count so far. */
  readonly attempt: number
  /** It is final; otherwise it waits again. */
  readonly isOver: boolean
}

/** A lease whose holder is gone, or did not stop in time. */
export interface ExpiredLease extends LeaseKey {
  readonly attempt: number
  readonly attemptBase: number
  readonly isStopRequested: boolean
}

/** How many items wait in a group of an environment. */
export interface WaitingCount {
  readonly environmentId: string
  readonly group: string
  readonly waiting: number
}

/** Puts items into the queue, in the caller's transaction; they rank behind what their flow has waiting. */
export async function enqueueItems<Carried extends CarriedValues>(
  tx: Tx,
  sql: QueueSql<Carried>,
  items: readonly (WaitingItem & Carried)[],
): Promise<void> {
  await execute(tx, sql.enqueue, [
    items.map(({ id }) => id),
    items.map(({ flowId }) => flowId),
    items.map(({ environmentId }) => environmentId),
    items.map(({ region }) => region),
    items.map(({ group }) => group),
    ...sql.carried.map(({ field }) => items.map((item) => item[field])),
    items.map(({ availableAt }) => availableAt ?? null),
    items.map(({ attempt }) => attempt ?? 0),
  ])
}

/**
 * Leases the lowest-ranked available items whose flow is free.
 *
 * Rides on the claim index of the group. Rows another claimant is taking are passed over; two items of one exclusive flow
 * are never both leased, whoever claims at the same moment.
 */
export async function claimItems<Carried extends CarriedValues>(
  tx: Tx,
  sql: QueueSql<Carried>,
  request: LeaseRequest,
): Promise<readonly (TakenLease & Carried)[]> {
  const { group, regions, leaseIds, heldMax, holder, leaseMs } = request
  const wanted: SqlValue[] = [leaseIds.length, heldMax, heldMax, group, leaseIds, holder, leaseMs / 1000]
  return await query(tx, sql.claim, [group, regions, regions, ...wanted])
}

/** Renews the leases that are still the given ones, and returns those. */
export async function renewLeases(
  tx: Tx,
  sql: QueueSql<never>,
  held: readonly LeaseKey[],
  leaseMs: number,
): Promise<readonly RenewedLease[]> {
  return await query(tx, sql.heartbeat, [held.map(({ id }) => id), held.map(({ leaseId }) => leaseId), leaseMs / 1000])
}

/**
 * Ends the leases that are still the given ones, lets wait what is to wait again, and returns what they were leases on.
 *
 * An item with a delay gives its turn away: whatever waits in its flow now goes first.
 */
export async function settleLeases<Carried extends CarriedValues>(
  tx: Tx,
  sql: QueueSql<Carried>,
  settlements: readonly LeaseSettlement[],
): Promise<readonly (SettledItem & Carried)[]> {
  return await query(tx, sql.settle, [
    settlements.map(({ id }) => id),
    settlements.map(({ leaseId }) => leaseId),
    settlements.map(({ status }) => status),
    settlements.map(({ error }) => (error === null ? null : jsonb(error))),
    settlements.map(({ attempt }) => attempt),
    settlements.map(({ delayMs }) => delayMs),
  ])
}

/** By item that is held: the attempts up to which none is part of the limit, which moves while progress is made. */
export async function findAttemptBases(
  tx: Tx,
  sql: QueueSql<never>,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const found = await query<{ readonly id: string; readonly attemptBase: number }>(tx, sql.attemptBases, [ids])
  return new Map(found.map(({ id, attemptBase }) => [id, attemptBase]))
}

/** Locks leases past their end, or asked to stop longer ago than the grace; passes over those being settled or renewed. */
export async function lockExpiredLeases(
  tx: Tx,
  sql: QueueSql<never>,
  stopGraceMs: number,
  limit: number,
): Promise<readonly ExpiredLease[]> {
  return await query(tx, sql.expired, [stopGraceMs / 1000, limit])
}

/** Counts what waits in each of the groups, up to `atMost`. Rides on the group index. */
export async function countWaiting(
  tx: Tx,
  sql: QueueSql<never>,
  groups: readonly { readonly environmentId: string; readonly group: string }[],
  atMost: number,
): Promise<readonly WaitingCount[]> {
  return await query(tx, sql.count, [
    atMost,
    groups.map(({ environmentId }) => environmentId),
    groups.map(({ group }) => group),
  ])
}

/** What a run carries through the queue. */
export type RunCarried = {
  readonly scheduledFor: Date
  readonly triggerId: string | null
}

/** The queue of sync runs. An account is an exclusive flow: the unique index run_lease_account allows it one running run. */
export const RUN_QUEUE = queueSql<RunCarried>({
  waiting: 'run_queue',
  lease: 'run_lease',
  item: 'run_id',
  flow: 'integrated_account_id',
  carried: [
    { column: 'scheduled_for', field: 'scheduledFor', type: 'timestamptz' },
    { column: 'trigger_id', field: 'triggerId', type: 'uuid' },
  ],
})

/** What a request to stop found. */
export interface StopFound {
  /** Set when the run waited and has left the queue. */
  readonly scheduledFor: Date | null
  readonly triggerId: string | null
  /** The run is held; its holder learns of the request at the next heartbeat. */
  readonly isHeld: boolean
}

/**
 * Takes a waiting run out of the queue, or notes on its lease that it should stop (the first request counts).
 *
 * Finds neither when a claim moves the run at this very moment: ask again.
 */
export async function requestStop(tx: Tx, environmentId: string, runId: string): Promise<StopFound | undefined> {
  return await queryOne(
    tx,
    `with waiting as (
       delete from run_queue where run_id = ? and environment_id = ? returning scheduled_for, trigger_id
     ), held as (
       update run_lease set stop_requested_at = coalesce(stop_requested_at, now())
       where run_id = ? and environment_id = ? returning run_id
     )
     select scheduled_for as "scheduledFor", trigger_id as "triggerId", false as "isHeld" from waiting
     union all select null, null, true from held`,
    [runId, environmentId, runId, environmentId],
  )
}

/** Ends leases without settling anything, for runs whose record is gone. */
export async function dropLeases(tx: Tx, leases: readonly LeaseKey[]): Promise<void> {
  await execute(
    tx,
    `delete from run_lease l using unnest(?::uuid[], ?::uuid[]) as v (run_id, lease_id)
     where l.run_id = v.run_id and l.lease_id = v.lease_id`,
    [leases.map(({ id }) => id), leases.map(({ leaseId }) => leaseId)],
  )
}
