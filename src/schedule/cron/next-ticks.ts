import { parseCron } from './cron-expression.ts'

/** An expression whose next tick is further away than this is a mistake, not a schedule. */
export const HORIZON_YEARS = 20
/** Time one preview or check may spend on ticks that are dear to find. */
const SEARCH_BUDGET_MS = 50

/**
 * The next `count` ticks after a moment; fewer when there are no more within HORIZON_YEARS of it, or when finding them
 * takes longer than SEARCH_BUDGET_MS (a tick every few decades costs milliseconds). The first is always looked for.
 */
export function nextTicks(expression: string, from: Date, count: number): readonly Date[] {
  const cron = parseCron(expression)
  const horizon = new Date(from)
  horizon.setUTCFullYear(from.getUTCFullYear() + HORIZON_YEARS)
  const deadline = performance.now() + SEARCH_BUDGET_MS
  const ticks: Date[] = []
  for (let after = from; ticks.length < count; ) {
    const tick = cron.next(after)
    if (tick === undefined || tick > horizon) break
    ticks.push(tick)
    after = tick
    if (performance.now() > deadline) break
  }
  return ticks
}
