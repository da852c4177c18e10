import { assertNever, type BackoffPolicy, backoffMs, Failure, type JsonObject, newId } from '../base/index.ts'
import type { Db } from '../database/index.ts'
import { type EnvironmentRef, getIntegratedAccount, type IntegratedAccount } from './account.ts'
import type { ActivationError, ActivationPhase, PhaseResult } from './activation-outcome.ts'
import { type ActivationDependencies, phaseResultJson, runActivationSteps } from './activation-steps.ts'
import type { AccountDependencies, ActivationChange } from './dependencies.ts'
import { forgetExternalId } from './sql/account-state.ts'
import {
  type ActivationLease,
  type ActivationPostponement,
  claimConnectingAccount,
  postponeActivation,
  storePhaseResult,
} from './sql/activation.ts'
import { changeAccountStatus, type StatusCause } from './status.ts'

/** What an activator takes. */
export type AccountActivatorOptions = ActivationDependencies & {
  /** Only accounts of these regions. Absent: all. */
  readonly regions?: readonly string[] | undefined
}

/** For all steps of one attempt. */
const ATTEMPT_TIMEOUT_MS = 120_000
/** Longer than an attempt with its token requests takes. */
const LEASE_MS = 300_000
/** Inconclusive attempts before the activation fails. */
const ATTEMPTS_MAX = 5
const RETRY_BACKOFF: BackoffPolicy = { baseMs: 2_000, factor: 3, maxMs: 60_000, jitterFloor: 0.5 }

type EndCause = Extract<StatusCause, 'steps_passed' | 'post_install_failed' | 'validation_failed'>

/** How an activation ends: the transition, what the account shows, and the steps of the last phase. */
interface ActivationEnd {
  readonly cause: EndCause
  readonly error: string
  readonly result: JsonObject
}

const FAILURE_CAUSE: Readonly<Record<ActivationPhase, EndCause>> = {
  post_install: 'post_install_failed',
  validation: 'validation_failed',
}

/**
 * Activates connecting accounts: runs their steps and makes them `active`, `post_install_error` or `validation_error`. Any
 * number of workers share the work; a lease gives each account to one of them, and a repeated attempt runs only the phases
 * that have not passed.
 */
export class AccountActivator {
  readonly #deps: AccountActivatorOptions
  readonly #stop = new AbortController()

  constructor(deps: AccountActivatorOptions) {
    this.#deps = deps
  }

  /** Makes one attempt at the account that has been due the longest. @returns whether there was one */
  async runOnce(): Promise<boolean> {
    if (this.#stop.signal.aborted) return false
    const { database, regions } = this.#deps
    const lease = await claimConnectingAccount(database.pool, { leaseId: newId(), leaseMs: LEASE_MS, regions })
    if (lease !== undefined) await this.#activate(lease)
    return lease !== undefined
  }

  /** Aborts attempts under way; they are not counted, and another worker repeats them. */
  stop(): void {
    this.#stop.abort()
  }

  async #activate(lease: ActivationLease): Promise<void> {
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS)])
    for await (const result of runActivationSteps(this.#deps, lease, signal)) {
      const isPassed = await this.#recordPhase(lease, result)
      if (!isPassed) return
    }
    await this.#complete(lease, { cause: 'steps_passed', error: '', result: {} }, { kind: 'active' })
  }

  /** @returns whether the phase has passed and the lease is still held */
  async #recordPhase(lease: ActivationLease, { phase, outcome, steps }: PhaseResult): Promise<boolean> {
    const result = phaseResultJson(phase, steps)
    switch (outcome.kind) {
      case 'passed':
        return await this.#storePassed(lease, phase, result)
      case 'failed':
        await this.#fail(lease, phase, outcome, result)
        return false
      case 'inconclusive': {
        const { error } = outcome
        if (this.#stop.signal.aborted) await this.#postpone(lease, { delayMs: 0, isCounted: false })
        else if (lease.attempts >= ATTEMPTS_MAX)
          await this.#fail(lease, phase, { error, code: 'provider_unreachable' }, result)
        else {
          const delayMs = this.#retryDelayMs(lease, outcome.retryAfterMs)
          await this.#postpone(lease, { delayMs, isCounted: true, shown: { error, result } })
        }
        return false
      }
      case 'postponed': {
        const { error, retryAfterMs } = outcome
        await this.#postpone(lease, { delayMs: retryAfterMs, isCounted: false, shown: { error, result: {} } })
        return false
      }
      default:
        return assertNever(outcome)
    }
  }

  /** @returns whether the lease is still held */
  async #storePassed(lease: ActivationLease, phase: ActivationPhase, result: JsonObject): Promise<boolean> {
    const { database, linkSessions } = this.#deps
    return await database.transaction(async (tx) => {
      const isStored = await storePhaseResult(tx, lease, result)
      if (isStored && phase === 'post_install')
        await linkSessions.recordActivation(tx, lease, { kind: 'post_install_passed' })
      return isStored
    })
  }

  async #fail(
    lease: ActivationLease,
    phase: ActivationPhase,
    { error, code }: Pick<ActivationError, 'error' | 'code'>,
    result: JsonObject,
  ): Promise<void> {
    const end = { cause: FAILURE_CAUSE[phase], error, result }
    await this.#complete(lease, end, { kind: 'failed', code, message: error })
  }

  /** Without effect when the lease was lost, because the account was claimed again, changed or deleted. */
  async #complete(
    lease: ActivationLease,
    { cause, error, result }: ActivationEnd,
    change: ActivationChange,
  ): Promise<void> {
    const { database, linkSessions, subscriptions } = this.#deps
    await database.transaction(async (tx) => {
      if (!(await storePhaseResult(tx, lease, result))) return
      await changeAccountStatus(tx, lease, cause, error)
      if (cause === 'steps_passed') await subscriptions.schedule(tx, lease)
      await linkSessions.recordActivation(tx, lease, change)
    })
  }

  async #postpone(lease: ActivationLease, postponement: ActivationPostponement): Promise<void> {
    await postponeActivation(this.#deps.database.pool, lease, postponement)
  }

  #retryDelayMs({ attempts }: ActivationLease, retryAfterMs = 0): number {
    return Math.max(retryAfterMs, backoffMs(RETRY_BACKOFF, attempts, this.#deps.random))
  }
}

/**
 * Repeats the steps of an account after they failed: it is `connecting` from then on, and every step runs again. `tx` is a
 * transaction.
 *
 * @param input.isIdentityChangeConfirmed the account may be another one at the third party than before
 *
 * @throws Failure RESOURCE_NOT_FOUND; ACCOUNT_STATUS_CONFLICT, with the status in its metadata, for an account whose steps have
 * not failed
 */
export async function runAccountActions(
  deps: Pick<AccountDependencies, 'integrations'>,
  tx: Db,
  scope: EnvironmentRef,
  { id, isIdentityChangeConfirmed = false }: { readonly id: string; readonly isIdentityChangeConfirmed?: boolean },
): Promise<IntegratedAccount> {
  const account = { environmentId: scope.environmentId, id }
  if (isIdentityChangeConfirmed) await forgetExternalId(tx, account)
  const change = await changeAccountStatus(tx, account, 'steps_repeated')
  if (change.kind === 'impossible') throw stepsNotFailed(id, change.from)
  return await getIntegratedAccount(deps, tx, scope, id)
}

const ADVICE: Readonly<Record<string, string>> = {
  connecting: 'its steps are retried until they pass or fail; next_attempt_at says when',
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
