import { assertNever, type BackoffPolicy, backoffMs, Failure, type JsonObject, newId } from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import type { IntegrationCache } from '../integrations/index.ts'
import { type EnvironmentRef, getIntegratedAccount, type IntegratedAccount } from './account.ts'
import {
  type ActivationPhase,
  type ActivationStepsDeps,
  type PhaseResult,
  phaseResultJson,
  runActivationSteps,
} from './activation-steps.ts'
import {
  type ActivationLease,
  type ActivationPostponement,
  claimConnectingAccount,
  postponeActivation,
  storePhaseResult,
} from './sql/activation.ts'
import { changeAccountStatus, type StatusCause } from './status.ts'

/** What connecting accounts in the background needs. */
export interface AccountActivatorDeps extends ActivationStepsDeps {
  /** A number in [0, 1). */
  readonly random: () => number
  /** Only accounts that live in one of these. Absent: all. */
  readonly regions?: readonly string[] | undefined
}

/** All steps of one try; then it counts as unanswered. */
const ATTEMPT_TIMEOUT_MS = 120_000
/** Longer than a try with its token requests takes, so that no two workers have one account. */
const LEASE_MS = 300_000
/** Tries before "unknown" counts as a no. */
const ATTEMPTS_MAX = 5
const RETRY_BACKOFF: BackoffPolicy = { baseMs: 2_000, factor: 3, maxMs: 60_000, jitterFloor: 0.5 }

type ActivationEnd = Extract<StatusCause, 'steps_passed' | 'post_install_failed' | 'validation_failed'>

const FAILED: Readonly<Record<ActivationPhase, ActivationEnd>> = {
  post_install: 'post_install_failed',
  validation: 'validation_failed',
}

/**
 * Connects accounts: runs their steps and makes them `active`, `post_install_error` or `validation_error`. Any number of
 * workers share the work; each account is connected by one of them, and a try that is known to be over leaves nothing to do
 * twice but the steps of the phase in which it ended.
 */
export class AccountActivator {
  readonly #deps: AccountActivatorDeps
  readonly #stop = new AbortController()

  constructor(deps: AccountActivatorDeps) {
    this.#deps = deps
  }

  /** Tries to connect the account that has waited the longest. @returns whether there was one */
  async runOnce(): Promise<boolean> {
    if (this.#stop.signal.aborted) return false
    const { database, regions } = this.#deps
    const lease = await claimConnectingAccount(database.pool, { leaseId: newId(), leaseMs: LEASE_MS, regions })
    if (lease !== undefined) await this.#activate(lease)
    return lease !== undefined
  }

  /** Ends what is underway; another worker repeats it. */
  stop(): void {
    this.#stop.abort()
  }

  async #activate(lease: ActivationLease): Promise<void> {
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS)])
    for await (const end of runActivationSteps(this.#deps, lease, signal)) {
      const isToGoOn = await this.#recordPhase(lease, end)
      if (!isToGoOn) return
    }
    await this.#complete(lease, 'steps_passed', '', {})
  }

  /** @returns whether the next phase is to follow */
  async #recordPhase(lease: ActivationLease, { phase, outcome: verdict, steps }: PhaseResult): Promise<boolean> {
    const result = phaseResultJson(phase, steps)
    switch (verdict.kind) {
      case 'passed':
        return await storePhaseResult(this.#deps.database.pool, lease, result)
      case 'refused':
        await this.#complete(lease, FAILED[phase], verdict.error, result)
        return false
      case 'unknown':
        if (this.#stop.signal.aborted) await this.#postpone(lease, { afterMs: 0, isCounted: false })
        else if (lease.attempts >= ATTEMPTS_MAX) await this.#complete(lease, FAILED[phase], verdict.error, result)
        else {
          const afterMs = this.#retryDelayMs(lease, verdict.afterMs)
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
  async #complete(lease: ActivationLease, cause: ActivationEnd, error: string, result: JsonObject): Promise<void> {
    await this.#deps.database.transaction(async (tx) => {
      if (await storePhaseResult(tx, lease, result)) await changeAccountStatus(tx, lease, cause, error)
    })
  }

  async #postpone(lease: ActivationLease, pause: ActivationPostponement): Promise<void> {
    await postponeActivation(this.#deps.database.pool, lease, pause)
  }

  #retryDelayMs({ attempts: tries }: ActivationLease, askedMs = 0): number {
    return Math.max(askedMs, backoffMs(RETRY_BACKOFF, tries, this.#deps.random))
  }
}

/**
 * Has the steps of an account repeated after they failed: it is `connecting` from then on, and every step runs again.
 *
 * @throws Failure RESOURCE_NOT_FOUND; ACCOUNT_STATUS_CONFLICT, with the status in its metadata, for an account whose steps have
 * not failed
 */
export async function runAccountActions(
  deps: { readonly integrations: IntegrationCache },
  tx: Tx,
  scope: EnvironmentRef,
  { id }: { readonly id: string },
): Promise<IntegratedAccount> {
  const change = await changeAccountStatus(tx, { environmentId: scope.environmentId, id }, 'steps_repeated')
  if (change.kind === 'impossible') throw stepsNotFailed(id, change.from)
  return await getIntegratedAccount(deps, tx, scope, id)
}

const ADVICE: Readonly<Record<string, string>> = {
  connecting: 'its steps are tried by themselves until they pass or fail; next_attempt_at says when',
  active: 'its steps have passed',
  needs_reauth: 'it needs new credentials, with which its steps run again',
}

function stepsNotFailed(id: string, status: string): Failure {
  const why = ADVICE[status] ?? 'its steps have not failed'
  const message = `the account is ${status}: ${why}; steps are repeated after post_install_error and validation_error`
  return new Failure('ACCOUNT_STATUS_CONFLICT', message, {
    resource: { type: 'integrated_account', id },
    metadata: { status },
  })
}
