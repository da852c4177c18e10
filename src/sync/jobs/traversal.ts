import { parentResources } from '../../engine/expressions/index.ts'
import type { RecordsPage } from '../../engine/proxy/index.ts'
import { truncateText } from '../../foundation/base/index.ts'
import type { DotPath, Json, JsonObject } from '../../foundation/json/index.ts'
import type { ParentRef, RunError, RunOutcome } from '../runs/run.ts'
import { prefetchConcat } from './async-iterators.ts'
import { FIRST_PAGE, type PageStart, type StackFrame, type TraversalPosition } from './checkpoint.ts'
import type { ListingWait, PageFetcher } from './listing.ts'
import { type ListingError, withNodeName } from './page-outcome.ts'
import { type Projection, splitParents } from './parent-batches.ts'
import {
  listingRequest,
  type NodeScope,
  recordSteps,
  type SyncNode,
  type SyncPlan,
  type TemplateValues,
} from './plan.ts'
import { DEFAULT_ID_PATH, identifierOf } from './record-id.ts'

/** One step of a traversal, in the order of delivery: a page, an error of a listing, a wait, or the outcome that ends the run. */
export type TraversalStep = PageReadStep | ListingErrorStep | RestartStep | WaitStep | RunOutcome

/** `after` is the position to continue at once the page is delivered. */
export interface PageReadStep {
  readonly kind: 'page'
  readonly node: SyncNode
  readonly page: RecordsPage
  readonly after: TraversalPosition
}

/** A listing ended with an error; `after` is the position behind it. */
export interface ListingErrorStep extends ListingError {
  readonly node: SyncNode
  readonly after: TraversalPosition
}

/** A listing begins again because its cursor has expired; `at` is its first page. */
export interface RestartStep {
  readonly kind: 'restarted'
  readonly node: SyncNode
  readonly error: RunError
  readonly at: TraversalPosition
}

/** A rate limit in the middle of a page; `at` is the position of the page, with what is read of it. */
export interface WaitStep extends Pick<ListingWait, 'kind' | 'afterMs' | 'end'> {
  readonly at: TraversalPosition
}

/** What a traversal reads, and with which values. */
export interface Traversal extends TemplateValues {
  readonly plan: SyncPlan
  readonly fetcher: PageFetcher
  /** By node index. */
  readonly projections: readonly Projection[]
  readonly idPaths: readonly DotPath[]
  /** Masks secrets in the names of records. */
  readonly redact: (text: string) => string
  readonly args: JsonObject
  /** Indexes of nodes whose listing began again in this run: it does so once. */
  readonly restarted: Set<number>
  /** Listings that are prefetched. */
  readonly concurrency: number
}

/** One listing: a node in one loop iteration below one parent. */
interface NodeVisit {
  readonly node: SyncNode
  readonly loopIndex: number
  readonly scope: NodeScope
  /** The frames of the levels above. */
  readonly ancestors: TraversalPosition
}

/**
 * Traverses the plan depth first: a page of parents, then the children of each of its records, then the next page. It holds one
 * page of parents per level in memory.
 *
 * It only reads, so it may run ahead of delivery. Listings are prefetched concurrently; the order of the steps is always the same.
 */
export async function* traverse(traversal: Traversal, from: TraversalPosition): AsyncGenerator<TraversalStep> {
  const scope = { args: traversal.args, resources: {} }
  // Roots are not prefetched: a first page and its cursor would expire behind a long listing.
  for (const root of remainingNodes(traversal.plan.levels[0] ?? [], from))
    yield* prefetchConcat(nodeListings(traversal, [root], scope, [], from), traversal.concurrency)
}

/** The nodes that are not done: all, or those from the node of the first frame on. */
function remainingNodes(nodes: readonly SyncNode[], [frame]: TraversalPosition): readonly SyncNode[] {
  return frame === undefined ? nodes : nodes.slice(nodes.findIndex(({ index }) => index === frame.node))
}

/** The listings of sibling nodes and their loop elements, resumed at the first frame. */
function* nodeListings(
  traversal: Traversal,
  nodes: readonly SyncNode[],
  scope: NodeScope,
  ancestors: TraversalPosition,
  [frame, ...deeper]: TraversalPosition,
): Generator<() => AsyncGenerator<TraversalStep>> {
  for (const node of nodes) {
    const resumed = node.index === frame?.node ? frame : undefined
    const scopes = loopScopes(node, scope)
    if (scopes === undefined) return yield () => rejectLoop(node)
    for (const [loopIndex, loopScope] of scopes.entries()) {
      const visit = { node, loopIndex, scope: loopScope, ancestors }
      if (resumed === undefined || loopIndex > resumed.element)
        yield () => traverseListing(traversal, visit, undefined, [])
      else if (loopIndex === resumed.element) yield () => traverseListing(traversal, visit, resumed, deeper)
    }
  }
}

async function* traverseListing(
  traversal: Traversal,
  visit: NodeVisit,
  resumed: StackFrame | undefined,
  deeper: TraversalPosition,
): AsyncGenerator<TraversalStep> {
  if (resumed !== undefined) yield* traverseChildren(traversal, visit, resumed, deeper)
  const listing = traversal.fetcher.open(() => listingRequest(traversal, visit.node, visit.scope))
  let start: PageStart | null = resumed === undefined ? FIRST_PAGE : resumed.next
  while (start !== null) {
    const fetched = await listing.fetch(start.state, start.progress)
    if (fetched.kind === 'waiting') {
      const { kind, afterMs, progress, end } = fetched
      start = { ...start, progress }
      yield { kind, afterMs, end, at: [...visit.ancestors, listingFrame(visit, start, [])] }
      if (end !== undefined) return
      continue
    }
    if (canRestart(traversal, fetched, visit, start)) {
      traversal.restarted.add(visit.node.index)
      start = FIRST_PAGE
      const error = withPlace(fetched.error, visit, traversal.redact)
      yield { kind: 'restarted', node: visit.node, error, at: [...visit.ancestors, listingFrame(visit, start, [])] }
      continue
    }
    if (fetched.kind !== 'page') return yield toStep(traversal, fetched, visit)
    const following: PageStart | null = fetched.state === null ? null : { state: fetched.state, skip: 0 }
    yield* traversePage(traversal, visit, fetched, start, following)
    start = following
  }
}

function canRestart(
  { restarted }: Traversal,
  fetched: RecordsPage | ListingError | RunOutcome,
  { node }: NodeVisit,
  start: PageStart,
): fetched is ListingError {
  return (
    fetched.kind === 'listing_error' && fetched.isRestart === true && start.state !== null && !restarted.has(node.index)
  )
}

async function* traversePage(
  traversal: Traversal,
  visit: NodeVisit,
  page: RecordsPage,
  start: PageStart,
  following: PageStart | null,
): AsyncGenerator<TraversalStep> {
  const frames = parentFrames(traversal, visit, page, start, following)
  const [first = listingFrame(visit, following, [])] = frames
  if (start.skip === 0) yield { kind: 'page', node: visit.node, page, after: [...visit.ancestors, first] }
  for (const frame of frames) yield* traverseChildren(traversal, visit, frame, [])
}

/** The children of every parent in the frame's batch; those of the first resume at the deeper frames. */
async function* traverseChildren(
  traversal: Traversal,
  visit: NodeVisit,
  frame: StackFrame,
  deeper: TraversalPosition,
): AsyncGenerator<TraversalStep> {
  yield* prefetchConcat(childListings(traversal, visit, frame, deeper), traversal.concurrency)
}

function* childListings(
  traversal: Traversal,
  { node, scope, ancestors }: NodeVisit,
  frame: StackFrame,
  deeper: TraversalPosition,
): Generator<() => AsyncGenerator<TraversalStep>> {
  const key = recordSteps(node.resource).join('/')
  for (const [index, parent] of frame.window.entries()) {
    const childScope: NodeScope = {
      ...scope,
      resources: parentResources(key, parent, scope.resources),
      parent: parentRef(node.resource, identifierOf(parent, traversal.idPaths[node.index] ?? DEFAULT_ID_PATH), scope),
    }
    const childTrail = [...ancestors, { ...frame, window: frame.window.slice(index) }]
    const from = index === 0 ? deeper : []
    yield* nodeListings(traversal, remainingNodes(node.children, from), childScope, childTrail, from)
  }
}

/** One frame per batch of parents in the page; the listing continues behind the page after the last one. */
function parentFrames(
  traversal: Traversal,
  visit: NodeVisit,
  page: RecordsPage,
  start: PageStart,
  following: PageStart | null,
): readonly StackFrame[] {
  const project = traversal.projections[visit.node.index]
  if (visit.node.children.length === 0 || project === undefined) return []
  const batches = splitParents(page.records.slice(start.skip), project)
  let skip = start.skip
  return batches.map((parents, index) => {
    skip += parents.length
    return listingFrame(visit, index === batches.length - 1 ? following : { state: start.state, skip }, parents)
  })
}

function listingFrame({ node, loopIndex }: NodeVisit, next: PageStart | null, parents: readonly Json[]): StackFrame {
  return { node: node.index, element: loopIndex, next, window: parents }
}

function toStep(traversal: Traversal, outcome: ListingError | RunOutcome, visit: NodeVisit): TraversalStep {
  const { node, ancestors } = visit
  switch (outcome.kind) {
    case 'listing_error': {
      const error = withPlace(outcome.error, visit, traversal.redact)
      return { ...outcome, error, node, after: [...ancestors, listingFrame(visit, null, [])] }
    }
    case 'failed':
    case 'retry':
      return { ...outcome, error: withNodeName(node, withPlace(outcome.error, visit, traversal.redact)) }
    default:
      return outcome
  }
}

/** Names of records are cut to this many characters in errors. */
const NAME_LENGTH_MAX = 200
const PATH_LENGTH_MAX = 500

function parentRef(resource: string, id: string | undefined, { parent }: NodeScope): ParentRef {
  const path = `${parent === undefined ? '' : `${parent.path}/`}${resource}/${id ?? '?'}`
  return { resource, ...(id === undefined ? {} : { id }), path }
}

/** The error with the listing that it ended. */
function withPlace({ reason, message, ...rest }: RunError, { node, scope }: NodeVisit, redact: Traversal['redact']) {
  const { resource, method } = node
  const { parent, element } = scope
  const cut = (text: string, lengthMax: number) => truncateText(redact(text), lengthMax)
  const shownParent = parent && {
    resource: parent.resource,
    ...(parent.id === undefined ? {} : { id: cut(parent.id, NAME_LENGTH_MAX) }),
    path: cut(parent.path, PATH_LENGTH_MAX),
  }
  const error: RunError = {
    reason,
    message,
    resource,
    method,
    ...(shownParent === undefined ? {} : { parent: shownParent }),
    ...(element === undefined ? {} : { element: cut(element, NAME_LENGTH_MAX) }),
    ...rest,
  }
  return error
}

/** One scope per loop element; one without a loop; `undefined` when the loop argument is no list. */
function loopScopes({ loopOn }: SyncNode, scope: NodeScope): readonly NodeScope[] | undefined {
  if (loopOn === undefined) return [scope]
  const values = Object.hasOwn(scope.args, loopOn) ? scope.args[loopOn] : undefined
  if (!Array.isArray(values)) return undefined
  return values.map((value) => ({
    ...scope,
    args: { ...scope.args, [loopOn]: value },
    element: typeof value === 'string' ? value : JSON.stringify(value),
  }))
}

async function* rejectLoop({ resource, method, loopOn }: SyncNode): AsyncGenerator<TraversalStep> {
  const message = `${resource} loops on the argument ${loopOn}, which must be a list`
  yield { kind: 'failed', error: { reason: 'ARGS_INVALID', message, resource, method } }
}
