import { newId } from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import {
  findTicksWithRun,
  insertMissedTicks,
  type NewTick,
  queueGroupOf,
  type RunQueue,
  type TriggerTicks,
} from '../runs/index.ts'
import { type CatchUpPlan, type CatchUpPolicy, catchUpTicks } from './catch-up.ts'
import { cronExpression } from './cron-expression.ts'
import type { QueueDepthCache } from './queue-depth-cache.ts'
import { skipReason } from './skip-reason.ts'
import type { DueTrigger } from './sql/due-trigger.ts'
import { suspendSchedule } from './sql/trigger.ts'

/** What firing needs. */
export interface FireDeps {
  readonly queue: Pick<RunQueue, 'enqueueTicks'>
  readonly room: QueueDepthCache
  readonly catchUp: CatchUpPolicy
}

/** A trigger that was taken out of the ticks, and why. */
export interface SuspendedTrigger {
  readonly triggerId: string
  readonly error: string
}

/** What became of due triggers. */
export interface FireReport {
  /** Triggers that were advanced or parked; the rest of those given are still due. */
  readonly handled: number
  /** Ticks that became runs which wait. */
  readonly fired: number
  /** Ticks that became skipped runs, by reason. */
  readonly skipped: Readonly<Record<string, number>>
  readonly missed: number
  readonly parked: readonly SuspendedTrigger[]
  /** The ticks that have become runs, skipped or not. */
  readonly ticks: readonly Date[]
  /** The earliest tick the handled triggers have ahead. */
  readonly nextDueAt: Date | undefined
}

/** Ticks written in one transaction, which bounds how long its row locks last. */
const TICKS_MAX = 2_000

/**
 * Makes the runs of due triggers whose schedules the transaction holds, and moves the schedules on: both or neither.
 *
 * What a tick becomes is decided here, where it goes is copied by the database. A trigger whose expression cannot be
 * evaluated is parked with the reason and does not hold up the others.
 *
 * @param isNew takes for granted that no tick has its run already; if one has, which takes a clock that was set back, the
 * transaction fails with a unique violation. Otherwise they are looked up and passed over.
 */
export async function fireTicks(
  deps: FireDeps,
  tx: Tx,
  due: readonly DueTrigger[],
  now: Date,
  isNew: boolean,
): Promise<FireReport> {
  await deps.room.load(tx, due.map(triggerQueueGroup))
  const { plans: all, parked } = planTicks(deps, due, now)
  const plans = isNew ? all : await withoutRecordedTicks(tx, all)
  const made = plans.flatMap((plan) => plan.ticks)
  if (plans.length > 0) await deps.queue.enqueueTicks(tx, plans.map(ticksOf))
  const missed = plans.flatMap(({ trigger, owed }) => (owed.missed ? [{ ...triggerIds(trigger), ...owed.missed }] : []))
  if (missed.length > 0) await insertMissedTicks(tx, missed)
  for (const { trigger, error } of parked) await suspendSchedule(tx, trigger.triggerId, trigger.nextFireAt, error)
  return {
    handled: plans.length + parked.length,
    fired: made.filter((tick) => tick.skipReason === null).length,
    skipped: countBy(made.flatMap((tick) => tick.skipReason ?? [])),
    missed: missed.reduce((sum, { count }) => sum + count, 0),
    parked: parked.map(({ trigger, error }) => ({ triggerId: trigger.triggerId, error })),
    ticks: made.map(({ scheduledFor }) => scheduledFor),
    nextDueAt: earliest(plans.map(({ owed }) => owed.next)),
  }
}

/** The first of moments in time; undefined of none. */
export function earliest(moments: readonly (Date | undefined)[]): Date | undefined {
  return moments.reduce<Date | undefined>((a, b) => (a === undefined || (b !== undefined && b < a) ? b : a), undefined)
}

interface TriggerPlan {
  readonly trigger: DueTrigger
  readonly owed: CatchUpPlan
  readonly ticks: readonly NewTick[]
}

interface UnplannableTrigger {
  readonly trigger: DueTrigger
  readonly error: string
}

function planTicks(deps: FireDeps, due: readonly DueTrigger[], now: Date) {
  const plans: TriggerPlan[] = []
  const parked: UnplannableTrigger[] = []
  let ticks = 0
  for (const trigger of due) {
    if (ticks >= TICKS_MAX) break
    try {
      const owed = catchUpTicks(cronExpression(trigger.cronExpression), trigger.nextFireAt, now, deps.catchUp)
      const plan = { trigger, owed, ticks: decideTicks(deps.room, trigger, owed.ticks) }
      plans.push(plan)
      ticks += plan.ticks.length
    } catch (error) {
      parked.push({ trigger, error: error instanceof Error ? error.message : String(error) })
    }
  }
  return { plans, parked }
}

/** In the order of the ticks: the first that find room run, those behind them are skipped. */
function decideTicks(room: QueueDepthCache, trigger: DueTrigger, ticks: readonly Date[]): readonly NewTick[] {
  const { environmentId, group } = triggerQueueGroup(trigger)
  let openRuns = trigger.openRuns
  return ticks.map((scheduledFor) => {
    const reason = skipReason(trigger, openRuns, room.isFull(environmentId, group))
    if (reason === null) {
      openRuns++
      room.add(environmentId, group)
    }
    const { triggerId } = trigger
    return { triggerId, environmentId, runId: newId(), scheduledFor, skipReason: reason }
  })
}

async function withoutRecordedTicks(tx: Tx, plans: readonly TriggerPlan[]): Promise<readonly TriggerPlan[]> {
  const known = await findTicksWithRun(
    tx,
    plans.flatMap(({ ticks }) => ticks),
  )
  return plans.map((plan) => ({ ...plan, ticks: plan.ticks.filter(({ runId }) => !known.has(runId)) }))
}

function ticksOf({ trigger, owed, ticks }: TriggerPlan): TriggerTicks {
  const { triggerId, environmentId, region } = trigger
  return { triggerId, environmentId, region, ticks, nextFireAt: owed.next }
}

function triggerIds({ triggerId, environmentId }: DueTrigger) {
  return { triggerId, environmentId }
}

function triggerQueueGroup({ environmentId, destination }: DueTrigger) {
  return { environmentId, group: queueGroupOf(environmentId, destination) }
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
