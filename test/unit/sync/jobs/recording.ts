import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import type { CompletedStatus } from '../../../../src/foundation/queue/outcome.ts'
import type { ExecutableRun, Sink, SinkResult } from '../../../../src/sync/jobs/index.ts'
import type { ResourceStats, RunEnding, RunError, RunProgress } from '../../../../src/sync/runs/run.ts'
import { toMicrosecond } from '../../../support/fast-clock.ts'

/** One call of a sink, in a form that reads well in an assertion. */
export type Delivered =
  | { readonly kind: 'started' }
  | {
      readonly kind: 'page'
      readonly resource: string
      readonly sequence: number
      readonly records: readonly Json[]
      readonly hasMore: boolean
      readonly errors: readonly RunError[]
    }
  | { readonly kind: 'problem'; readonly resource: string; readonly sequence: number; readonly error: RunError }
  | { readonly kind: 'completed'; readonly completion: CompletedStatus; readonly stats: readonly ResourceStats[] }
  | { readonly kind: 'failed'; readonly error: RunError }

/** A sink that keeps what it is given and answers `accepted` unless told otherwise. */
export interface RecordingSink extends Sink {
  readonly delivered: Delivered[]
}

export function recordingSink(
  answer: (delivered: Delivered) => SinkResult | undefined = () => undefined,
): RecordingSink {
  const delivered: Delivered[] = []
  const keep = async (each: Delivered, sequences: number): Promise<SinkResult> => {
    delivered.push(each)
    return answer(each) ?? { kind: 'accepted', sequences }
  }
  return {
    delivered,
    started: () => keep({ kind: 'started' }, 0),
    page: ({ resource, sequence, page: { records, state }, errors }) =>
      keep({ kind: 'page', resource, sequence, records, hasMore: state !== null, errors }, 1),
    listingError: ({ resource, sequence, error }) => keep({ kind: 'problem', resource, sequence, error }, 1),
    ended: (ending, stats) =>
      ending.status === 'failed'
        ? keep({ kind: 'failed', error: ending.error }, 0)
        : keep({ kind: 'completed', completion: ending.status, stats }, 0),
  }
}

/** The process died. */
export class Crash extends Error {}

/** What the database remembers of a run. */
export interface RecordingProgress extends RunProgress {
  /** The stored checkpoint, as JSON and back. */
  checkpoint: JsonObject | null
  stats: readonly ResourceStats[]
  ending: RunEnding | null
  saves: number
  /** Waits that were shown, ms. */
  readonly shownWaitsMs: number[]
}

/** @param onSave runs before the checkpoint is stored; throw to lose it, return a function to run once it is stored */
export function recordingProgress(
  onSave: (save: number) => 'stop' | (() => void) | undefined = () => undefined,
): RecordingProgress {
  const progress: RecordingProgress = {
    checkpoint: null,
    stats: [],
    ending: null,
    saves: 0,
    shownWaitsMs: [],
    showWait: (ms) => progress.shownWaitsMs.push(toMicrosecond(ms)),
    async save(checkpoint, stats, ending) {
      const answer = onSave(progress.saves)
      progress.saves++
      progress.checkpoint = JSON.parse(JSON.stringify(checkpoint))
      progress.stats = stats
      progress.ending = ending ?? progress.ending
      if (typeof answer === 'function') answer()
      return answer === 'stop' ? 'stop' : 'continue'
    },
  }
  return progress
}

/** A first attempt with the given resources. */
export function runOf(resources: readonly JsonObject[], rest: Partial<ExecutableRun> = {}): ExecutableRun {
  return {
    resources,
    args: {},
    errorHandling: 'ignore',
    giveUpAfterSeconds: 0,
    nextTickAt: null,
    previousRunDates: resources.map(() => null),
    checkpoint: null,
    attempt: 1,
    ...rest,
  }
}
