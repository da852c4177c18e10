import type { Json, JsonObject } from '../base/index.ts'
import { parentResources } from '../expression/index.ts'
import type { RunError } from '../queue/index.ts'
import type { EarlyEnd, Fetched, Fetcher } from './listing.ts'
import { inOrder } from './ordered.ts'
import { recordSteps, type SyncNode, type SyncPlan } from './plan.ts'
import { FIRST_PAGE, type Frame, type PageStart, type Position } from './position.ts'
import { type Projection, windowsOf } from './projection.ts'
import { type NodeScope, type RequestValues, requestFor } from './request.ts'
import type { SourcePage } from './source.ts'
import { errorAt } from './verdict.ts'

/** One thing that happened while reading, in the order in which it is delivered and remembered. */
export type Step =
  /** `after` is where a run goes on once the page is delivered. */
  | { readonly kind: 'page'; readonly node: SyncNode; readonly page: SourcePage; readonly after: Position }
  /** A listing ended with an error; a `transient` one may be gone when the page is asked for later. */
  | {
      readonly kind: 'problem'
      readonly node: SyncNode
      readonly error: RunError
      readonly isTransient: boolean
      readonly after: Position
    }
  /** The run cannot go on; nothing follows. */
  | { readonly kind: 'end'; readonly outcome: EarlyEnd }

/** What a walk reads and with which values. */
export interface Walk extends RequestValues {
  readonly plan: SyncPlan
  readonly fetcher: Fetcher
  /** By node index. */
  readonly projections: readonly Projection[]
  readonly args: JsonObject
  /** Listings that are begun ahead of the one being read. */
  readonly concurrency: number
}

/** One listing of one node. */
interface Place {
  readonly node: SyncNode
  readonly element: number
  readonly scope: NodeScope
  /** The frames above. */
  readonly trail: Position
}

/**
 * Reads everything the plan asks for, depth first: a page of parents, then the children of each of its records, then the
 * next page. It keeps no more than a page of parents per level in memory.
 *
 * Pure reading: it delivers nothing, counts nothing and stores nothing, so it may run ahead of whoever does. Listings are
 * begun concurrently, but steps come in one order, always the same.
 */
export async function* walk(walk: Walk, from: Position): AsyncGenerator<Step> {
  const scope = { args: walk.args, resources: {} }
  // One root after the other: begun ahead, a first page and its cursor would wait, and expire, behind a long listing.
  for (const root of nodesFrom(walk.plan.waves[0] ?? [], from))
    yield* inOrder(listingsOf(walk, [root], scope, [], from), walk.concurrency)
}

/** The nodes that are not done: all of them, or those from the one that the first frame stands in. */
function nodesFrom(nodes: readonly SyncNode[], [frame]: Position): readonly SyncNode[] {
  return frame === undefined ? nodes : nodes.slice(nodes.findIndex(({ index }) => index === frame.node))
}

/** The listings of nodes side by side, element by element, beginning where the first frame stands if it is theirs. */
function* listingsOf(
  walk: Walk,
  nodes: readonly SyncNode[],
  scope: NodeScope,
  trail: Position,
  [frame, ...deeper]: Position,
): Generator<() => AsyncGenerator<Step>> {
  for (const node of nodes) {
    const resumed = node.index === frame?.node ? frame : undefined
    const elements = elementsOf(node, scope)
    if (elements === undefined) return yield () => refuseLoop(node)
    for (const [element, elementScope] of elements.entries()) {
      const place = { node, element, scope: elementScope, trail }
      if (resumed === undefined || element > resumed.element) yield () => walkListing(walk, place, undefined, [])
      else if (element === resumed.element) yield () => walkListing(walk, place, resumed, deeper)
    }
  }
}

async function* walkListing(
  walk: Walk,
  place: Place,
  resumed: Frame | undefined,
  deeper: Position,
): AsyncGenerator<Step> {
  if (resumed !== undefined) yield* walkWindow(walk, place, resumed, deeper)
  const listing = walk.fetcher.open(() => requestFor(walk, place.node, place.scope))
  let start = resumed === undefined ? FIRST_PAGE : resumed.next
  while (start !== null) {
    const fetched = await listing.fetch(start.state)
    if (fetched.kind !== 'page') return yield stepFrom(fetched, place)
    const following = fetched.page.next === undefined ? null : { state: fetched.page.next, skip: 0 }
    yield* walkPage(walk, place, fetched.page, start, following)
    start = following
  }
}

async function* walkPage(
  walk: Walk,
  place: Place,
  page: SourcePage,
  start: PageStart,
  following: PageStart | null,
): AsyncGenerator<Step> {
  const frames = framesOf(walk, place, page, start, following)
  const [first = frameAt(place, following, [])] = frames
  if (start.skip === 0) yield { kind: 'page', node: place.node, page, after: [...place.trail, first] }
  for (const frame of frames) yield* walkWindow(walk, place, frame, [])
}

/** The children of every record in the frame's window, beginning where the deeper frames stand in the first of them. */
async function* walkWindow(walk: Walk, place: Place, frame: Frame, deeper: Position): AsyncGenerator<Step> {
  yield* inOrder(childListingsOf(walk, place, frame, deeper), walk.concurrency)
}

function* childListingsOf(
  walk: Walk,
  { node, scope, trail }: Place,
  frame: Frame,
  deeper: Position,
): Generator<() => AsyncGenerator<Step>> {
  const key = recordSteps(node.resource).join('/')
  for (const [index, parent] of frame.window.entries()) {
    const childScope = { args: scope.args, resources: parentResources(key, parent, scope.resources) }
    const childTrail = [...trail, { ...frame, window: frame.window.slice(index) }]
    const from = index === 0 ? deeper : []
    yield* listingsOf(walk, nodesFrom(node.children, from), childScope, childTrail, from)
  }
}

/** One frame per window of the page; after the last one the listing goes on behind the page. */
function framesOf(
  walk: Walk,
  place: Place,
  page: SourcePage,
  start: PageStart,
  following: PageStart | null,
): readonly Frame[] {
  const project = walk.projections[place.node.index]
  if (place.node.children.length === 0 || project === undefined) return []
  const windows = windowsOf(page.records.slice(start.skip), project)
  let skip = start.skip
  return windows.map((window, index) => {
    skip += window.length
    return frameAt(place, index === windows.length - 1 ? following : { state: start.state, skip }, window)
  })
}

function frameAt({ node, element }: Place, next: PageStart | null, window: readonly Json[]): Frame {
  return { node: node.index, element, next, window }
}

function stepFrom(fetched: Exclude<Fetched, { kind: 'page' }>, place: Place): Step {
  if (fetched.kind === 'end') return { kind: 'end', outcome: naming(fetched.outcome, place.node) }
  return { ...fetched, node: place.node, after: [...place.trail, frameAt(place, null, [])] }
}

function naming(outcome: EarlyEnd, node: SyncNode): EarlyEnd {
  const hasError = outcome.kind === 'failed' || outcome.kind === 'retry'
  return hasError ? { ...outcome, error: errorAt(node, outcome.error) } : outcome
}

/** The scope of each repetition: one without a loop, `undefined` when the argument of the loop is no list. */
function elementsOf({ loopOn }: SyncNode, scope: NodeScope): readonly NodeScope[] | undefined {
  if (loopOn === undefined) return [scope]
  const values = Object.hasOwn(scope.args, loopOn) ? scope.args[loopOn] : undefined
  if (!Array.isArray(values)) return undefined
  return values.map((value) => ({ ...scope, args: { ...scope.args, [loopOn]: value } }))
}

async function* refuseLoop({ resource, loopOn }: SyncNode): AsyncGenerator<Step> {
  const message = `${resource} loops on the argument ${loopOn}, which must be a list`
  yield { kind: 'end', outcome: { kind: 'failed', error: { reason: 'ARGS_INVALID', message } } }
}
