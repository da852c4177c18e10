import type { RecordsPage } from '../../engine/proxy/index.ts'
import { truncateText } from '../../foundation/base/index.ts'
import { type DotPath, formatDotPath } from '../../foundation/json/index.ts'
import type { ResourceStats, RunError, RunWarning } from '../runs/run.ts'
import { DistinctCounter, type DistinctState, IDENTIFIERS_MAX } from './distinct-counter.ts'
import type { PageSource } from './page-source.ts'
import type { SyncNode, SyncPlan } from './plan.ts'
import { DEFAULT_ID_PATH, identifierOf, identityOf } from './record-id.ts'
import { isUnifiedName } from './resource.ts'

/** The counters of a node in a checkpoint. */
export type NodeCounts = Counters & {
  readonly ids: DistinctState
}

type Counters = {
  readonly pages: number
  readonly fetched: number
  readonly delivered: number
  readonly failed: number
  /** Stop reason of the last listing that ended; empty while none has. */
  readonly stop_reason: string
  /** A listing was truncated. */
  readonly is_cut: boolean
  /** Reported total of the listings that have ended; `null` when one of them reported none. */
  readonly claimed: number | null
  /** Reported total of the current listing. */
  readonly claiming: number | null
  /** The first errors of listings. */
  readonly errors: readonly RunError[]
  readonly errors_omitted: number
  readonly warnings: readonly RunWarning[]
}

/** Stop reasons of limits: the listing had more. */
const TRUNCATING_REASONS: ReadonlySet<string> = new Set(['max_pages', 'max_records'])
/** Stop reason of a listing that ended with an error. */
const ERROR_REASON = 'error'
/** Limit of the contract (int32); upstream totals may exceed it. */
const REPORTED_TOTAL_MAX = 2 ** 31 - 1
const NO_COUNTS: Counters = {
  pages: 0,
  fetched: 0,
  delivered: 0,
  failed: 0,
  stop_reason: '',
  is_cut: false,
  claimed: 0,
  claiming: null,
  errors: [],
  errors_omitted: 0,
  warnings: [],
}
const RECORD_ID_MISSING = 'RECORD_ID_MISSING'
const LISTING_RESTARTED = 'LISTING_RESTARTED'
/** Errors that a node keeps. */
const ERRORS_MAX = 10
/** All errors that a run keeps, as JSON in UTF-16 units: they are saved with every checkpoint. */
const ERRORS_LENGTH_MAX = 32 * 1024
/** Longer messages of kept errors are cut. */
const MESSAGE_LENGTH_MAX = 500

/** Why counters contradict that a resource is complete; `undefined` when they do not. */
export function findIncompleteness(stats: ResourceStats): string | undefined {
  const { failed, fetched, stopReason = '', claimedTotal = 0 } = stats
  if (failed > 0) return `${failed} of its records or calls failed`
  if (stopReason === ERROR_REASON || TRUNCATING_REASONS.has(stopReason)) return `its listing ended with ${stopReason}`
  return claimedTotal > fetched ? `${claimedTotal} records were claimed and ${fetched} fetched` : undefined
}

/** The counters of a run, one set per node of the plan. */
export class RunStatsCollector {
  readonly #plan: SyncPlan
  readonly #counts: Counters[]
  readonly #ids: readonly DistinctCounter[]
  readonly #idPaths: readonly DotPath[]
  #errorsLength: number

  /** @param counts of an earlier attempt; absent: all zero */
  constructor(plan: SyncPlan, idPathOf: PageSource['idPath'], counts: readonly NodeCounts[] = []) {
    this.#plan = plan
    this.#counts = plan.nodes.map(({ index }) => ({ ...NO_COUNTS, ...counts[index] }))
    this.#errorsLength = this.#counts.reduce((sum, { errors }) => sum + JSON.stringify(errors).length, 0)
    this.#ids = plan.nodes.map(({ index }) => new DistinctCounter(counts[index]?.ids))
    this.#idPaths = plan.nodes.map(({ resource, method }) => idPathOf?.(resource, method) ?? DEFAULT_ID_PATH)
  }

  get counts(): readonly NodeCounts[] {
    return this.#counts.map((counts, index) => ({ ...counts, ids: this.#ids[index]?.state ?? {} }))
  }

  /** Whether a page was read. */
  get hasPages(): boolean {
    return this.#counts.some(({ pages }) => pages > 0)
  }

  /** Counts a page; the last one of a listing ends it. @param isDelivered its records were acknowledged by the destination */
  addPage(node: SyncNode, { records, state, stopReason, total }: RecordsPage, isDelivered: boolean): void {
    const counts = this.#of(node)
    const [ids, idPath = DEFAULT_ID_PATH] = [this.#ids[node.index], this.#idPaths[node.index]]
    ids?.add(records.values().map((record) => identityOf(record, idPath)))
    this.#boundIdentifiers()
    this.#change(node, {
      pages: counts.pages + 1,
      fetched: counts.fetched + records.length,
      delivered: counts.delivered + (isDelivered ? records.length : 0),
      // The empty page behind the last record often reports no total.
      claiming: total ?? counts.claiming,
    })
    if (state === null) this.#endListing(node, stopReason)
  }

  /** Stops the largest counter when all hold too many identifiers: that of a listing that has ended loses nothing by it. */
  #boundIdentifiers(): void {
    const held = this.#ids.reduce((sum, { size }) => sum + size, 0)
    if (held > IDENTIFIERS_MAX) this.#ids.reduce((one, other) => (other.size > one.size ? other : one)).stop()
  }

  /** A listing without a stop reason may be truncated. */
  #endListing(node: SyncNode, stopReason: string | undefined): void {
    const isCut = this.#of(node).is_cut || stopReason === undefined || TRUNCATING_REASONS.has(stopReason)
    const reason = stopReason === undefined ? {} : { stop_reason: stopReason }
    this.#change(node, { ...reason, is_cut: isCut, ...this.#claimsAfter(node) })
  }

  /** Counts a listing that ended with an error. @returns the error as it is kept; `undefined` beyond the first ones */
  failListing(node: SyncNode, error: RunError): RunError | undefined {
    const { failed, errors, errors_omitted } = this.#of(node)
    const shown = { ...error, message: truncateText(error.message, MESSAGE_LENGTH_MAX) }
    const length = JSON.stringify(shown).length
    const isKept = errors.length < ERRORS_MAX && this.#errorsLength + length <= ERRORS_LENGTH_MAX
    if (isKept) this.#errorsLength += length
    this.#change(node, {
      ...(isKept ? { errors: [...errors, shown] } : { errors_omitted: errors_omitted + 1 }),
      failed: failed + 1,
      stop_reason: ERROR_REASON,
      is_cut: true,
      ...this.#claimsAfter(node),
    })
    return isKept ? shown : undefined
  }

  /** Adds the warning that a listing of the node began again. @returns the warning */
  warnOfRestart(node: SyncNode, { message }: RunError): RunWarning {
    const what = `the listing of ${node.resource} began again from its first page, because its cursor has expired: ${message}`
    const warning = { reason: LISTING_RESTARTED, message: truncateText(what, MESSAGE_LENGTH_MAX) }
    this.#change(node, { warnings: [...this.#of(node).warnings, warning], claiming: null })
    return warning
  }

  /** Indexes of nodes whose listing began again. */
  get restarted(): number[] {
    return this.#counts.flatMap(({ warnings }, index) =>
      warnings.some(({ reason }) => reason === LISTING_RESTARTED) ? [index] : [],
    )
  }

  /** Adds a warning when records of the node have no identifier. @returns the warning, once per node */
  warnOfMissingIds(node: SyncNode, { records }: Pick<RecordsPage, 'records'>): RunWarning | undefined {
    const [{ warnings }, idPath = DEFAULT_ID_PATH] = [this.#of(node), this.#idPaths[node.index]]
    const isMissing =
      !warnings.some(({ reason }) => reason === RECORD_ID_MISSING) &&
      records.some((record) => identifierOf(record, idPath) === undefined)
    if (!isMissing) return undefined
    const warning = { reason: RECORD_ID_MISSING, message: missingIdMessage(node, idPath) }
    this.#change(node, { warnings: [...warnings, warning] })
    return warning
  }

  /**
   * The counters of the run's `resource_stats`. A node is complete when the run is done, no more was reported than read, and its
   * parent is complete: children of missing parents were never requested.
   */
  stats(isRunDone: boolean): ResourceStats[] {
    const stats: ResourceStats[] = []
    const visit = (node: SyncNode, isParentComplete: boolean): void => {
      const { pages, fetched, delivered, failed, stop_reason, is_cut, errors, errors_omitted, warnings } =
        this.#of(node)
      const claimedTotal = this.#claimedTotal(node)
      const counted = this.#distinctOf(node, fetched)
      const seen = isSingleListing(node, this.#plan) ? fetched - (counted.duplicates ?? 0) : fetched
      const complete = isParentComplete && !is_cut && (claimedTotal ?? 0) <= seen
      stats[node.index] = {
        resource: node.resource,
        method: node.method,
        pages,
        fetched,
        delivered,
        failed,
        ...(stop_reason === '' ? {} : { stopReason: stop_reason }),
        complete,
        ...(claimedTotal === undefined ? {} : { claimedTotal }),
        ...counted,
        ...(errors.length === 0 ? {} : { errors }),
        ...(errors_omitted === 0 ? {} : { errorsOmitted: errors_omitted }),
        ...(warnings.length === 0 ? {} : { warnings }),
      }
      for (const child of node.children) visit(child, complete)
    }
    for (const root of this.#plan.levels[0] ?? []) visit(root, isRunDone)
    return stats
  }

  #distinctOf({ index }: SyncNode, fetched: number): Pick<ResourceStats, 'distinct' | 'duplicates' | 'isEstimate'> {
    const counted = this.#ids[index]?.count(fetched)
    if (counted === undefined || fetched === 0) return {}
    const { isEstimate, ...counts } = counted
    return isEstimate ? { ...counts, isEstimate } : counts
  }

  /** Undefined while no listing has reported a total, and once one that ended has not. */
  #claimedTotal(node: SyncNode): number | undefined {
    const { pages, claimed, claiming, stop_reason } = this.#of(node)
    if (pages === 0 || claimed === null || (stop_reason === '' && claiming === null)) return undefined
    return Math.min(claimed + (claiming ?? 0), REPORTED_TOTAL_MAX)
  }

  #claimsAfter(node: SyncNode): Pick<NodeCounts, 'claimed' | 'claiming'> {
    const { claimed, claiming } = this.#of(node)
    return { claimed: claimed === null || claiming === null ? null : claimed + claiming, claiming: null }
  }

  #of(node: SyncNode): Counters {
    return this.#counts[node.index] ?? NO_COUNTS
  }

  #change(node: SyncNode, change: Partial<Counters>): void {
    this.#counts[node.index] = { ...this.#of(node), ...change }
  }
}

function missingIdMessage({ resource, method }: SyncNode, idPath: DotPath): string {
  const records = `records of ${resource} have no \`${formatDotPath(idPath)}\``
  const how = isUnifiedName(resource)
    ? 'map it in their unified mapping'
    : `set \`id_path\` of ${resource}.${method} in the definition to where they have one`
  return `${records}: ${how}. Until then a record is identified by its content, and a changed one is another`
}

/** Whether the node is one listing: then ids are unique, and a duplicate means that another record was skipped. */
function isSingleListing(node: SyncNode, { levels: [roots = []] }: SyncPlan): boolean {
  return node.loopOn === undefined && roots.includes(node)
}
