import { Cron } from 'croner'
import { reportAtLeast, reportAtMost } from '../../bench/support/report.ts'
import type { ClusterTrigger } from './tick-cluster.ts'

/** What became of the ticks that were owed. */
export interface TickCheck {
  readonly owed: number
  /** Ticks without a run. */
  readonly missing: number
  /** Runs beyond the first of a tick. */
  readonly duplicate: number
  /** Runs at moments that are no tick, or of triggers that do not exist. */
  readonly spurious: number
  readonly latenessP50Ms: number
  readonly latenessP99Ms: number
  readonly latenessMaxMs: number
}

/**
 * Compares runs with the ticks that another cron implementation names, between a trigger's beginning and `until`.
 *
 * @param runs `[trigger id, tick, lateness in ms]`
 */
export function checkTicks(
  triggers: readonly ClusterTrigger[],
  runs: readonly (readonly [string, Date, number])[],
  until: Date,
): TickCheck {
  const owed = new Set<string>()
  for (const { id, expression, from } of triggers)
    for (const tick of ticksBetween(expression, from, until)) owed.add(`${id} ${tick}`)
  const seen = new Set<string>()
  const lateness: number[] = []
  let [duplicate, spurious] = [0, 0]
  for (const [id, at, lateMs] of runs) {
    if (at > until) continue
    const key = `${id} ${at.getTime()}`
    if (seen.has(key)) duplicate++
    if (!owed.has(key)) spurious++
    seen.add(key)
    lateness.push(lateMs)
  }
  lateness.sort((a, b) => a - b)
  return {
    owed: owed.size,
    missing: [...owed].filter((key) => !seen.has(key)).length,
    duplicate,
    spurious,
    latenessP50Ms: quantile(lateness, 0.5),
    latenessP99Ms: quantile(lateness, 0.99),
    latenessMaxMs: quantile(lateness, 1),
  }
}

/** Prints what a scenario came to: nothing may be missing, doubled or invented. */
export function reportTickCheck(name: string, verdict: TickCheck): void {
  reportAtLeast(`${name}/ticks`, verdict.owed, 'ticks', 1)
  reportAtMost(`${name}/missing`, verdict.missing, 'ticks', 0)
  reportAtMost(`${name}/duplicate`, verdict.duplicate, 'runs', 0)
  reportAtMost(`${name}/spurious`, verdict.spurious, 'runs', 0)
}

function* ticksBetween(expression: string, from: Date, until: Date): Generator<number> {
  const cron = new Cron(expression, { utcOffset: 0, mode: '5-or-6-parts' })
  for (let tick = cron.nextRun(from); tick !== null && tick <= until; tick = cron.nextRun(tick)) yield tick.getTime()
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
