import type { Json, JsonObject } from '../base/index.ts'
import type { NodeCounts } from './run-stats.ts'

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

// Aliases, not interfaces: only aliases are assignable to JSON objects.

/**
 * Where a walk over a plan stands: one frame per level of nesting, outermost first. Empty: nothing has begun.
 *
 * Plain JSON, so that another process goes on from it.
 */
export type TraversalPosition = readonly StackFrame[]

/** One level: a node, which of its loop elements, which page comes next, and which parents still have children to fetch. */
export type StackFrame = {
  /** Index of the node in the plan. */
  readonly node: number
  /** Index of the loop element; 0 without a loop. */
  readonly element: number
  /** What to fetch once `window` is done; `null` when the listing has ended. */
  readonly next: PageStart | null
  /**
   * Records of this node whose children are not all fetched, the current one first, cut down to the fields that are read.
   * They are kept because a page fetched again may have changed.
   */
  readonly window: readonly Json[]
}

/** A page of a listing, or the rest of one. */
export type PageStart = {
  /** `null`: the first page. */
  readonly state: JsonObject | null
  /** Records of the page that went through a window already; above 0 the page itself was delivered. */
  readonly skip: number
}

/** Where every listing begins. */
export const FIRST_PAGE: PageStart = { state: null, skip: 0 }
