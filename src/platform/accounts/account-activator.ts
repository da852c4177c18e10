import { assertNever, type BackoffPolicy, backoffMs, Failure, HOUR_MS } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { type DueResult, type DueWorkDeps, type Lease, runDue } from '../../foundation/queue/index.ts'
import { type EnvironmentRef, getIntegratedAccount, type IntegratedAccount } from './account.ts'
import type { ActivationError, ActivationPhase, PhaseOutcome } from './activation-outcome.ts'
import { type ActivationDependencies, phaseResultJson, runActivationSteps } from './activation-steps.ts'
import type { AccountDependencies, ActivationChange } from './dependencies.ts'
import { forgetExternalId } from './sql/account-state.ts'
import { ACTIVATIONS, type Activation, showing, storePhaseResult } from './sql/activation.ts'
import type { AccountRef } from './sql/integrated-account.ts'
import { changeAccountStatus, type StatusCause } from './status.ts'

/** What an activator takes. */
export type AccountActivatorOptions = ActivationDependencies & DueWorkDeps & Pick<AccountDependencies, 'logger'>

/** For all steps of one attempt. */
const ATTEMPT_TIMEOUT_MS = 120_000
/** Longer than an attempt with its token requests takes. */
const LEASE_MS = 300_000
/** Inconclusive attempts before the activation fails. */
const ATTEMPTS_MAX = 5
const RETRY_BACKOFF: BackoffPolicy = { baseMs: 2_000, factor: 3, maxMs: 60_000, jitterFloor: 0.5 }

/** A choice makes the account due at once; this is for one that was made past the product. */
const CHOICE_RECHECK_MS = 24 * HOUR_MS

const FAILURE_CAUSE = {
  post_install: 'post_install_failed',
  validation: 'validation_failed',
} as const satisfies Readonly<Record<ActivationPhase, StatusCause>>

/**
 * Activates connecting accounts: runs their steps and makes them `active`, `post_install_error` or `validation_error`. A
 * repeated attempt runs only the phases that have not passed.
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
    const work = (lease: Lease<Activation>) => this.#activate(lease)
    return await runDue(this.#deps, { table: ACTIVATIONS, leaseMs: LEASE_MS, work })
  }

  /** Aborts attempts under way; they are not counted, and another worker repeats them. */
  stop(): void {
    this.#stop.abort()
  }

  /** @returns `undefined`: the lease was lost, because the account was claimed again, changed or deleted */
  async #activate(lease: Lease<Activation>): Promise<DueResult | undefined> {
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS)])
    for await (const { phase, outcome, steps } of runActivationSteps(this.#deps, lease, signal)) {
      const result = phaseResultJson(phase, steps)
      if (outcome.kind !== 'passed') return this.#resultOf(lease, phase, outcome, result)
      if (!(await this.#storePassed(lease, phase, result))) return undefined
    }
    return this.#ended(lease, { cause: 'steps_passed', result: {}, change: { kind: 'active' } })
  }

  #resultOf(
    lease: Lease<Activation>,
    phase: ActivationPhase,
    outcome: Exclude<PhaseOutcome, { readonly kind: 'passed' }>,
    result: JsonObject,
  ): DueResult {
    const { attempts } = lease
    const { error } = outcome
    switch (outcome.kind) {
      case 'failed':
        return this.#failed(lease, phase, outcome, result)
      case 'inconclusive': {
        if (this.#stop.signal.aborted) return { delayMs: 0, attempts: attempts - 1 }
        if (attempts >= ATTEMPTS_MAX) return this.#failed(lease, phase, { error, code: 'provider_unreachable' }, result)
        const backoff = backoffMs(RETRY_BACKOFF, attempts, this.#deps.random)
        return { delayMs: Math.max(outcome.retryAfterMs ?? 0, backoff), ...showing(error, result) }
      }
      case 'choice':
        return {
          delayMs: CHOICE_RECHECK_MS,
          attempts: attempts - 1,
          ...showing(error, {}),
          record: (tx) =>
            this.#deps.linkSessions.recordActivation(tx, lease, { kind: 'choice_needed', fields: outcome.fields }),
        }
      case 'postponed':
        return { delayMs: outcome.retryAfterMs, attempts: attempts - 1, ...showing(error, {}) }
      default:
        return assertNever(outcome)
    }
  }

  /** @returns whether the lease is still held */
  async #storePassed(lease: Lease<Activation>, phase: ActivationPhase, result: JsonObject): Promise<boolean> {
    const { database, linkSessions } = this.#deps
    return await database.transaction(async (tx) => {
      const isStored = await storePhaseResult(tx, lease, result)
      if (isStored && phase === 'post_install')
        await linkSessions.recordActivation(tx, lease, { kind: 'post_install_passed' })
      return isStored
    })
  }

  #failed(
    lease: Lease<Activation>,
    phase: ActivationPhase,
    { error, code, said = error }: Pick<ActivationError, 'error' | 'code' | 'said'>,
    result: JsonObject,
  ): DueResult {
    return this.#ended(lease, {
      cause: FAILURE_CAUSE[phase],
      result,
      error,
      change: { kind: 'failed', code, message: said },
    })
  }

  #ended(
    account: AccountRef,
    end: {
      readonly cause: 'steps_passed' | (typeof FAILURE_CAUSE)[ActivationPhase]
      /** Of the account. Absent: it has none. */
      readonly error?: string
      /** Steps of the last phase. */
      readonly result: JsonObject
      readonly change: ActivationChange
    },
  ): DueResult {
    const { linkSessions, subscriptions, logger } = this.#deps
    const { cause, error = '', result, change } = end
    return {
      ...showing(null, result),
      record: async (tx) => {
        await changeAccountStatus(tx, account, cause, error, logger)
        if (cause === 'steps_passed') await subscriptions.schedule(tx, account)
        await linkSessions.recordActivation(tx, account, change)
      },
    }
  }
}

/**
 * Repeats the steps of an account after they failed: it is `connecting` from then on, and every step runs again.
 *
 * @param input.isIdentityChangeConfirmed the account may be another one at the third party than before
 *
 * @throws Failure RESOURCE_NOT_FOUND; ACCOUNT_STATUS_CONFLICT, with the status in its metadata, for an account whose steps have
 * not failed
 */
export async function runAccountActions(
  deps: Pick<AccountDependencies, 'integrations'>,
  tx: Tx,
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
