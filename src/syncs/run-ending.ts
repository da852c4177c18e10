import { type BackoffPolicy, type Clock, hintedWaitMs } from '../base/index.ts'
import type { CompletedStatus, DecidedEnding, ResourceStats, RunError, RunOutcome, RunProgress } from '../runs/index.ts'
import type { Checkpoint } from './checkpoint.ts'
import type { DestinationUnavailable, Sink, SinkResult } from './sink.ts'

/** Postponements in a row of a run whose destination is unavailable; together the better part of a day. */
const UNAVAILABLE_WAITS_MAX = 100
const UNAVAILABLE_BACKOFF: BackoffPolicy = { baseMs: 5_000, factor: 2, maxMs: 15 * 60_000, jitterFloor: 0.5 }

/** The outcome of a run whose destination is unavailable, and the checkpoint it continues from. */
export interface Postponement {
  readonly outcome: RunOutcome
  readonly checkpoint: Checkpoint
}

/**
 * Releases the worker while the destination is unavailable. The run waits with exponential backoff, shows the error, and then
 * delivers again what was not accepted. No attempt is counted; after `UNAVAILABLE_WAITS_MAX` waits in a row the run fails.
 */
export function postponeRun(
  random: () => number,
  { error, afterMs }: DestinationUnavailable,
  checkpoint: Checkpoint,
): Postponement {
  const waits = checkpoint.waits + 1
  if (waits > UNAVAILABLE_WAITS_MAX) return { outcome: { kind: 'failed', error }, checkpoint }
  const waitMs = hintedWaitMs(UNAVAILABLE_BACKOFF, waits, afterMs, random)
  return { outcome: { kind: 'rate_limited', afterMs: waitMs, error }, checkpoint: { ...checkpoint, waits } }
}

/** The dependencies of ending a run. */
export interface EndingDeps {
  readonly sink: Sink
  readonly clock: Pick<Clock, 'now'>
  /** A number in [0, 1). */
  readonly random: () => number
  readonly progress: RunProgress
}

/** The ending of a run, with the time of the decision. @param result a completed status, or the error that fails the run */
export function decideEnding(
  { clock }: Pick<EndingDeps, 'clock'>,
  attempt: number,
  result: CompletedStatus | RunError,
): DecidedEnding {
  const decidedAt = clock.now().toISOString()
  if (typeof result === 'string') return { status: result, error: null, attempt, decidedAt }
  return { status: 'failed', error: result, attempt, decidedAt }
}

/**
 * Ends a run: stores its ending, then delivers it, so that the destination gets no other ending of this run. While the
 * destination is unavailable the run is postponed with nothing but the ending left to deliver.
 *
 * @param stats as the destination gets them
 * @returns the outcome of the ending, a postponement, or what the destination returned for a completed run
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

/** Delivers an ending that is stored already; see `storeEnding`. */
export async function deliverEnding(
  { sink, random, progress }: EndingDeps,
  checkpoint: Checkpoint,
  ending: DecidedEnding,
  stats: readonly ResourceStats[],
): Promise<RunOutcome> {
  const result = (await sink.ended?.(ending, stats)) ?? ACCEPTED
  if (result.kind === 'accepted') return endingOutcome(ending)
  if (result.kind !== 'unavailable') return ending.error === null ? result : endingOutcome(ending)
  const { outcome, checkpoint: postponed } = postponeRun(random, result, checkpoint)
  if (outcome.kind === 'rate_limited')
    return (await progress.save(postponed, stats)) === 'stop' ? { kind: 'stopped' } : outcome
  return ending.error === null ? outcome : endingOutcome(ending)
}

const ACCEPTED: SinkResult = { kind: 'accepted', sequences: 0 }

/** The outcome of a decided ending. */
export function endingOutcome(ending: DecidedEnding): RunOutcome {
  return ending.status === 'failed' ? { kind: 'failed', error: ending.error } : { kind: ending.status }
}
