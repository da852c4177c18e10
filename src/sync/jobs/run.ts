import { publicVariables } from '../../engine/definitions/index.ts'
import type { AccountValues } from '../../engine/expressions/index.ts'
import { type Clock, Failure } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { Lease } from '../../foundation/queue/index.ts'
import { completedStatusOf } from '../runs/incremental.ts'
import type { QueuedRun, RunError, RunOutcome, RunProgress } from '../runs/run.ts'
import { runErrorFields } from '../runs/run-payload.ts'
import { prefetchOne } from './async-iterators.ts'
import { type Checkpoint, readCheckpoint, type TraversalPosition } from './checkpoint.ts'
import { PageFetcher } from './listing.ts'
import { toRunError, withNodeName } from './page-outcome.ts'
import type { PageSource } from './page-source.ts'
import { parentProjection } from './parent-batches.ts'
import { compileSyncPlan, type SyncNode, type SyncPlan } from './plan.ts'
import { DEFAULT_ID_PATH } from './record-id.ts'
import { readSyncResources } from './resource.ts'
import {
  decideEnding,
  type EndingDeps,
  type OutageLimit,
  postpone,
  postponeRun,
  retryOrPostpone,
  storeEnding,
  WAITED_FOR_NOTHING,
} from './run-ending.ts'
import { RunStatsCollector } from './run-stats.ts'
import type { DestinationUnavailable, Sink, SinkPage, SinkResult } from './sink.ts'
import {
  type ListingErrorStep,
  type PageReadStep,
  type RestartStep,
  type Traversal,
  type TraversalStep,
  traverse,
  type WaitStep,
} from './traversal.ts'

/** The dependencies of executing one run; source and sink belong to this run. */
export interface SyncRunDeps {
  readonly source: PageSource
  readonly sink: Sink
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  /** Values of the account for templates of the job; no credentials. */
  readonly account: Pick<AccountValues, 'context' | 'environmentVariables'>
  /** Parallel calls to the third party, and listings prefetched per level. */
  readonly concurrency?: number
  /**
   * The last attempt: `retry` fails the run, unless the attempt has made progress, and a transient listing error counts as
   * permanent, unless the job lets the run wait. Absent: attempts are unlimited.
   */
  readonly attemptsMax?: number
  /** Logs what the run keeps about the data that it reads: errors of listings, records without an identifier. */
  readonly warn?: (fields: JsonObject, message: string) => void
}

/** The fields of a claimed run that execution reads. */
export type ExecutableRun = Pick<
  Lease<QueuedRun>,
  | 'resources'
  | 'args'
  | 'errorHandling'
  | 'previousRunDates'
  | 'checkpoint'
  | 'attempt'
  | 'giveUpAfterSeconds'
  | 'nextTickAt'
>

const CONCURRENCY_DEFAULT = 4
/** Minimum interval of checkpoints after pages that were not delivered: reading them again repeats no delivery. */
const CHECKPOINT_MIN_INTERVAL_MS = 1_000
/** Transient listing errors in a row; more mean that the third party is down. */
const CONSECUTIVE_TRANSIENT_MAX = 5

/**
 * Executes a run from its checkpoint: reads pages, delivers them in order, and saves a checkpoint after each. While one page is
 * delivered and saved the next one is read.
 *
 * After an early end, a crash or a lost lease the run resumes at the page in flight, which is delivered again under the same
 * sequence numbers; earlier pages are not.
 *
 * @returns `stopped` when `signal` aborts or `save` returns `stop`
 * @throws Failure LEASE_LOST from `save`: nothing about the run may be reported; and errors that are bugs
 */
export async function executeRun(
  deps: SyncRunDeps,
  run: ExecutableRun,
  progress: RunProgress,
  signal: AbortSignal,
): Promise<RunOutcome> {
  const plan = compilePlan(run)
  if (!('nodes' in plan)) {
    const ending = decideEnding(deps, run.attempt, plan)
    return await storeEnding({ ...deps, ...run, progress }, readCheckpoint(run.checkpoint), ending, [])
  }
  // Pages are prefetched: aborted when the run ends.
  const ended = new AbortController()
  const execution = new Execution(deps, run, progress, plan, AbortSignal.any([signal, ended.signal]))
  try {
    return await execution.run()
  } catch (error) {
    const isLost = error instanceof Failure && error.reason === 'LEASE_LOST'
    if (signal.aborted && !isLost) return { kind: 'stopped' }
    throw error
  } finally {
    ended.abort()
  }
}

function compilePlan(run: ExecutableRun): SyncPlan | RunError {
  try {
    return compileSyncPlan(readSyncResources(run.resources))
  } catch (error) {
    if (error instanceof Failure) return toRunError(error)
    throw error
  }
}

/** Delivers the pages of a run and saves checkpoints. Sequence numbers are assigned here alone. */
class Execution {
  readonly #deps: SyncRunDeps
  readonly #run: ExecutableRun
  readonly #progress: RunProgress
  readonly #plan: SyncPlan
  readonly #stats: RunStatsCollector
  readonly #fetcher: PageFetcher
  /** With the counts of the last attempt; `#withCounts` adds those of this one. */
  #checkpoint: Checkpoint
  /** The checkpoint is stored. */
  #isSaved = true
  #savedMs: number
  /** The position has moved in this attempt: attempts are counted anew. */
  #hasProgressed = false
  /** Nodes with a page of the current listing read in this attempt. */
  readonly #advancing = new Set<SyncNode>()
  /** Transient listing errors of the last attempt; see `#deferTransient`. */
  #deferred: ListingErrorStep[] = []

  constructor(deps: SyncRunDeps, run: ExecutableRun, progress: RunProgress, plan: SyncPlan, signal: AbortSignal) {
    this.#deps = deps
    this.#run = run
    this.#progress = progress
    this.#plan = plan
    this.#checkpoint = readCheckpoint(run.checkpoint)
    this.#stats = new RunStatsCollector(plan, deps.source.idPath, this.#checkpoint.counts)
    this.#savedMs = deps.clock.monotonicMs()
    const { source, clock, random, concurrency = CONCURRENCY_DEFAULT } = deps
    const showWait = (ms: number) => this.#progress.showWait(ms)
    this.#fetcher = new PageFetcher({ source, clock, random, signal, showWait }, concurrency, this.#checkpoint.limits)
  }

  async run(): Promise<RunOutcome> {
    const early = (await this.#start()) ?? (await this.#deliverAll())
    if (early === undefined) return await this.#end()
    if (early.kind === 'failed') return await this.#end(early.error)
    if (early.kind === 'retry') return await this.#retry(early)
    const { waits: limits } = this.#fetcher
    if (!this.#isSaved || limits !== (this.#checkpoint.limits ?? 0)) await this.#save({ limits })
    return early
  }

  /** Attempts that follow progress are counted anew, so another one comes. */
  async #retry(failure: Extract<RunOutcome, { readonly kind: 'retry' }>): Promise<RunOutcome> {
    const isLastAttempt = this.#isLastAttempt && !this.#hasProgressed
    const limit = { ...this.#limitFor(failure.error), isLastAttempt }
    const { waits: limits } = this.#fetcher
    const save = (change: Partial<Checkpoint>) => this.#save({ ...change, limits })
    return (
      (await retryOrPostpone(this.#deps, limit, this.#checkpoint, failure, save)) ?? (await this.#end(failure.error))
    )
  }

  /** A third party that always limits was waited for already: see `waitedTooOften`. */
  #limitFor({ reason }: RunError): OutageLimit {
    const { giveUpAfterSeconds, nextTickAt } = this.#run
    return { giveUpAfterSeconds: reason === 'UPSTREAM_RATE_LIMITED' ? 0 : giveUpAfterSeconds, nextTickAt }
  }

  /** @param error absent: all was read and delivered */
  async #end(error?: RunError): Promise<RunOutcome> {
    const deps: EndingDeps = { ...this.#deps, ...this.#run, progress: this.#progress }
    const stats = this.#stats.stats(error === undefined)
    const ending = decideEnding(deps, this.#run.attempt, error ?? completedStatusOf(this.#run.resources, stats))
    return await storeEnding(deps, this.#withCounts, ending, stats)
  }

  get #isLastAttempt(): boolean {
    const { attemptsMax } = this.#deps
    return attemptsMax !== undefined && this.#run.attempt >= attemptsMax
  }

  async #start(): Promise<RunOutcome | undefined> {
    if (this.#checkpoint.is_started) return undefined
    const result = await this.#deps.sink.started()
    if (result.kind !== 'accepted') return await this.#endAfter(result)
    return await this.#save({ is_started: true, ...WAITED_FOR_NOTHING, previous_run_dates: this.#previousRunDates })
  }

  async #deliverAll(): Promise<RunOutcome | undefined> {
    for await (const step of prefetchOne(traverse(this.#traversal(), this.#checkpoint.position))) {
      const end = await this.#deliver(step)
      if (end !== undefined) return end
    }
    const [first] = this.#deferred
    if (first === undefined) return undefined
    // Only what this attempt has read proves that the third party works.
    const isWorthWaiting =
      !this.#hasProgressed && postpone(this.#deps, this.#limitFor(first.error), this.#checkpoint, 0) !== undefined
    return isWorthWaiting || !this.#stats.hasPages ? retryFrom(first) : await this.#deliverDeferred()
  }

  async #deliver(step: TraversalStep): Promise<RunOutcome | undefined> {
    switch (step.kind) {
      case 'page':
        return (await this.#deliverDeferred()) ?? (await this.#deliverPage(step))
      case 'listing_error':
        if (step.isTransient) return this.#deferTransient(step)
        return (await this.#deliverDeferred()) ?? (await this.#deliverListingError(step))
      case 'restarted':
        return (await this.#deliverDeferred()) ?? (await this.#keepRestart(step))
      case 'waiting':
        return (await this.#keepProgress(step)) ?? step.end
      default:
        return step
    }
  }

  /** Stores what is read of a page, at most once per interval. Listings with deferred errors come before it: they stay. */
  async #keepProgress({ at, afterMs }: WaitStep): Promise<RunOutcome | undefined> {
    if (this.#deferred.length > 0) return undefined
    this.#hasProgressed = true
    if (afterMs >= CHECKPOINT_MIN_INTERVAL_MS || this.#isSaveDue()) return await this.#save({ position: at })
    this.#update({ position: at })
    return undefined
  }

  /** Stores that the listing begins again, so that it does so once, whatever becomes of this process. */
  async #keepRestart({ node, error, at }: RestartStep): Promise<RunOutcome | undefined> {
    const warning = this.#stats.warnOfRestart(node, error)
    this.#deps.warn?.({ resource: node.resource, ...warning }, 'a listing began again')
    this.#hasProgressed = true
    return await this.#save({ position: at })
  }

  /**
   * A transient listing error ends the attempt; the next attempt starts with that listing. On the last attempt it is deferred and
   * counts as permanent once another listing can be read, unless this attempt has read a page of it. Too many in a row, or no
   * readable listing at all, mean that the third party is down: the run ends at the first of them.
   */
  #deferTransient(step: ListingErrorStep): RunOutcome | undefined {
    const isRetried = !this.#isLastAttempt || this.#advancing.has(step.node)
    if (isRetried || this.#deferred.length === CONSECUTIVE_TRANSIENT_MAX) return retryFrom(this.#deferred[0] ?? step)
    this.#deferred.push(step)
    return undefined
  }

  async #deliverDeferred(): Promise<RunOutcome | undefined> {
    for (const step of this.#deferred.splice(0)) {
      const end = await this.#deliverListingError(step)
      if (end !== undefined) return end
    }
    return undefined
  }

  /** The checkpoint stays before a delivery that was not accepted, so that it is repeated. */
  async #endAfter(result: DestinationUnavailable | RunOutcome): Promise<RunOutcome> {
    if (result.kind !== 'unavailable') return result
    const { outcome, checkpoint } = postponeRun({ ...this.#deps, ...this.#run }, result, this.#checkpoint)
    return (await this.#save(checkpoint)) ?? outcome
  }

  async #deliverPage({ node, page, after }: PageReadStep): Promise<RunOutcome | undefined> {
    const isSent = node.isDelivered && page.records.length > 0
    const result = isSent ? await this.#deps.sink.page({ ...this.#head(node), page, errors: [] }) : NOTHING_SENT
    if (result.kind !== 'accepted') return await this.#endAfter(result)
    this.#stats.addPage(node, page, isSent)
    const warning = isSent ? this.#stats.warnOfMissingIds(node, page) : undefined
    if (warning !== undefined) this.#deps.warn?.({ resource: node.resource, ...warning }, 'records have no identifier')
    if (page.state === null) this.#advancing.delete(node)
    else this.#advancing.add(node)
    return await this.#advance(after, result.sequences)
  }

  async #deliverListingError({ node, error, after }: ListingErrorStep): Promise<RunOutcome | undefined> {
    const { errorHandling } = this.#run
    if (errorHandling === 'fail_fast') return { kind: 'failed', error: withNodeName(node, error) }
    const head = this.#head(node)
    const { sink } = this.#deps
    const result =
      errorHandling === 'batch'
        ? await sink.page({ ...head, page: EMPTY_PAGE, errors: [error] })
        : await sink.listingError({ ...head, error })
    if (result.kind !== 'accepted') return await this.#endAfter(result)
    const kept = this.#stats.failListing(node, error)
    if (kept !== undefined) this.#deps.warn?.(runErrorFields(kept), 'a listing failed')
    return await this.#advance(after, result.sequences)
  }

  #head({ resource, method }: SyncNode): Pick<SinkPage, 'resource' | 'method' | 'sequence'> {
    return { resource, method, sequence: this.#checkpoint.next_sequence }
  }

  async #advance(position: TraversalPosition, sequences: number): Promise<RunOutcome | undefined> {
    const change = {
      position,
      next_sequence: this.#checkpoint.next_sequence + sequences,
      limits: 0,
      ...WAITED_FOR_NOTHING,
    }
    this.#hasProgressed = true
    if (sequences > 0 || this.#isSaveDue()) return await this.#save(change)
    this.#update(change)
    return undefined
  }

  #isSaveDue(): boolean {
    return this.#deps.clock.monotonicMs() >= this.#savedMs + CHECKPOINT_MIN_INTERVAL_MS
  }

  async #save(change: Partial<Checkpoint>): Promise<RunOutcome | undefined> {
    this.#update(change)
    this.#savedMs = this.#deps.clock.monotonicMs()
    this.#isSaved = true
    const result = await this.#progress.save(this.#withCounts, this.#stats.stats(false))
    return result === 'stop' ? { kind: 'stopped' } : undefined
  }

  #update(change: Partial<Checkpoint>): void {
    this.#checkpoint = { ...this.#checkpoint, ...change }
    this.#isSaved = false
  }

  get #withCounts(): Checkpoint {
    return { ...this.#checkpoint, counts: this.#stats.counts }
  }

  get #previousRunDates(): readonly (string | null)[] {
    const { previous_run_dates } = this.#checkpoint
    return previous_run_dates ?? this.#run.previousRunDates.map((date) => date?.toISOString() ?? null)
  }

  #traversal(): Traversal {
    const { source, account, concurrency = CONCURRENCY_DEFAULT } = this.#deps
    const idPaths = this.#plan.nodes.map(({ resource, method }) => source.idPath?.(resource, method) ?? DEFAULT_ID_PATH)
    return {
      plan: this.#plan,
      fetcher: this.#fetcher,
      projections: this.#plan.nodes.map((node, index) => parentProjection(node, source.parentPaths, idPaths[index])),
      idPaths,
      redact: source.redact ?? ((text) => text),
      // What a job template renders is sent and may be delivered: no secret, in either executor.
      account: { ...account, environmentVariables: publicVariables(account.environmentVariables), credentials: {} },
      args: this.#run.args,
      previousRunDates: this.#previousRunDates,
      restarted: new Set(this.#stats.restarted),
      concurrency,
    }
  }
}

const NOTHING_SENT: SinkResult = { kind: 'accepted', sequences: 0 }
const EMPTY_PAGE: SinkPage['page'] = { records: [], state: null }

function retryFrom({ node, error, afterMs }: ListingErrorStep): RunOutcome {
  return { kind: 'retry', error: withNodeName(node, error), ...(afterMs === undefined ? {} : { afterMs }) }
}
