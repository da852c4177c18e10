import type { Json, JsonObject } from '../../foundation/json/index.ts'
import type { NodeCounts } from './run-stats.ts'

/** The checkpoint of a run: plain JSON from which any process resumes it. */
export type Checkpoint = {
  readonly format: typeof CHECKPOINT_FORMAT
  /** The destination has acknowledged the start. */
  readonly is_started: boolean
  /** Of the next thing that is delivered, from 1. */
  readonly next_sequence: number
  /**
   * `{{previous_run_date}}` of each node, RFC 3339, as of the first attempt: a resumed listing must send the query of its first
   * page. `null` until the run has started.
   */
  readonly previous_run_dates: readonly (string | null)[] | null
  readonly position: TraversalPosition
  readonly counts: readonly NodeCounts[]
  /** Postponements in a row for an unavailable third party or destination. */
  readonly waits: number
  /** The first failure in a row, RFC 3339; absent or null: the last attempt made progress. */
  readonly waiting_since?: string | null
  /** Waits in a row that the third party asked for; absent: none. */
  readonly limits?: number
}

/** Incremented when older checkpoints cannot be resumed. */
const CHECKPOINT_FORMAT = 1

/** The checkpoint before the first page. */
const INITIAL_CHECKPOINT: Checkpoint = {
  format: CHECKPOINT_FORMAT,
  is_started: false,
  next_sequence: 1,
  previous_run_dates: null,
  position: [],
  counts: [],
  waits: 0,
}

/** Reads a stored checkpoint. @throws Error for another format: resuming would repeat or skip records */
export function readCheckpoint(stored: JsonObject | null): Checkpoint {
  if (stored === null) return INITIAL_CHECKPOINT
  if (stored.format !== CHECKPOINT_FORMAT) throw new Error(`cannot resume from a checkpoint of format ${stored.format}`)
  return stored as unknown as Checkpoint
}

// Aliases, not interfaces: only aliases are assignable to JSON objects.

/**
 * The position of a traversal: one stack frame per level of nesting, outermost first. Empty: at the beginning.
 */
export type TraversalPosition = readonly StackFrame[]

/** One level: a node, its loop element, its next page, and the batch of parents whose children are being fetched. */
export type StackFrame = {
  /** Index of the node in the plan. */
  readonly node: number
  /** Index of the loop element; 0 without a loop. */
  readonly element: number
  /** The page after `window`; `null` when the listing has ended. */
  readonly next: PageStart | null
  /**
   * Batch of parents: records of this node whose children are not all fetched, the current one first, projected to the fields
   * that children read. They are stored because a page that is fetched again may have changed.
   */
  readonly window: readonly Json[]
}

/** A page of a listing, or its rest. */
export type PageStart = {
  /** `null`: the first page. */
  readonly state: JsonObject | null
  /** Records of the page whose children are done; above 0 the page itself was delivered. */
  readonly skip: number
  /** What is read of the page, which rate limits interrupt; at most 1 MiB. As plain JSON, like the parents of `window`. */
  readonly progress?: JsonObject
}

/** The start of every listing. */
export const FIRST_PAGE: PageStart = { state: null, skip: 0 }
