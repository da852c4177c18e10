import type { ResourceStats } from '../queue/index.ts'
import type { SyncNode, SyncPlan } from './plan.ts'

/** What a node has done so far, as a checkpoint keeps it. */
export type NodeCounts = {
  readonly pages: number
  readonly fetched: number
  readonly delivered: number
  readonly failed: number
  /** Why the last of its listings that ended did; empty while none has. */
  readonly stop_reason: string
  /** Some listing ended before its natural end. */
  readonly is_cut: boolean
}

/** Ends that are a limit's doing: there was more. */
const CUTTING_REASONS: ReadonlySet<string> = new Set(['max_pages', 'max_records'])
/** The stop reason of a listing that ended with an error. */
const ERROR_REASON = 'error'
const NOTHING: NodeCounts = { pages: 0, fetched: 0, delivered: 0, failed: 0, stop_reason: '', is_cut: false }

/** The counters of a run, one set per node of the plan. */
export class Tally {
  readonly #plan: SyncPlan
  readonly #counts: NodeCounts[]

  /** @param counts of an earlier attempt; absent or of another length: all zero */
  constructor(plan: SyncPlan, counts: readonly NodeCounts[] = []) {
    this.#plan = plan
    this.#counts = plan.nodes.map(({ index }) => counts[index] ?? NOTHING)
  }

  get counts(): readonly NodeCounts[] {
    return [...this.#counts]
  }

  /** A page was read, and `delivered` of its records were acknowledged. */
  page(node: SyncNode, page: { readonly fetched: number; readonly delivered: number }): void {
    const { pages, fetched, delivered } = this.#of(node)
    this.#change(node, {
      pages: pages + 1,
      fetched: fetched + page.fetched,
      delivered: delivered + page.delivered,
    })
  }

  /** A listing ended by itself or at a limit. */
  listingEnded(node: SyncNode, stopReason: string | undefined): void {
    const isCut = this.#of(node).is_cut || CUTTING_REASONS.has(stopReason ?? '')
    this.#change(node, { ...(stopReason === undefined ? {} : { stop_reason: stopReason }), is_cut: isCut })
  }

  /** A listing ended with an error that was passed over. */
  listingFailed(node: SyncNode): void {
    this.#change(node, { failed: this.#of(node).failed + 1, stop_reason: ERROR_REASON, is_cut: true })
  }

  /**
   * The counters as runs show them. Nothing is complete before the run is, and nothing below a parent that was cut short:
   * its children were never asked for.
   */
  stats(isRunDone: boolean): ResourceStats[] {
    const stats: ResourceStats[] = []
    const visit = (node: SyncNode, isParentComplete: boolean): void => {
      const { stop_reason, is_cut, ...counts } = this.#of(node)
      const complete = isParentComplete && !is_cut
      stats[node.index] = {
        resource: node.resource,
        method: node.method,
        ...counts,
        ...(stop_reason === '' ? {} : { stopReason: stop_reason }),
        complete,
      }
      for (const child of node.children) visit(child, complete)
    }
    for (const root of this.#plan.waves[0] ?? []) visit(root, isRunDone)
    return stats
  }

  #of(node: SyncNode): NodeCounts {
    return this.#counts[node.index] ?? NOTHING
  }

  #change(node: SyncNode, change: Partial<NodeCounts>): void {
    this.#counts[node.index] = { ...this.#of(node), ...change }
  }
}
