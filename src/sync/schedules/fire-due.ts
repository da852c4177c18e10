import { type Database, isDataError } from '../../foundation/database/index.ts'
import {
  earliest,
  type FireDeps,
  type FireReport,
  fireTicks,
  type SuspendedTrigger,
  suspendTrigger,
} from './fire-ticks.ts'
import type { ShardCursors } from './shard-cursors.ts'
import { claimDueTriggers, type DueTrigger, findNextDue, type NextDue } from './sql/due-trigger.ts'

/** What a pass over the schedules needs. */
export interface FireDueDeps extends FireDeps {
  readonly database: Database
  /** Only triggers whose account lives in one of these. Absent: all. */
  readonly regions?: readonly string[] | undefined
  /** Called with the lateness of each committed tick, in seconds by the database's clock. */
  readonly onTicks?: ((latenessSeconds: readonly number[]) => void) | undefined
}

/** What a pass did. */
export interface PassReport {
  readonly fired: number
  readonly skipped: Readonly<Record<string, number>>
  readonly missed: number
  readonly suspended: readonly SuspendedTrigger[]
  /** The database's clock when the pass began. */
  readonly now: Date
  /** Lateness of the oldest due tick when the pass began. */
  readonly oldestDueAgeSeconds: number
  /** The earliest tick that lies ahead; undefined without any. */
  readonly nextDueAt: Date | undefined
}

/** Triggers locked in one transaction: large enough to share its cost, small enough to hold locks for milliseconds. */
const BATCH_MAX = 500
/** Shards of one pass that are worked on at once; each takes a connection. */
const SHARD_CONCURRENCY = 4

/**
 * One pass: fires every tick that was due when it began.
 *
 * Any number of processes may do this at the same moment: each locks the rows it takes and passes over those that are
 * taken. Killed at any point, the transaction in flight leaves nothing behind, and its triggers are still due.
 *
 * @throws errors of the database; what was committed before stays, the rest is still due
 */
export async function fireDue(deps: FireDueDeps, cursors: ShardCursors): Promise<PassReport> {
  const { database, regions = null } = deps
  const shardHeads = await findNextDue(database.pool, cursors.startPass(performance.now()), regions)
  const now = shardHeads[0]?.now ?? new Date()
  const due = shardHeads.filter(({ nextFireAt }) => nextFireAt !== null && nextFireAt <= now)
  const reports: FireReport[] = []
  const beganMs = performance.now()
  const shards = due.map(({ shard }) => shard)
  const worker = async (): Promise<void> => {
    for (let shard = shards.shift(); shard !== undefined; shard = shards.shift())
      for await (const { ticks, ...report } of fireShard(deps, cursors, shard, now)) {
        reports.push({ ...report, ticks: [] }) // a burst has a million
        const nowMs = now.getTime() + performance.now() - beganMs
        deps.onTicks?.(ticks.map((tick) => (nowMs - tick.getTime()) / 1_000))
      }
  }
  await Promise.all(Array.from({ length: SHARD_CONCURRENCY }, worker))
  return passReport(shardHeads, now, reports)
}

async function* fireShard(
  deps: FireDueDeps,
  cursors: ShardCursors,
  shard: number,
  now: Date,
): AsyncGenerator<FireReport> {
  // Triggers to fire one by one, because one of them fails its batch: a value that the database rejects, a tick with a run.
  let isolateCount = 0
  for (let isDone = false; !isDone; ) {
    const batch: ClaimedBatch = { claimed: [], limit: isolateCount > 0 ? 1 : BATCH_MAX }
    try {
      const report = await fireBatch(deps, cursors, shard, now, batch)
      isDone = batch.claimed.length < batch.limit && report.handled === batch.claimed.length
      yield report
    } catch (error) {
      const [first] = batch.claimed
      if (first === undefined || !isDataError(error)) throw error
      if (batch.limit === 1) yield await suspend(deps, first, error)
      else isolateCount = batch.claimed.length + 1
    }
    isolateCount = Math.max(0, isolateCount - 1)
  }
  cursors.finishShard(shard, now)
}

/** Triggers that a transaction claimed, kept for when it fails. */
interface ClaimedBatch {
  claimed: readonly DueTrigger[]
  readonly limit: number
}

async function fireBatch(
  deps: FireDueDeps,
  cursors: ShardCursors,
  shard: number,
  now: Date,
  batch: ClaimedBatch,
): Promise<FireReport> {
  const report = await deps.database.transaction(async (tx) => {
    batch.claimed = await claimDueTriggers(tx, shard, cursors.cursor(shard), now, deps.regions ?? null, batch.limit)
    return batch.claimed.length === 0 ? NOTHING : await fireTicks(deps, tx, batch.claimed, now, batch.limit > 1)
  })
  const last = batch.claimed[report.handled - 1]
  if (last !== undefined) cursors.advance(shard, { at: last.nextFireAt, triggerId: last.triggerId })
  return report
}

async function suspend({ database }: FireDueDeps, trigger: DueTrigger, cause: unknown): Promise<FireReport> {
  const { triggerId } = trigger
  const message = cause instanceof Error ? cause.message : String(cause)
  const isSuspended = await database.transaction((tx) => suspendTrigger(tx, trigger, message))
  return { ...NOTHING, handled: 1, suspended: isSuspended ? [{ triggerId, error: message }] : [] }
}

const NOTHING: FireReport = {
  handled: 0,
  fired: 0,
  skipped: {},
  missed: 0,
  suspended: [],
  ticks: [],
  nextDueAt: undefined,
}

function passReport(shardHeads: readonly NextDue[], now: Date, reports: readonly FireReport[]): PassReport {
  const ticks = shardHeads.flatMap(({ nextFireAt }) => nextFireAt ?? [])
  const oldest = earliest(ticks.filter((tick) => tick <= now)) ?? now
  const skipped: Record<string, number> = {}
  for (const report of reports)
    for (const [reason, count] of Object.entries(report.skipped)) skipped[reason] = (skipped[reason] ?? 0) + count
  return {
    fired: sum(reports.map(({ fired }) => fired)),
    skipped,
    missed: sum(reports.map(({ missed }) => missed)),
    suspended: reports.flatMap(({ suspended }) => suspended),
    now,
    oldestDueAgeSeconds: (now.getTime() - oldest.getTime()) / 1000,
    nextDueAt: earliest([...ticks.filter((tick) => tick > now), ...reports.map(({ nextDueAt }) => nextDueAt)]),
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
