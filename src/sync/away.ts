import { type BackoffPolicy, backoffMs } from '../base/index.ts'
import type { ResourceStats, RunError, RunOutcome, RunProgress } from '../queue/index.ts'
import type { Checkpoint } from './checkpoint.ts'
import type { EarlyEnd } from './listing.ts'
import type { DestinationAway, Sink } from './sink.ts'

/** Waits in a row for a destination that is away; together the better part of a day. */
export const AWAY_WAITS_MAX = 100
const AWAY_WAIT: BackoffPolicy = { baseMs: 5_000, factor: 2, maxMs: 15 * 60_000, jitterFloor: 0.5 }

/** How a run ends here, and what it has to remember. */
export interface SteppedAside {
  readonly outcome: EarlyEnd
  readonly checkpoint: Checkpoint
}

/**
 * Gives the worker back while the destination is away. The run waits longer and longer, showing the error, and goes on
 * with what was not accepted; no attempt is counted, until it has waited `AWAY_WAITS_MAX` times in a row.
 */
export function stepAside(
  random: () => number,
  { error, afterMs = 0 }: DestinationAway,
  checkpoint: Checkpoint,
): SteppedAside {
  const waits = checkpoint.waits + 1
  if (waits > AWAY_WAITS_MAX) return { outcome: { kind: 'failed', error }, checkpoint }
  const waitMs = Math.max(afterMs, backoffMs(AWAY_WAIT, waits, random))
  return { outcome: { kind: 'rate_limited', afterMs: waitMs, error }, checkpoint: { ...checkpoint, waits } }
}

/**
 * Fails a run for good, which its destination is told. While that is away the run waits with nothing left to do but tell;
 * a destination that never comes back is not told.
 *
 * @param stats as the destination is to see them
 * @returns `failed`, or how the run waits
 * @throws Failure LEASE_LOST from `save`
 */
export async function failRun(
  deps: { readonly sink: Sink; readonly random: () => number; readonly progress: RunProgress },
  checkpoint: Checkpoint,
  error: RunError,
  stats: readonly ResourceStats[],
): Promise<RunOutcome> {
  const save = async (change: Checkpoint) => await deps.progress.save(change, stats)
  const answer = await deps.sink.failed(error, stats)
  if (answer.kind === 'away') {
    const aside = stepAside(deps.random, answer, checkpoint)
    if (aside.outcome.kind === 'rate_limited')
      return (await save({ ...aside.checkpoint, failure: error })) === 'stop' ? { kind: 'stopped' } : aside.outcome
  }
  // Whoever retries the run wants it to go on, not to be told of its failure again.
  if (checkpoint.failure !== null || checkpoint.waits > 0) await save({ ...checkpoint, failure: null, waits: 0 })
  return { kind: 'failed', error }
}
