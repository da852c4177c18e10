import type { JsonObject } from '../base/index.ts'
import type { TraversalPosition } from './position.ts'
import type { NodeCounts } from './tally.ts'

/** Everything a run needs to go on in another process; plain JSON. */
export type Checkpoint = {
  readonly format: typeof CHECKPOINT_FORMAT
  /** The destination has acknowledged the start. */
  readonly is_started: boolean
  /** Of the next thing that is delivered, from 1. */
  readonly next_sequence: number
  /**
   * `{{previous_run_date}}` of each node, RFC 3339, from the first attempt on: a listing that goes on in the middle has to ask
   * for what it asked for at its beginning. `null` until the run has started.
   */
  readonly previous_run_dates: readonly (string | null)[] | null
  readonly position: TraversalPosition
  readonly counts: readonly NodeCounts[]
  /** Waits in a row for a destination that is away. */
  readonly waits: number
}

/** Changes when a process of this version could not go on from an older checkpoint. */
const CHECKPOINT_FORMAT = 1

/** Where a run begins. */
const INITIAL_CHECKPOINT: Checkpoint = {
  format: CHECKPOINT_FORMAT,
  is_started: false,
  next_sequence: 1,
  previous_run_dates: null,
  position: [],
  counts: [],
  waits: 0,
}

/** Reads what `save` stored. @throws Error for a checkpoint of another version: going on would repeat or skip records */
export function readCheckpoint(stored: JsonObject | null): Checkpoint {
  if (stored === null) return INITIAL_CHECKPOINT
  if (stored.format !== CHECKPOINT_FORMAT) throw new Error(`cannot resume from a checkpoint of format ${stored.format}`)
  return stored as unknown as Checkpoint
}
