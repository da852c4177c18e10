import { backoffMs, type Clock } from '../base/index.ts'
import { ServerUnavailable } from '../client/index.ts'
import { describeError, type Logger } from '../telemetry/index.ts'
import { daemonRunFromProto } from './daemon-run.ts'
import { type DaemonExecutionDeps, executeClaimedRun, HeldDaemonRun } from './executor.ts'
import { type Registration, register } from './registration.ts'
import { CALL_TIMEOUT_MS, SERVICE_RETRY_POLICY } from './service.ts'
import { daemonCallErrorFrom, hasReason, isFatal } from './service-errors.ts'

/** What a daemon is made of. */
export interface DaemonRunnerDeps extends DaemonExecutionDeps {
  readonly clock: Clock
  readonly logger: Logger
}

/** What a daemon takes. */
export interface DaemonRunnerOptions {
  readonly groupKey: string
  readonly label: string
  readonly version: string
  /** Only runs of accounts that live in one of these. Empty: all. */
  readonly regions: readonly string[]
  /** Runs executed at once at most. */
  readonly capacity: number
}

/** Below the longest wait the service grants, so that a lease from the end of it still has most of its time. */
const CLAIM_WAIT_SECONDS = 20
/** A service that does not know yet that the daemon drains gets this long; then the claim is called off. */
const CLAIM_GRACE_MS = 2_000
/** Runs that were interrupted get this long to return before they are left to their leases. */
const INTERRUPT_GRACE_MS = 5_000

/**
 * Claims runs of a group, as many as it has room for, keeps their leases alive with one call for all, and executes them.
 *
 * At-least-once: a daemon that dies leaves its leases, and another one of the group goes on at the last page reported.
 */
export class DaemonRunner {
  readonly #deps: DaemonRunnerDeps
  readonly #options: DaemonRunnerOptions
  readonly #held = new Map<string, HeldDaemonRun>()
  readonly #executions = new Set<Promise<void>>()
  readonly #ended = new AbortController()
  #nap = new AbortController()
  #isHeartbeatDue = false
  #registration: Promise<Registration> | undefined
  readonly #draining = new AbortController()
  readonly #claimEnded = new AbortController()
  #room = Promise.withResolvers<void>()

  constructor(deps: DaemonRunnerDeps, options: DaemonRunnerOptions) {
    this.#deps = deps
    this.#options = options
  }

  /** Runs it holds. */
  get running(): number {
    return this.#held.size
  }

  /**
   * Works until it has drained.
   *
   * @throws Failure when the service does not let this daemon in: its token is wrong or gone; ConnectError when there is no
   *   such service at the address
   */
  async run(): Promise<void> {
    const heartbeats = this.#sendHeartbeats()
    try {
      await Promise.race([this.#claim(), heartbeats])
      await Promise.all(this.#executions)
    } finally {
      this.#ended.abort()
      this.#nap.abort()
      for (const held of this.#held.values()) held.interrupt()
    }
    await heartbeats
  }

  /**
   * Stops claiming, asks every execution to end at its next page and hands the runs back; after `deadlineMs` what still
   * goes on is interrupted, to be resumed at the last page reported. `run` resolves when that is done.
   */
  async drain(deadlineMs: number): Promise<void> {
    this.#draining.abort()
    for (const held of this.#held.values()) held.stop()
    this.#heartbeatNow()
    this.#room.resolve()
    const { clock } = this.#deps
    void clock.sleep(Math.min(CLAIM_GRACE_MS, deadlineMs), this.#ended.signal).then(() => this.#claimEnded.abort())
    await clock.sleep(deadlineMs, this.#ended.signal)
    for (const held of this.#held.values()) held.interrupt()
    await clock.sleep(INTERRUPT_GRACE_MS, this.#ended.signal)
    for (const held of this.#held.values()) held.markLost()
  }

  get #isDraining(): boolean {
    return this.#draining.signal.aborted
  }

  async #claim(): Promise<void> {
    for (let failures = 0; !this.#isDraining; ) {
      if (this.#held.size >= this.#options.capacity) await this.#room.promise
      else failures = (await this.#asking(failures, (registration) => this.#claimOnce(registration))) ? 0 : failures + 1
    }
  }

  /** Waits at the service for runs. The answer to a drain is there at once, or holds runs that are then handed back. */
  async #claimOnce({ daemonId, leaseMs }: Registration): Promise<void> {
    const askedMs = performance.now()
    const capacity = this.#options.capacity - this.#held.size
    const timeoutMs = CLAIM_WAIT_SECONDS * 1_000 + CALL_TIMEOUT_MS
    const { runs } = await this.#deps.service.daemons.claimRuns(
      { daemonId, capacity, waitSeconds: CLAIM_WAIT_SECONDS },
      { timeoutMs, signal: AbortSignal.any([this.#ended.signal, this.#claimEnded.signal]) },
    )
    for (const message of runs) {
      const run = daemonRunFromProto(message)
      if (run !== undefined) this.#begin(new HeldDaemonRun(run, this.#deps.clock, leaseMs, askedMs))
      else this.#deps.logger.error({ run_id: message.run?.id }, 'a run was handed out that this daemon cannot read')
    }
    // The leases began some time during the wait; from now on it is known when.
    if (runs.length > 0) this.#heartbeatNow()
  }

  #begin(held: HeldDaemonRun): void {
    const { id, attempt } = held.run
    const { logger } = this.#deps
    this.#room = Promise.withResolvers()
    this.#held.set(id, held)
    if (this.#isDraining) held.stop()
    logger.info({ run_id: id, attempt }, 'a run begins')
    const execution = executeClaimedRun(this.#deps, held).then((kept) => {
      held.release()
      if (this.#held.get(id) === held) this.#held.delete(id)
      this.#executions.delete(execution)
      this.#room.resolve()
      logger[kept === 'lost' ? 'warn' : 'info']({ run_id: id, attempt, outcome: kept }, 'a run is over')
    })
    this.#executions.add(execution)
  }

  async #sendHeartbeats(): Promise<void> {
    for (let failures = 0; !this.#ended.signal.aborted; ) {
      const isSent = await this.#asking(failures, (registration) => this.#heartbeatOnce(registration))
      failures = isSent ? 0 : failures + 1
      if (isSent) await this.#sleep((await this.#registered()).heartbeatMs)
    }
  }

  /** Renews every lease in one call. Leases nobody renews end here by themselves. */
  async #heartbeatOnce({ daemonId }: Registration): Promise<void> {
    const askedMs = performance.now()
    const held = [...this.#held.values()].filter(({ isLost }) => !isLost)
    const answer = await this.#deps.service.daemons.heartbeat(
      {
        daemonId,
        held: held.map(({ run }) => ({ runId: run.id, leaseId: run.leaseId })),
        isDraining: this.#isDraining,
      },
      { timeoutMs: CALL_TIMEOUT_MS, signal: this.#ended.signal },
    )
    for (const [index, { isLost, stopRequested }] of answer.held.entries()) {
      const each = held[index]
      if (each === undefined || this.#held.get(each.run.id) !== each) continue
      if (isLost) each.markLost()
      else each.renew(askedMs)
      if (stopRequested) each.stop()
    }
  }

  #heartbeatNow(): void {
    this.#isHeartbeatDue = true
    this.#nap.abort()
  }

  async #sleep(ms: number): Promise<void> {
    this.#nap = new AbortController()
    if (!this.#isHeartbeatDue && !this.#ended.signal.aborted) await this.#deps.clock.sleep(ms, this.#nap.signal)
    this.#isHeartbeatDue = false
  }

  /**
   * One call as a registered daemon, and what its failure asks for: a pause, or another registration.
   *
   * @returns whether it went well
   * @throws what makes every further call hopeless
   */
  async #asking(failures: number, call: (registration: Registration) => Promise<void>): Promise<boolean> {
    const registering = this.#registered()
    try {
      await call(await registering)
      return true
    } catch (error) {
      if (this.#ended.signal.aborted) return true
      const refusal = daemonCallErrorFrom(error)
      if (isFatal(refusal)) throw refusal
      await this.#recover(registering, refusal, failures)
      return false
    }
  }

  async #recover(registering: Promise<Registration>, refusal: unknown, failures: number): Promise<void> {
    const { clock, random, logger } = this.#deps
    if (hasReason(refusal, 'RESOURCE_NOT_FOUND')) {
      // Both loops are told; the first one registers again for both.
      if (this.#registration === registering) this.#registration = undefined
      return
    }
    const isAway = refusal instanceof ServerUnavailable
    if (!isAway) logger.error(describeError(refusal), 'a call failed')
    else if (failures === 0) logger.warn({ error: refusal.message }, 'the service is away, the daemon waits for it')
    const pauseMs = Math.max(isAway ? refusal.afterMs : 0, backoffMs(SERVICE_RETRY_POLICY, failures + 1, random))
    await clock.sleep(pauseMs, this.#ended.signal)
  }

  #registered(): Promise<Registration> {
    const stop = AbortSignal.any([this.#ended.signal, this.#draining.signal])
    this.#registration ??= register(this.#deps, this.#options, stop).catch((error: unknown) => {
      this.#registration = undefined
      throw error
    })
    return this.#registration
  }
}
