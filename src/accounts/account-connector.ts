import { assertNever, type BackoffPolicy, backoffMs, type JsonObject, newId } from '../base/index.ts'
import {
  type ConnectingLease,
  type ConnectingPause,
  claimConnectingAccount,
  postponeConnecting,
  storeActionResult,
} from '../storage/index.ts'
import { changeAccountStatus } from './change-status.ts'
import { type ConnectStepsDeps, type PhaseEnd, runConnectSteps } from './connect-steps.ts'
import type { StatusCause } from './status.ts'
import { type Phase, writeResults } from './step-results.ts'

/** What connecting accounts in the background needs. */
export interface ConnectorDeps extends ConnectStepsDeps {
  /** A number in [0, 1). */
  readonly random: () => number
  /** Only accounts that live in one of these. Absent: all. */
  readonly regions?: readonly string[] | undefined
}

/** All steps of one try; then it counts as unanswered. */
const TRY_MS_MAX = 120_000
/** Longer than a try with its token requests takes, so that no two workers have one account. */
const LEASE_MS = 300_000
/** Tries before "unknown" counts as a no. */
const TRIES_MAX = 5
const RETRY: BackoffPolicy = { baseMs: 2_000, factor: 3, maxMs: 60_000, jitterFloor: 0.5 }

type Ending = Extract<StatusCause, 'steps_passed' | 'post_install_failed' | 'validation_failed'>

const FAILED: Readonly<Record<Phase, Ending>> = {
  post_install: 'post_install_failed',
  validation: 'validation_failed',
}

/**
 * Connects accounts: runs their steps and makes them `active`, `post_install_error` or `validation_error`. Any number of
 * workers share the work; each account is connected by one of them, and a try that is known to be over leaves nothing to do
 * twice but the steps of the phase in which it ended.
 */
export class AccountConnector {
  readonly #deps: ConnectorDeps
  readonly #stop = new AbortController()

  constructor(deps: ConnectorDeps) {
    this.#deps = deps
  }

  /** Tries to connect the account that has waited the longest. @returns whether there was one */
  async runOnce(): Promise<boolean> {
    if (this.#stop.signal.aborted) return false
    const { database, regions } = this.#deps
    const lease = await claimConnectingAccount(database.direct, { leaseId: newId(), leaseMs: LEASE_MS, regions })
    if (lease !== undefined) await this.#connect(lease)
    return lease !== undefined
  }

  /** Ends what is underway; another worker repeats it. */
  stop(): void {
    this.#stop.abort()
  }

  async #connect(lease: ConnectingLease): Promise<void> {
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(TRY_MS_MAX)])
    for await (const end of runConnectSteps(this.#deps, lease, signal)) {
      const isToGoOn = await this.#note(lease, end)
      if (!isToGoOn) return
    }
    await this.#settle(lease, 'steps_passed', '', {})
  }

  /** @returns whether the next phase is to follow */
  async #note(lease: ConnectingLease, { phase, verdict, steps }: PhaseEnd): Promise<boolean> {
    const result = writeResults(phase, steps)
    switch (verdict.kind) {
      case 'passed':
        return await storeActionResult(this.#deps.database.direct, lease, result)
      case 'refused':
        await this.#settle(lease, FAILED[phase], verdict.error, result)
        return false
      case 'unknown':
        if (this.#stop.signal.aborted) await this.#postpone(lease, { afterMs: 0, isCounted: false })
        else if (lease.tries >= TRIES_MAX) await this.#settle(lease, FAILED[phase], verdict.error, result)
        else {
          const afterMs = this.#pauseMs(lease, verdict.afterMs)
          await this.#postpone(lease, { afterMs, isCounted: true, found: { error: verdict.error, result } })
        }
        return false
      case 'postponed': {
        const { error, afterMs } = verdict
        await this.#postpone(lease, { afterMs, isCounted: false, found: { error, result: {} } })
        return false
      }
      default:
        return assertNever(verdict)
    }
  }

  /** Without effect when the account was taken over, changed or removed meanwhile. */
  async #settle(lease: ConnectingLease, cause: Ending, error: string, result: JsonObject): Promise<void> {
    await this.#deps.database.transaction(async (tx) => {
      if (await storeActionResult(tx, lease, result)) await changeAccountStatus(tx, lease, cause, error)
    })
  }

  async #postpone(lease: ConnectingLease, pause: ConnectingPause): Promise<void> {
    await postponeConnecting(this.#deps.database.direct, lease, pause)
  }

  #pauseMs({ tries }: ConnectingLease, askedMs = 0): number {
    return Math.max(askedMs, backoffMs(RETRY, tries, this.#deps.random))
  }
}
