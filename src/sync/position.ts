import type { Json, JsonObject } from '../base/index.ts'

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
