import {
  claimDue,
  type Database,
  type DueHead,
  type DueTrigger,
  isRowError,
  parkSchedule,
  probeDue,
} from '../../storage/index.ts'
import type { DueScan } from './due-scan.ts'
import { earliest, type FireDeps, type FireReport, fireTicks, type Parked } from './fire-ticks.ts'

/** What a pass over the schedules needs. */
export interface FireDueDeps extends FireDeps {
  readonly database: Database
  /** Moves the database's clock, for tests. Absent: the database decides what is due. */
  readonly now?: (() => Date) | undefined
  /** Only triggers whose account lives in one of these. Absent: all. */
  readonly regions?: readonly string[] | undefined
  /** Told how late each tick was, in seconds by the database's clock, once it is committed. */
  readonly onTicks?: ((latenessSeconds: readonly number[]) => void) | undefined
}

/** What a pass did. */
export interface PassReport {
  readonly fired: number
  readonly skipped: Readonly<Record<string, number>>
  readonly missed: number
  readonly parked: readonly Parked[]
  /** The database's clock when the pass began. */
  readonly now: Date
  /** How late the latest trigger was when the pass began. */
  readonly oldestDueAgeSeconds: number
  /** The earliest tick that lies ahead; undefined without any. */
  readonly nextDueAt: Date | undefined
}

/** Triggers locked in one transaction: large enough to share its cost, small enough to hold locks for milliseconds. */
const BATCH = 500
/** Shards of one pass that are worked on at once; each takes a connection. */
const SHARDS_AT_ONCE = 4

/**
 * One pass: fires every tick that was due when it began.
 *
 * Any number of processes may do this at the same moment: each locks the rows it takes and passes over those that are
 * taken. Killed at any point, the transaction in flight leaves nothing behind, and its triggers are still due.
 *
 * @throws whatever the database throws; what was committed before stays, the rest is still due
 */
export async function fireDue(deps: FireDueDeps, scan: DueScan): Promise<PassReport> {
  const { database, now, regions = null } = deps
  const heads = await probeDue(database.direct, scan.begin(performance.now()), regions, now?.() ?? null)
  const began = heads[0]?.now ?? new Date()
  const due = heads.filter(({ nextFireAt }) => nextFireAt !== null && nextFireAt <= began)
  const reports: FireReport[] = []
  const beganMs = performance.now()
  const shards = due.map(({ shard }) => shard)
  const lane = async (): Promise<void> => {
    for (let shard = shards.shift(); shard !== undefined; shard = shards.shift())
      for await (const { ticks, ...report } of fireShard(deps, scan, shard, began)) {
        reports.push({ ...report, ticks: [] }) // a burst has a million
        const nowMs = began.getTime() + performance.now() - beganMs
        deps.onTicks?.(ticks.map((tick) => (nowMs - tick.getTime()) / 1_000))
      }
  }
  await Promise.all(Array.from({ length: SHARDS_AT_ONCE }, lane))
  return passReport(heads, began, reports)
}

async function* fireShard(deps: FireDueDeps, scan: DueScan, shard: number, now: Date): AsyncGenerator<FireReport> {
  // Rows to take one by one, because one of them spoils its batch: a value the database refuses, a tick that has its run.
  let suspects = 0
  for (let isDone = false; !isDone; ) {
    const batch: Batch = { claimed: [], limit: suspects > 0 ? 1 : BATCH }
    try {
      const report = await fireBatch(deps, scan, shard, now, batch)
      isDone = batch.claimed.length < batch.limit && report.handled === batch.claimed.length
      yield report
    } catch (error) {
      const [first] = batch.claimed
      if (first === undefined || !isRowError(error)) throw error
      if (batch.limit === 1) yield await park(deps, first, error)
      else suspects = batch.claimed.length + 1
    }
    suspects = Math.max(0, suspects - 1)
  }
  scan.end(shard, now)
}

/** What a transaction claimed, kept for when it fails. */
interface Batch {
  claimed: readonly DueTrigger[]
  readonly limit: number
}

async function fireBatch(
  deps: FireDueDeps,
  scan: DueScan,
  shard: number,
  now: Date,
  batch: Batch,
): Promise<FireReport> {
  const report = await deps.database.transaction(async (tx) => {
    batch.claimed = await claimDue(tx, shard, scan.position(shard), now, deps.regions ?? null, batch.limit)
    return batch.claimed.length === 0 ? NOTHING : await fireTicks(deps, tx, batch.claimed, now, batch.limit > 1)
  })
  const last = batch.claimed[report.handled - 1]
  if (last !== undefined) scan.moveTo(shard, { at: last.nextFireAt, triggerId: last.triggerId })
  return report
}

async function park({ database }: FireDueDeps, trigger: DueTrigger, cause: unknown): Promise<FireReport> {
  const { triggerId, nextFireAt } = trigger
  const message = cause instanceof Error ? cause.message : String(cause)
  const isParked = await parkSchedule(database.direct, triggerId, nextFireAt, message)
  return { ...NOTHING, handled: 1, parked: isParked ? [{ triggerId, error: message }] : [] }
}

const NOTHING: FireReport = {
  handled: 0,
  fired: 0,
  skipped: {},
  missed: 0,
  parked: [],
  ticks: [],
  nextDueAt: undefined,
}

function passReport(heads: readonly DueHead[], now: Date, reports: readonly FireReport[]): PassReport {
  const ticks = heads.flatMap(({ nextFireAt }) => nextFireAt ?? [])
  const oldest = earliest(ticks.filter((tick) => tick <= now)) ?? now
  const skipped: Record<string, number> = {}
  for (const report of reports)
    for (const [reason, count] of Object.entries(report.skipped)) skipped[reason] = (skipped[reason] ?? 0) + count
  return {
    fired: sum(reports.map(({ fired }) => fired)),
    skipped,
    missed: sum(reports.map(({ missed }) => missed)),
    parked: reports.flatMap(({ parked }) => parked),
    now,
    oldestDueAgeSeconds: (now.getTime() - oldest.getTime()) / 1000,
    nextDueAt: earliest([...ticks.filter((tick) => tick > now), ...reports.map(({ nextDueAt }) => nextDueAt)]),
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
