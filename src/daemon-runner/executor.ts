import type { MessageInitShape } from '@bufbuild/protobuf'
import type { CallOptions } from '@connectrpc/connect'
import type {
  CompleteRunRequestSchema,
  FailRunRequestSchema,
  ReleaseRunRequestSchema,
} from '../../gen/patchbay/v1/daemon_service_pb.ts'
import { assertNever, backoffMs, type Clock, Failure, type JsonObject } from '../base/index.ts'
import { ServerUnavailable } from '../client/index.ts'
import { isLeaseLost, Lease, type ResourceStats, type RunOutcome, type RunProgress } from '../runs/index.ts'
import { executeRun } from '../syncs/index.ts'
import { describeError, type Logger } from '../telemetry/index.ts'
import type { DaemonRun } from './daemon-run.ts'
import { CALL_TIMEOUT_MS, SERVICE_RETRY_POLICY, type ServiceClients } from './service.ts'
import { daemonCallErrorFrom, hasReason } from './service-errors.ts'
import { createServiceSource } from './service-source.ts'
import type { Store } from './store.ts'
import { createStoreSink } from './store-sink.ts'

/** A run this daemon holds, and whether it is to end. */
export class HeldDaemonRun extends Lease {
  readonly run: DaemonRun
  #isStopping = false

  /** @param askedMs monotonic time before the claim was sent */
  constructor(run: DaemonRun, clock: Clock, leaseMs: number, askedMs: number) {
    super(run.id, clock, leaseMs, askedMs)
    this.run = run
  }

  /** The run is to end at its next page: somebody asked for it, or the daemon drains. */
  get isStopping(): boolean {
    return this.#isStopping
  }

  stop(): void {
    this.#isStopping = true
  }

  /** For a drain that takes too long. */
  override interrupt(): void {
    this.stop()
    super.interrupt()
  }
}

/** What waiting for the service needs. */
interface WaitDeps {
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
}

/**
 * Repeats a call that names the lease until the service is there to answer. That does no harm: of an ending whose answer
 * was lost, the second call is told LEASE_LOST.
 *
 * @throws Failure LEASE_LOST when the lease is over, or the run is gone
 */
async function retryWhileHeld<Answer>(
  { clock, random }: WaitDeps,
  held: HeldDaemonRun,
  call: (request: { readonly runId: string; readonly leaseId: string }, options: CallOptions) => Promise<Answer>,
): Promise<Answer> {
  const { id: runId, leaseId } = held.run
  for (let failures = 1; ; failures++) {
    held.assertHeld()
    try {
      return await call({ runId, leaseId }, { timeoutMs: CALL_TIMEOUT_MS })
    } catch (error) {
      const refusal = daemonCallErrorFrom(error)
      if (isLeaseLost(refusal) || hasReason(refusal, 'RESOURCE_NOT_FOUND')) {
        held.markLost()
        throw new Failure('LEASE_LOST', 'the service has given the run to somebody else', { cause: error })
      }
      if (!(refusal instanceof ServerUnavailable)) throw refusal
      await clock.sleep(Math.max(refusal.afterMs, backoffMs(SERVICE_RETRY_POLICY, failures, random)), lossOf(held))
    }
  }
}

/** The signal, unless it was raised for a drain: the ending still has to be told. */
function lossOf(held: HeldDaemonRun): AbortSignal | undefined {
  return held.signal.aborted ? undefined : held.signal
}

/** What reporting needs. */
interface ProgressDeps extends WaitDeps {
  readonly service: Pick<ServiceClients, 'daemons'>
  readonly store: Pick<Store, 'reportIntervalMs'>
}

/** What was done and is not reported yet. */
interface UnreportedProgress {
  readonly checkpoint: JsonObject
  readonly stats: readonly ResourceStats[]
}

/**
 * Tells the service how far a run has come: after every page, but no oftener than the store needs it. What is not reported
 * is done again by the next holder.
 */
class ProgressReporter implements RunProgress {
  readonly #deps: ProgressDeps
  readonly #held: HeldDaemonRun
  #pending: UnreportedProgress | undefined
  #reportedMs = Number.NEGATIVE_INFINITY

  constructor(deps: ProgressDeps, held: HeldDaemonRun) {
    this.#deps = deps
    this.#held = held
  }

  async save(checkpoint: JsonObject, stats: readonly ResourceStats[]): Promise<'continue' | 'stop'> {
    this.#pending = { checkpoint, stats }
    const isDue = performance.now() >= this.#reportedMs + this.#deps.store.reportIntervalMs
    if (isDue || this.#held.isStopping) await this.flush()
    return this.#held.isStopping ? 'stop' : 'continue'
  }

  /** Reports what is not reported yet, before the end of the run is told. @throws Failure LEASE_LOST */
  async flush(): Promise<void> {
    if (this.#pending === undefined) return
    const { checkpoint, stats } = this.#pending
    const progress = { checkpointJson: JSON.stringify(checkpoint), resourceStats: stats.map((each) => ({ ...each })) }
    const { stopRequested } = await retryWhileHeld(this.#deps, this.#held, async (request, options) => {
      const askedMs = performance.now()
      const answer = await this.#deps.service.daemons.reportProgress({ ...request, ...progress }, options)
      this.#held.renew(askedMs)
      return answer
    })
    this.#pending = undefined
    this.#reportedMs = performance.now()
    if (stopRequested) this.#held.stop()
  }
}

/** What of an ending does not depend on who holds the run. */
type SettlementRequest<
  Schema extends typeof CompleteRunRequestSchema | typeof FailRunRequestSchema | typeof ReleaseRunRequestSchema,
> = Omit<MessageInitShape<Schema>, '$typeName' | '$unknown' | 'runId' | 'leaseId'>

/** The call that tells the service how a run ended. */
export type SettlementCall =
  | { readonly call: 'completeRun'; readonly request: SettlementRequest<typeof CompleteRunRequestSchema> }
  | { readonly call: 'failRun'; readonly request: SettlementRequest<typeof FailRunRequestSchema> }
  | { readonly call: 'releaseRun'; readonly request: SettlementRequest<typeof ReleaseRunRequestSchema> }

/** Bounds of the contract. */
const MESSAGE_LENGTH_MAX = 8_192
const WAIT_SECONDS_MAX = 86_400

/**
 * How the service is told. Checkpoint and counters were reported before; by these the service knows whether all was read. A run that was stopped is handed back: the service
 * knows whether it is to go on elsewhere.
 */
export function settlementCallFor(outcome: RunOutcome): SettlementCall {
  switch (outcome.kind) {
    case 'completed':
    case 'partially_completed':
      return { call: 'completeRun', request: {} }
    case 'stopped':
      return { call: 'releaseRun', request: {} }
    case 'rate_limited':
      return { call: 'releaseRun', request: { waitSeconds: secondsOf(outcome.afterMs) } }
    case 'failed':
      return { call: 'failRun', request: { error: errorOf(outcome.error), retryable: false } }
    case 'retry': {
      const wait = outcome.afterMs === undefined ? {} : { waitSeconds: secondsOf(outcome.afterMs) }
      return { call: 'failRun', request: { error: errorOf(outcome.error), retryable: true, ...wait } }
    }
    default:
      return assertNever(outcome)
  }
}

function errorOf({ reason, message }: { readonly reason: string; readonly message: string }) {
  return { reason, message: message.slice(0, MESSAGE_LENGTH_MAX) }
}

function secondsOf(ms: number): number {
  return Math.min(WAIT_SECONDS_MAX, Math.max(0, Math.ceil(ms / 1_000)))
}

/** What executing runs needs. */
export interface DaemonExecutionDeps {
  readonly service: ServiceClients
  readonly store: Store
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  readonly logger: Logger
}

/** What became of a run in the hands of this daemon. */
export type DaemonRunResult = RunOutcome['kind'] | 'lost'

const UNEXPECTED_ERROR = { reason: 'INTERNAL', message: 'the execution failed unexpectedly in the daemon' }

/**
 * Executes a held run and tells the service how it ended. While the service is away it keeps asking, as long as the lease
 * may be held; after that the run is somebody else's and nothing more is said or written. Never rejects.
 */
export async function executeClaimedRun(deps: DaemonExecutionDeps, held: HeldDaemonRun): Promise<DaemonRunResult> {
  const { logger } = deps
  const run_id = held.run.id
  try {
    const outcome = await execute(deps, held)
    if (held.isLost) return 'lost'
    await settleRun(deps, held, outcome)
    return outcome.kind
  } catch (error) {
    if (!isLeaseLost(error)) logger.error({ run_id, ...describeError(error) }, 'a run could not be ended')
    return 'lost'
  }
}

/** @throws Failure LEASE_LOST */
async function execute(deps: DaemonExecutionDeps, held: HeldDaemonRun): Promise<RunOutcome> {
  const { clock, random, logger } = deps
  const { context, environmentVariables, attemptsMax, id } = held.run
  const source = createServiceSource(deps, held.run)
  await using sink = createStoreSink(deps, held)
  const report = new ProgressReporter(deps, held)
  const account = { context, environmentVariables }
  try {
    const runDeps = { source, sink, clock, random, account, attemptsMax }
    const outcome = await executeRun(runDeps, held.run, report, held.signal)
    if (!held.isLost) await report.flush()
    return outcome
  } catch (error) {
    if (isLeaseLost(error)) throw error
    logger.error({ run_id: id, ...describeError(error) }, 'the execution of a run failed unexpectedly')
    return { kind: 'retry', error: UNEXPECTED_ERROR }
  }
}

/** @throws Failure LEASE_LOST, and whatever else the service refuses */
async function settleRun(deps: DaemonExecutionDeps, held: HeldDaemonRun, outcome: RunOutcome): Promise<void> {
  const { daemons } = deps.service
  const ending = settlementCallFor(outcome)
  await retryWhileHeld(deps, held, async (request, options) => {
    switch (ending.call) {
      case 'completeRun':
        return await daemons.completeRun({ ...request, ...ending.request }, options)
      case 'failRun':
        return await daemons.failRun({ ...request, ...ending.request }, options)
      case 'releaseRun':
        return await daemons.releaseRun({ ...request, ...ending.request }, options)
    }
  })
}
