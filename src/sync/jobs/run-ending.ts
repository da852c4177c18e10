import { type BackoffPolicy, type Clock, hintedWaitMs } from '../../foundation/base/index.ts'
import type { CompletedStatus } from '../../foundation/queue/index.ts'
import type { ResourceStats, RunEnding, RunError, RunOutcome, RunProgress } from '../runs/run.ts'
import type { Checkpoint } from './checkpoint.ts'
import type { DestinationUnavailable, Sink, SinkResult } from './sink.ts'

/** Waits of a run for what is unavailable. */
const UNAVAILABLE_BACKOFF: BackoffPolicy = { baseMs: 5_000, factor: 2, maxMs: 15 * 60_000, jitterFloor: 0.5 }

/** How long a run goes on trying while what it needs is unavailable. */
export interface OutageLimit {
  /** From the first failure in a row. */
  readonly giveUpAfterSeconds: number
  /** The run of this tick takes over from one that waits for the third party. Null: none is scheduled. */
  readonly nextTickAt: Date | null
}

/** A wait, and the checkpoint it continues from. */
export interface Postponement {
  readonly afterMs: number
  readonly checkpoint: Checkpoint
}

/**
 * Releases the worker while the third party or the destination is unavailable: the run waits with exponential backoff, which ends
 * when the limit is reached, and is then tried once more. No attempt is counted.
 *
 * @param hintMs as the other party asks
 * @returns `undefined` when the limit is reached
 */
export function postpone(
  { clock, random }: Pick<EndingDeps, 'clock' | 'random'>,
  { giveUpAfterSeconds, nextTickAt }: OutageLimit,
  checkpoint: Checkpoint,
  hintMs: number | undefined,
): Postponement | undefined {
  const nowMs = clock.now().getTime()
  const waiting_since = checkpoint.waiting_since ?? new Date(nowMs).toISOString()
  const leftMs =
    Math.min(Date.parse(waiting_since) + giveUpAfterSeconds * 1_000, nextTickAt?.getTime() ?? Infinity) - nowMs
  if (leftMs <= 0) return undefined
  const waits = checkpoint.waits + 1
  const afterMs = Math.min(leftMs, hintedWaitMs(UNAVAILABLE_BACKOFF, waits, hintMs, random))
  return { afterMs, checkpoint: { ...checkpoint, waits, waiting_since } }
}

/** A transient failure of an attempt. */
type TransientOutcome = Extract<RunOutcome, { readonly kind: 'retry' }>

/**
 * What follows a transient failure: the next attempt, after the last one a postponement. Stores since when the run waits.
 *
 * @param save stores a changed checkpoint; returns how the run ends instead
 * @returns `undefined` when the limit is reached: the failure is the run's
 */
export async function retryOrPostpone(
  deps: Pick<EndingDeps, 'clock' | 'random'>,
  limit: OutageLimit & { readonly isLastAttempt: boolean },
  checkpoint: Checkpoint,
  failure: TransientOutcome,
  save: (change: Partial<Checkpoint>) => Promise<RunOutcome | undefined>,
): Promise<RunOutcome | undefined> {
  if (!limit.isLastAttempt) {
    const waiting_since = checkpoint.waiting_since ?? deps.clock.now().toISOString()
    return (await save({ waiting_since })) ?? failure
  }
  const postponed = postpone(deps, limit, checkpoint, failure.afterMs)
  if (postponed === undefined) return undefined
  return (await save(postponed.checkpoint)) ?? { ...failure, afterMs: postponed.afterMs, isUncounted: true }
}

/** Of a checkpoint whose run has made progress: it waits anew. */
export const WAITED_FOR_NOTHING = { waits: 0, waiting_since: null } as const

/**
 * The postponement of a run whose destination is unavailable, or its failure. The next tick does not matter: what was read waits
 * for the destination.
 */
export function postponeRun(
  deps: Pick<EndingDeps, 'clock' | 'random' | 'giveUpAfterSeconds'>,
  { error, afterMs }: DestinationUnavailable,
  checkpoint: Checkpoint,
): { readonly outcome: RunOutcome; readonly checkpoint: Checkpoint } {
  const postponed = postpone(deps, { ...deps, nextTickAt: null }, checkpoint, afterMs)
  if (postponed === undefined) return { outcome: { kind: 'failed', error }, checkpoint }
  return { outcome: { kind: 'rate_limited', afterMs: postponed.afterMs, error }, checkpoint: postponed.checkpoint }
}

/** The dependencies of ending a run. */
export interface EndingDeps extends Pick<OutageLimit, 'giveUpAfterSeconds'> {
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
): RunEnding {
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
  ending: RunEnding,
  stats: readonly ResourceStats[],
): Promise<RunOutcome> {
  // A run that is retried by hand waits for its destination as long as a new one does.
  const isStopped = (await deps.progress.save({ ...checkpoint, ...WAITED_FOR_NOTHING }, stats, ending)) === 'stop'
  if (isStopped) return { kind: 'stopped' }
  return await deliverEnding(deps, checkpoint, ending, stats)
}

/** Delivers an ending that is stored already; see `storeEnding`. */
export async function deliverEnding(
  deps: EndingDeps,
  checkpoint: Checkpoint,
  ending: RunEnding,
  stats: readonly ResourceStats[],
): Promise<RunOutcome> {
  const { sink, progress } = deps
  const result = (await sink.ended?.(ending, stats)) ?? ACCEPTED
  if (result.kind === 'accepted') return endingOutcome(ending)
  if (result.kind !== 'unavailable') return ending.error === null ? result : endingOutcome(ending)
  const { outcome, checkpoint: postponed } = postponeRun(deps, result, checkpoint)
  if (outcome.kind === 'rate_limited')
    return (await progress.save(postponed, stats)) === 'stop' ? { kind: 'stopped' } : outcome
  return ending.error === null ? outcome : endingOutcome(ending)
}

const ACCEPTED: SinkResult = { kind: 'accepted', sequences: 0 }

/** The outcome of a decided ending. */
export function endingOutcome(ending: RunEnding): RunOutcome {
  return ending.status === 'failed' ? { kind: 'failed', error: ending.error } : { kind: ending.status }
}
