import type { Json, JsonObject } from '../base/index.ts'
import { parentResources } from '../expressions/index.ts'
import type { RunError } from '../runs/index.ts'
import { prefetchConcat } from './async-iterators.ts'
import { FIRST_PAGE, type PageStart, type StackFrame, type TraversalPosition } from './checkpoint.ts'
import type { EarlyEnd, Fetched, PageFetcher } from './listing.ts'
import type { SourcePage } from './page-source.ts'
import { type Projection, splitParents } from './parent-batches.ts'
import {
  listingRequest,
  type NodeScope,
  recordSteps,
  type SyncNode,
  type SyncPlan,
  type TemplateValues,
} from './plan.ts'
import { withNodeName } from './run-outcome.ts'

/** One thing that happened while reading, in the order in which it is delivered and remembered. */
export type TraversalStep =
  /** `after` is where a run goes on once the page is delivered. */
  | { readonly kind: 'page'; readonly node: SyncNode; readonly page: SourcePage; readonly after: TraversalPosition }
  /** A listing ended with an error; a `transient` one may be gone when the page is asked for later. */
  | {
      readonly kind: 'problem'
      readonly node: SyncNode
      readonly error: RunError
      readonly isTransient: boolean
      readonly after: TraversalPosition
    }
  /** The run cannot go on; nothing follows. */
  | { readonly kind: 'end'; readonly outcome: EarlyEnd }

/** What a walk reads and with which values. */
export interface Traversal extends TemplateValues {
  readonly plan: SyncPlan
  readonly fetcher: PageFetcher
  /** By node index. */
  readonly projections: readonly Projection[]
  readonly args: JsonObject
  /** Listings that are begun ahead of the one being read. */
  readonly concurrency: number
}

/** One listing of one node. */
interface NodeVisit {
  readonly node: SyncNode
  readonly element: number
  readonly scope: NodeScope
  /** The frames above. */
  readonly trail: TraversalPosition
}

/**
 * Reads everything the plan asks for, depth first: a page of parents, then the children of each of its records, then the
 * next page. It keeps no more than a page of parents per level in memory.
 *
 * Pure reading: it delivers nothing, counts nothing and stores nothing, so it may run ahead of whoever does. Listings are
 * begun concurrently, but steps come in one order, always the same.
 */
export async function* traverse(walk: Traversal, from: TraversalPosition): AsyncGenerator<TraversalStep> {
  const scope = { args: walk.args, resources: {} }
  // One root after the other: begun ahead, a first page and its cursor would wait, and expire, behind a long listing.
  for (const root of remainingNodes(walk.plan.levels[0] ?? [], from))
    yield* prefetchConcat(nodeListings(walk, [root], scope, [], from), walk.concurrency)
}

/** The nodes that are not done: all of them, or those from the one that the first frame stands in. */
function remainingNodes(nodes: readonly SyncNode[], [frame]: TraversalPosition): readonly SyncNode[] {
  return frame === undefined ? nodes : nodes.slice(nodes.findIndex(({ index }) => index === frame.node))
}

/** The listings of nodes side by side, element by element, beginning where the first frame stands if it is theirs. */
function* nodeListings(
  walk: Traversal,
  nodes: readonly SyncNode[],
  scope: NodeScope,
  trail: TraversalPosition,
  [frame, ...deeper]: TraversalPosition,
): Generator<() => AsyncGenerator<TraversalStep>> {
  for (const node of nodes) {
    const resumed = node.index === frame?.node ? frame : undefined
    const elements = loopScopes(node, scope)
    if (elements === undefined) return yield () => rejectLoop(node)
    for (const [element, elementScope] of elements.entries()) {
      const place = { node, element, scope: elementScope, trail }
      if (resumed === undefined || element > resumed.element) yield () => traverseListing(walk, place, undefined, [])
      else if (element === resumed.element) yield () => traverseListing(walk, place, resumed, deeper)
    }
  }
}

async function* traverseListing(
  walk: Traversal,
  place: NodeVisit,
  resumed: StackFrame | undefined,
  deeper: TraversalPosition,
): AsyncGenerator<TraversalStep> {
  if (resumed !== undefined) yield* traverseChildren(walk, place, resumed, deeper)
  const listing = walk.fetcher.open(() => listingRequest(walk, place.node, place.scope))
  let start = resumed === undefined ? FIRST_PAGE : resumed.next
  while (start !== null) {
    const fetched = await listing.fetch(start.state)
    if (fetched.kind !== 'page') return yield toStep(fetched, place)
    const following = fetched.page.next === undefined ? null : { state: fetched.page.next, skip: 0 }
    yield* traversePage(walk, place, fetched.page, start, following)
    start = following
  }
}

async function* traversePage(
  walk: Traversal,
  place: NodeVisit,
  page: SourcePage,
  start: PageStart,
  following: PageStart | null,
): AsyncGenerator<TraversalStep> {
  const frames = parentFrames(walk, place, page, start, following)
  const [first = listingFrame(place, following, [])] = frames
  if (start.skip === 0) yield { kind: 'page', node: place.node, page, after: [...place.trail, first] }
  for (const frame of frames) yield* traverseChildren(walk, place, frame, [])
}

/** The children of every record in the frame's window, beginning where the deeper frames stand in the first of them. */
async function* traverseChildren(
  walk: Traversal,
  place: NodeVisit,
  frame: StackFrame,
  deeper: TraversalPosition,
): AsyncGenerator<TraversalStep> {
  yield* prefetchConcat(childListings(walk, place, frame, deeper), walk.concurrency)
}

function* childListings(
  walk: Traversal,
  { node, scope, trail }: NodeVisit,
  frame: StackFrame,
  deeper: TraversalPosition,
): Generator<() => AsyncGenerator<TraversalStep>> {
  const key = recordSteps(node.resource).join('/')
  for (const [index, parent] of frame.window.entries()) {
    const childScope = { args: scope.args, resources: parentResources(key, parent, scope.resources) }
    const childTrail = [...trail, { ...frame, window: frame.window.slice(index) }]
    const from = index === 0 ? deeper : []
    yield* nodeListings(walk, remainingNodes(node.children, from), childScope, childTrail, from)
  }
}

/** One frame per window of the page; after the last one the listing goes on behind the page. */
function parentFrames(
  walk: Traversal,
  place: NodeVisit,
  page: SourcePage,
  start: PageStart,
  following: PageStart | null,
): readonly StackFrame[] {
  const project = walk.projections[place.node.index]
  if (place.node.children.length === 0 || project === undefined) return []
  const windows = splitParents(page.records.slice(start.skip), project)
  let skip = start.skip
  return windows.map((window, index) => {
    skip += window.length
    return listingFrame(place, index === windows.length - 1 ? following : { state: start.state, skip }, window)
  })
}

function listingFrame({ node, element }: NodeVisit, next: PageStart | null, window: readonly Json[]): StackFrame {
  return { node: node.index, element, next, window }
}

function toStep(fetched: Exclude<Fetched, { kind: 'page' }>, place: NodeVisit): TraversalStep {
  if (fetched.kind === 'end') return { kind: 'end', outcome: withErrorSource(fetched.outcome, place.node) }
  return { ...fetched, node: place.node, after: [...place.trail, listingFrame(place, null, [])] }
}

function withErrorSource(outcome: EarlyEnd, node: SyncNode): EarlyEnd {
  const hasError = outcome.kind === 'failed' || outcome.kind === 'retry'
  return hasError ? { ...outcome, error: withNodeName(node, outcome.error) } : outcome
}

/** The scope of each repetition: one without a loop, `undefined` when the argument of the loop is no list. */
function loopScopes({ loopOn }: SyncNode, scope: NodeScope): readonly NodeScope[] | undefined {
  if (loopOn === undefined) return [scope]
  const values = Object.hasOwn(scope.args, loopOn) ? scope.args[loopOn] : undefined
  if (!Array.isArray(values)) return undefined
  return values.map((value) => ({ ...scope, args: { ...scope.args, [loopOn]: value } }))
}

async function* rejectLoop({ resource, loopOn }: SyncNode): AsyncGenerator<TraversalStep> {
  const message = `${resource} loops on the argument ${loopOn}, which must be a list`
  yield { kind: 'end', outcome: { kind: 'failed', error: { reason: 'ARGS_INVALID', message } } }
}
