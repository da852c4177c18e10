import type { Clock } from '../base/clock.ts'
import { newId } from '../base/ids.ts'
import type { PollLoopSpec } from '../base/poll-loop.ts'
import type { Database, Tx } from '../database/database.ts'
import { claimDue, type DueSettlement, type DueTable, type Lease, settleDue } from './sql/due.ts'

/** What workers of due rows have. */
export interface DueWorkDeps {
  readonly database: Pick<Database, 'pool' | 'transaction'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Only rows of these regions. Absent: all. */
  readonly regions?: readonly string[] | undefined
}

/** What became of a row, and what else is written in the transaction that ends the lease, if it is held until then. */
export interface DueResult extends DueSettlement {
  record?(tx: Tx): Promise<void>
}

/** A kind of due work. */
export interface DueWork<Work extends object> {
  readonly table: DueTable<Work>
  readonly leaseMs: number
  /** Rows of one round, which lasts as long as the slowest of them. Absent: one. */
  readonly batch?: number
  /**
   * Works on a row.
   *
   * @param requestedMs `Clock.monotonicMs` before the claim, from which a holder counts that may have been suspended
   * @returns `undefined`: the lease has ended, or is left to expire. What it throws is tried again
   */
  work(lease: Lease<Work>, requestedMs: number): Promise<DueResult | undefined>
}

/** Until work is tried again that threw. */
const RETRY_MS = 10_000

/**
 * One round: leases the rows that have been due the longest, works on them and settles the leases. With nothing due it is one
 * look at an index. The lease of work that throws is given back.
 *
 * @returns whether more rows may be due
 */
export async function runDue<Work extends object>(
  { database, clock, regions }: DueWorkDeps,
  { table, leaseMs, batch = 1, work }: DueWork<Work>,
): Promise<boolean> {
  const requestedMs = clock.monotonicMs()
  const leases = await claimDue(database.pool, table, { leaseId: newId(), leaseMs, regions, limit: batch })
  const ended = await Promise.allSettled(
    leases.map(async (lease) => {
      try {
        const result = await work(lease, requestedMs)
        if (result !== undefined) await endLease(database, table, lease, result)
      } catch (error) {
        await settleDue(database.pool, table, lease, { delayMs: Math.min(leaseMs, RETRY_MS) })
        throw error
      }
    }),
  )
  for (const each of ended) if (each.status === 'rejected') throw each.reason
  return leases.length === batch
}

async function endLease<Work extends object>(
  database: DueWorkDeps['database'],
  table: DueTable<Work>,
  lease: Lease<Work>,
  { record, ...settlement }: DueResult,
): Promise<void> {
  if (record === undefined) await settleDue(database.pool, table, lease, settlement)
  else
    await database.transaction(async (tx) => {
      if (await settleDue(tx, table, lease, settlement)) await record(tx)
    })
}

/** Loops of the same work, so that a third party that does not answer blocks one of them. */
export function parallelLoops(loops: number, { name, ...spec }: PollLoopSpec): readonly PollLoopSpec[] {
  return Array.from({ length: loops }, (_, index) => ({ name: `${name}-${index + 1}`, ...spec }))
}
