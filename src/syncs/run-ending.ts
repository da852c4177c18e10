import { type BackoffPolicy, backoffMs, type Clock } from '../base/index.ts'
import type { CompletedStatus, DecidedEnding, ResourceStats, RunError, RunOutcome, RunProgress } from '../runs/index.ts'
import type { Checkpoint } from './checkpoint.ts'
import type { EarlyEnd } from './listing.ts'
import type { DestinationUnavailable, Sink } from './sink.ts'

/** Waits in a row for a destination that is away; together the better part of a day. */
const UNAVAILABLE_WAITS_MAX = 100
const UNAVAILABLE_BACKOFF: BackoffPolicy = { baseMs: 5_000, factor: 2, maxMs: 15 * 60_000, jitterFloor: 0.5 }

/** How a run ends here, and what it has to remember. */
export interface Postponement {
  readonly outcome: EarlyEnd
  readonly checkpoint: Checkpoint
}

/**
 * Gives the worker back while the destination is away. The run waits longer and longer, showing the error, and goes on
 * with what was not accepted; no attempt is counted, until it has waited `AWAY_WAITS_MAX` times in a row.
 */
export function postponeRun(
  random: () => number,
  { error, afterMs = 0 }: DestinationUnavailable,
  checkpoint: Checkpoint,
): Postponement {
  const waits = checkpoint.waits + 1
  if (waits > UNAVAILABLE_WAITS_MAX) return { outcome: { kind: 'failed', error }, checkpoint }
  const waitMs = Math.max(afterMs, backoffMs(UNAVAILABLE_BACKOFF, waits, random))
  return { outcome: { kind: 'rate_limited', afterMs: waitMs, error }, checkpoint: { ...checkpoint, waits } }
}

/** What ending a run needs. */
export interface EndingDeps {
  readonly sink: Sink
  readonly clock: Pick<Clock, 'now'>
  /** A number in [0, 1). */
  readonly random: () => number
  readonly progress: RunProgress
}

/** How a run ends, decided now: completed in one of two ways, or failed with an error. */
export function decideEnding(
  { clock }: Pick<EndingDeps, 'clock'>,
  attempt: number,
  how: CompletedStatus | RunError,
): DecidedEnding {
  const decidedAt = clock.now().toISOString()
  if (typeof how === 'string') return { status: how, error: null, attempt, decidedAt }
  return { status: 'failed', error: how, attempt, decidedAt }
}

/**
 * Ends a run for good: stores how, and then tells its destination, which from now on hears of no other ending. While that
 * is away the run waits with nothing left to do but tell; a destination that never comes back is not told.
 *
 * @param stats as the destination is to see them
 * @returns the ending, how the run waits, or what the destination answered to `completed`
 * @throws Failure LEASE_LOST from `save`
 */
export async function storeEnding(
  deps: EndingDeps,
  checkpoint: Checkpoint,
  ending: DecidedEnding,
  stats: readonly ResourceStats[],
): Promise<RunOutcome> {
  // A run that is retried by hand waits for its destination as long as a new one does.
  const isStopped = (await deps.progress.save({ ...checkpoint, waits: 0 }, stats, ending)) === 'stop'
  if (isStopped) return { kind: 'stopped' }
  return await deliverEnding(deps, checkpoint, ending, stats)
}

/** Tells an ending that is stored. Like `storeEnding` otherwise. */
export async function deliverEnding(
  { sink, random, progress }: EndingDeps,
  checkpoint: Checkpoint,
  ending: DecidedEnding,
  stats: readonly ResourceStats[],
): Promise<RunOutcome> {
  const answer = await sink.ended?.(ending, stats)
  if (answer?.kind === 'away') {
    const aside = postponeRun(random, answer, checkpoint)
    if (aside.outcome.kind === 'rate_limited')
      return (await progress.save(aside.checkpoint, stats)) === 'stop' ? { kind: 'stopped' } : aside.outcome
    return ending.error === null ? aside.outcome : endingOutcome(ending)
  }
  return answer?.kind === 'end' && ending.error === null ? answer.outcome : endingOutcome(ending)
}

/** The outcome for the queue. */
export function endingOutcome(ending: DecidedEnding): RunOutcome {
  return ending.status === 'failed' ? { kind: 'failed', error: ending.error } : { kind: ending.status }
}
