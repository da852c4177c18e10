import type { MessageInitShape } from '@bufbuild/protobuf'
import type { CallOptions } from '@connectrpc/connect'
import type {
  CompleteRunRequestSchema,
  FailRunRequestSchema,
  ReleaseRunRequestSchema,
} from '../../../gen/patchbay/v1/daemon_service_pb.ts'
import {
  assertNever,
  backoffMs,
  Failure,
  type PollLoopDeps,
  truncateText,
  wholeSeconds,
} from '../../foundation/base/index.ts'
import type { Outcome } from '../../foundation/queue/index.ts'
import { describeError, type Logger } from '../../foundation/telemetry/index.ts'
import {
  type ClaimedRuns,
  type HeartbeatState,
  isLeaseLost,
  type LeaseAnswer,
  type ResourceStats,
  type RunError,
  type RunLeases,
  type SavedProgress,
} from '../../sync/runs/index.ts'
import { callErrorFrom, hasReason, isAccessDenied, ServerUnavailable } from '../client/errors.ts'
import { type DaemonRun, daemonRunFromProto } from './daemon-run.ts'
import { SERVICE_RETRY_POLICY, type ServiceClients } from './service.ts'

/** What leases on runs of the service need. */
export interface ServiceLeasesDeps {
  readonly service: Pick<ServiceClients, 'daemons'>
  /** A number in [0, 1). */
  readonly random: () => number
  readonly logger: Logger
  /** Called once, when the service has accepted the daemon for the first time. */
  readonly onFirstRegistration?: () => void
}

/** How a daemon registers. */
export interface RegistrationRequest {
  readonly groupKey: string
  readonly label: string
  readonly version: string
  /** Only runs of accounts that live in one of these. Empty: all. */
  readonly regions: readonly string[]
}

/** The id that the service gave this daemon, and the times it expects. */
interface Registration {
  readonly daemonId: string
  readonly heartbeatMs: number
  readonly leaseMs: number
}

/** Timeout of a call that is not a list or a long poll. */
const CALL_TIMEOUT_MS = 10_000
/** Long poll of a claim: below the longest one the service grants, so that a lease from its end has most of its time left. */
const CLAIM_WAIT_SECONDS = 20
/** Until the service has said how often. */
const HEARTBEAT_INTERVAL_MS = 1_000

/**
 * Leases on the runs of a daemon group, taken from the service over its API: registers the daemon, claims by long poll,
 * and reports. Registers again when the service does not know the daemon any more.
 */
export class ServiceLeases implements RunLeases<DaemonRun> {
  readonly saveIntervalMs: number
  readonly #deps: ServiceLeasesDeps
  readonly #request: RegistrationRequest
  #registering: Promise<Registration> | undefined
  #registration: Registration | undefined
  #wasRegistered = false
  #isUnavailable = false

  /** @param saveIntervalMs progress is reported no oftener, ms */
  constructor(deps: ServiceLeasesDeps, request: RegistrationRequest, saveIntervalMs: number) {
    this.#deps = deps
    this.#request = request
    this.saveIntervalMs = saveIntervalMs
  }

  get heartbeatIntervalMs(): number {
    return this.#registration?.heartbeatMs ?? HEARTBEAT_INTERVAL_MS
  }

  async claim(limit: number, signal: AbortSignal): Promise<ClaimedRuns<DaemonRun>> {
    const begunMs = performance.now()
    const answer = await this.#asDaemon(signal, async ({ daemonId, leaseMs }) => {
      const request = { daemonId, capacity: limit, waitSeconds: CLAIM_WAIT_SECONDS }
      const timeoutMs = CLAIM_WAIT_SECONDS * 1_000 + CALL_TIMEOUT_MS
      return { leaseMs, ...(await this.#deps.service.daemons.claimRuns(request, { timeoutMs, signal })) }
    })
    if (answer === undefined) return { runs: [], leaseMs: 0, hasMore: false }
    const runs = answer.runs.flatMap((message) => {
      const run = daemonRunFromProto(message)
      if (run === undefined)
        this.#deps.logger.error({ run_id: message.run?.id }, 'a claimed run cannot be read by this daemon')
      return run ?? []
    })
    // An empty answer before its time comes from a server that shuts down: another call at once would meet it again.
    const hasMore = answer.runs.length > 0 || performance.now() - begunMs >= (CLAIM_WAIT_SECONDS - 1) * 1_000
    return { runs, leaseMs: answer.leaseMs, hasMore }
  }

  async heartbeat(runs: readonly DaemonRun[], { isDraining, signal }: HeartbeatState): Promise<readonly LeaseAnswer[]> {
    const answer = await this.#asDaemon(signal, ({ daemonId }) => {
      const held = runs.map(({ id: runId, leaseId }) => ({ runId, leaseId }))
      return this.#deps.service.daemons.heartbeat(
        { daemonId, held, isDraining },
        { timeoutMs: CALL_TIMEOUT_MS, signal },
      )
    })
    const held = answer?.held ?? []
    return held.map(({ isLost, stopRequested }) => ({ kind: isLost ? 'lost' : 'held', isStopRequested: stopRequested }))
  }

  async save(run: DaemonRun, { checkpoint, stats }: SavedProgress): Promise<{ readonly isStopRequested: boolean }> {
    const progress = { checkpointJson: JSON.stringify(checkpoint), resourceStats: stats.map(statsToProto) }
    const { stopRequested } = await underLease(run, (lease, options) =>
      this.#deps.service.daemons.reportProgress({ ...lease, ...progress }, options),
    )
    return { isStopRequested: stopRequested }
  }

  async showWait(run: DaemonRun, ms: number): Promise<void> {
    await underLease(run, (lease, options) =>
      this.#deps.service.daemons.reportProgress({ ...lease, waitSeconds: waitSeconds(ms) }, options),
    )
  }

  async settle(run: DaemonRun, outcome: Outcome): Promise<string> {
    const { daemons } = this.#deps.service
    const settlement = settlementCallFor(outcome)
    await underLease(run, async (lease, options) => {
      switch (settlement.call) {
        case 'completeRun':
          return await daemons.completeRun(lease, options)
        case 'failRun':
          return await daemons.failRun({ ...lease, ...settlement.request }, options)
        case 'releaseRun':
          return await daemons.releaseRun({ ...lease, ...settlement.request }, options)
        default:
          return assertNever(settlement)
      }
    })
    return outcome.kind
  }

  retryDelayMs(error: unknown, failures: number): number | undefined {
    const isRetryable = error instanceof ServerUnavailable || hasReason(error, 'DEADLINE_EXCEEDED')
    if (!isRetryable) return undefined
    const afterMs = error instanceof ServerUnavailable ? error.afterMs : 0
    return Math.max(afterMs, backoffMs(SERVICE_RETRY_POLICY, failures, this.#deps.random))
  }

  /** For the loops that claim and renew: a wrong token or address ends them, everything else is tried again. */
  readonly onLoopError: PollLoopDeps['onError'] = (error, loop, failures) => {
    const { logger } = this.#deps
    if (isAccessDenied(error)) throw error
    if (error instanceof ServerUnavailable) {
      if (!this.#isUnavailable)
        logger.warn({ error: error.message }, 'the service is unavailable, the daemon waits for it')
      this.#isUnavailable = true
    } else if (!hasReason(error, 'RESOURCE_NOT_FOUND')) logger.error({ loop, ...describeError(error) }, 'a call failed')
    return this.retryDelayMs(error, failures)
  }

  /** One call as a registered daemon. @returns `undefined` once `signal` has aborted */
  async #asDaemon<Answer>(
    signal: AbortSignal,
    call: (registration: Registration) => Promise<Answer>,
  ): Promise<Answer | undefined> {
    this.#registering ??= this.#register(signal)
    const registering = this.#registering
    try {
      const answer = await call(await registering)
      this.#isUnavailable = false
      return answer
    } catch (cause) {
      const error = callErrorFrom(cause)
      // Claim and heartbeat may both get this answer: the first of them registers again for both.
      const isForgotten = hasReason(error, 'RESOURCE_NOT_FOUND') || this.#registration === undefined
      if (isForgotten && this.#registering === registering) this.#registering = undefined
      if (signal.aborted) return undefined
      throw error
    }
  }

  async #register(signal: AbortSignal): Promise<Registration> {
    this.#registration = undefined
    const { service, logger, onFirstRegistration } = this.#deps
    const request = { ...this.#request, regions: [...this.#request.regions] }
    const answer = await service.daemons.registerDaemon(request, { timeoutMs: CALL_TIMEOUT_MS, signal })
    const { daemonId, heartbeatSeconds, leaseSeconds } = answer
    logger.info({ daemon_id: daemonId, group_key: request.groupKey }, 'the daemon is registered')
    if (!this.#wasRegistered) onFirstRegistration?.()
    this.#wasRegistered = true
    this.#registration = { daemonId, heartbeatMs: heartbeatSeconds * 1_000, leaseMs: leaseSeconds * 1_000 }
    return this.#registration
  }
}

/** One call under the lease of a run. @throws Failure LEASE_LOST also when the run is gone */
async function underLease<Answer>(
  { id: runId, leaseId }: DaemonRun,
  call: (lease: { readonly runId: string; readonly leaseId: string }, options: CallOptions) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await call({ runId, leaseId }, { timeoutMs: CALL_TIMEOUT_MS })
  } catch (cause) {
    const error = callErrorFrom(cause)
    if (isLeaseLost(error) || !hasReason(error, 'RESOURCE_NOT_FOUND')) throw error
    throw new Failure('LEASE_LOST', 'the service does not know the run any more', { cause })
  }
}

/** The request of a settlement without its lease. */
type SettlementRequest<
  Schema extends typeof CompleteRunRequestSchema | typeof FailRunRequestSchema | typeof ReleaseRunRequestSchema,
> = Omit<MessageInitShape<Schema>, '$typeName' | '$unknown' | 'runId' | 'leaseId'>

/** The call that settles a run. */
type SettlementCall =
  | { readonly call: 'completeRun' }
  | { readonly call: 'failRun'; readonly request: SettlementRequest<typeof FailRunRequestSchema> }
  | { readonly call: 'releaseRun'; readonly request: SettlementRequest<typeof ReleaseRunRequestSchema> }

/** Bounds of the contract. */
const MESSAGE_LENGTH_MAX = 8_192
const WAIT_SECONDS_MAX = 86_400

/**
 * How the service hears of an outcome. Checkpoint and counters were reported before; from the counters the service knows
 * whether everything was read. A run that was stopped is released: the service knows whether it resumes elsewhere.
 */
export function settlementCallFor(outcome: Outcome): SettlementCall {
  switch (outcome.kind) {
    case 'completed':
    case 'partially_completed':
      return { call: 'completeRun' }
    case 'stopped':
    case 'released':
      return { call: 'releaseRun', request: {} }
    case 'rate_limited': {
      const reason = outcome.error === undefined ? {} : { error: cutError(outcome.error) }
      return { call: 'releaseRun', request: { waitSeconds: waitSeconds(outcome.afterMs), ...reason } }
    }
    case 'failed':
      return { call: 'failRun', request: { error: cutError(outcome.error), retryable: false } }
    case 'retry': {
      const wait = outcome.afterMs === undefined ? {} : { waitSeconds: waitSeconds(outcome.afterMs) }
      const uncounted = outcome.isUncounted ?? false
      return { call: 'failRun', request: { error: cutError(outcome.error), retryable: true, uncounted, ...wait } }
    }
    default:
      return assertNever(outcome)
  }
}

function cutError({ message, ...error }: RunError) {
  return { ...error, message: truncateText(message, MESSAGE_LENGTH_MAX) }
}

function statsToProto({ errors = [], warnings = [], ...stats }: ResourceStats) {
  return { ...stats, errors: [...errors], warnings: [...warnings] }
}

function waitSeconds(ms: number): number {
  return Math.min(WAIT_SECONDS_MAX, Math.max(0, wholeSeconds(ms)))
}
