import { DAY_MS } from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import { appendEvents } from '../../platform/outbox/index.ts'
import { failedTriggerPayload } from '../runs/run-payload.ts'
import type { RunQueue } from '../runs/run-queue.ts'
import { findTicksWithRun, insertMissedTicks, type NewTick } from '../runs/sql/tick.ts'
import { type CatchUpPolicy, type CaughtUpTicks, catchUpTicks } from './catch-up.ts'
import { cronExpression } from './cron-expression.ts'
import type { QueueDepthCache } from './queue-depth-cache.ts'
import { decideTicks, triggerQueueGroup } from './skip-reason.ts'
import type { DueTrigger } from './sql/due-trigger.ts'
import { suspendSchedule } from './sql/trigger.ts'

/** What firing ticks needs. */
export interface FireDeps {
  readonly queue: Pick<RunQueue, 'enqueueTicks'>
  readonly depths: QueueDepthCache
  readonly catchUp: CatchUpPolicy
}

/** A trigger whose schedule was suspended by an error. */
export interface SuspendedTrigger {
  readonly triggerId: string
  readonly error: string
}

/** What became of due triggers. */
export interface FireReport {
  /** Triggers that were advanced or suspended; the rest of those given are still due. */
  readonly handled: number
  /** Ticks that became runs in the queue. */
  readonly fired: number
  /** Ticks that became skipped runs, by reason. */
  readonly skipped: Readonly<Record<string, number>>
  readonly missed: number
  readonly suspended: readonly SuspendedTrigger[]
  /** The ticks that have become runs, skipped or not. */
  readonly ticks: readonly Date[]
  /** The earliest tick that the handled triggers have ahead. */
  readonly nextDueAt: Date | undefined
}

/** Ticks written in one transaction, which bounds how long its row locks last. */
const TICKS_MAX = 2_000

/**
 * Turns the due ticks of triggers into runs and advances their schedules, which the transaction has locked: both or neither.
 *
 * Whether a tick runs or is skipped is decided here; resources, arguments and destination are copied by the database. A
 * trigger whose expression cannot be evaluated is suspended with the reason and does not hold up the others.
 *
 * @param isNew assumes that no tick has its run already; if one has, which takes a clock that was set back, the transaction
 * fails with a unique violation. Otherwise such ticks are looked up and passed over.
 */
export async function fireTicks(
  deps: FireDeps,
  tx: Tx,
  due: readonly DueTrigger[],
  now: Date,
  isNew: boolean,
): Promise<FireReport> {
  await deps.depths.load(tx, due.map(triggerQueueGroup))
  const { plans: planned, failed } = planTicks(deps, due, now)
  const plans = isNew ? planned : await withoutRecordedTicks(tx, planned)
  if (plans.length > 0) await deps.queue.enqueueTicks(tx, plans.map(triggerTicks))
  const missed = plans.flatMap(missedTicks)
  if (missed.length > 0) await insertMissedTicks(tx, missed)
  for (const { trigger, error } of failed) await suspendTrigger(tx, trigger, error)
  const ticks = plans.flatMap((plan) => plan.ticks)
  return {
    handled: plans.length + failed.length,
    fired: ticks.filter(({ skipReason }) => skipReason === null).length,
    skipped: countBy(ticks.flatMap(({ skipReason }) => skipReason ?? [])),
    missed: missed.reduce((sum, { count }) => sum + count, 0),
    suspended: failed.map(({ trigger, error }) => ({ triggerId: trigger.triggerId, error })),
    ticks: ticks.map(({ scheduledFor }) => scheduledFor),
    nextDueAt: earliest(plans.map(({ catchUp }) => catchUp.next)),
  }
}

/** The first of moments in time; undefined of none. */
export function earliest(moments: readonly (Date | undefined)[]): Date | undefined {
  return moments.reduce<Date | undefined>((a, b) => (a === undefined || (b !== undefined && b < a) ? b : a), undefined)
}

interface TriggerPlan {
  readonly trigger: DueTrigger
  readonly catchUp: CaughtUpTicks
  readonly ticks: readonly NewTick[]
}

/** Plans triggers in their order, until TICKS_MAX is reached. The ticks of an account that is being deleted are not recorded. */
function planTicks({ depths, catchUp: policy }: FireDeps, due: readonly DueTrigger[], now: Date) {
  const plans: TriggerPlan[] = []
  const failed: { readonly trigger: DueTrigger; readonly error: string }[] = []
  let count = 0
  for (const trigger of due) {
    if (count >= TICKS_MAX) break
    try {
      const catchUp = trigger.isBeingDeleted
        ? { ticks: [], missed: undefined, next: new Date(now.getTime() + DAY_MS) }
        : catchUpTicks(cronExpression(trigger.cronExpression), trigger.nextFireAt, now, policy)
      const ticks = decideTicks(depths, trigger, catchUp.ticks)
      plans.push({ trigger, catchUp, ticks })
      count += ticks.length
    } catch (error) {
      failed.push({ trigger, error: error instanceof Error ? error.message : String(error) })
    }
  }
  return { plans, failed }
}

async function withoutRecordedTicks(tx: Db, plans: readonly TriggerPlan[]): Promise<readonly TriggerPlan[]> {
  const recorded = await findTicksWithRun(
    tx,
    plans.flatMap(({ ticks }) => ticks),
  )
  return plans.map((plan) => ({ ...plan, ticks: plan.ticks.filter(({ runId }) => !recorded.has(runId)) }))
}

function triggerTicks({ trigger: { triggerId, environmentId, region }, catchUp, ticks }: TriggerPlan) {
  return { triggerId, environmentId, region, ticks, nextFireAt: catchUp.next }
}

function missedTicks({ trigger: { triggerId, environmentId }, catchUp: { missed } }: TriggerPlan) {
  return missed === undefined ? [] : [{ triggerId, environmentId, ...missed }]
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

/**
 * Suspends the schedule of a due trigger with the reason, and records `sync_job_cron_trigger:failed`.
 *
 * @returns whether it was suspended; not when it has changed since the tick was read
 */
export async function suspendTrigger(
  tx: Tx,
  { triggerId, nextFireAt }: Pick<DueTrigger, 'triggerId' | 'nextFireAt'>,
  error: string,
): Promise<boolean> {
  const suspended = await suspendSchedule(tx, triggerId, nextFireAt, error)
  if (suspended === undefined) return false
  const { environmentId, integratedAccountId } = suspended
  const payload = failedTriggerPayload({
    ...suspended,
    id: triggerId,
    reason: 'suspended',
    message: error,
    scheduledFor: nextFireAt,
    syncJobRunId: null,
  })
  const type = 'sync_job_cron_trigger:failed'
  await appendEvents(tx, [{ environmentId, type, subjectId: triggerId, integratedAccountId, payload }])
  return true
}
