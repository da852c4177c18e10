import { randomBytes } from 'node:crypto'
import type { SubscriptionPlan } from '../../engine/definitions/index.ts'
import { createRedaction } from '../../engine/proxy/index.ts'
import { type BackoffPolicy, backoffMs, catchFailure, Failure } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import { canonicalJson, type Json } from '../../foundation/json/index.ts'
import { type DueResult, type DueWorkDeps, type Lease, runDue, settleDue } from '../../foundation/queue/index.ts'
import { appendAccountEvent } from '../accounts/account-events.ts'
import type { AccountDependencies } from '../accounts/dependencies.ts'
import { loadAccountForCall } from '../accounts/load-account.ts'
import type { ResolvedAccount } from '../accounts/resolved-account.ts'
import { readSubscriptionState, updateSubscriptionState } from '../accounts/subscription-state.ts'
import { renewalDelayMs } from './expiry.ts'
import {
  endSubscription,
  errorOfFailure,
  isSubscriptionWanted,
  requestSubscription,
  type SubscriptionAnswer,
  type SubscriptionDependencies,
  type SubscriptionError,
  type SubscriptionTarget,
} from './request.ts'
import {
  type DueSubscription,
  deleteSubscription,
  type FailedRequest,
  failedRequest,
  forgetReplaced,
  listSubscriptions,
  markDeleting,
  SUBSCRIPTIONS,
  subscribed,
  unsubscribed,
} from './sql/subscription.ts'

/** What making requests about subscriptions takes. */
export type SubscriberOptions = Pick<
  AccountDependencies,
  'database' | 'reader' | 'secrets' | 'definitions' | 'contextValues' | 'tokens' | 'clock' | 'random'
> &
  SubscriptionDependencies &
  DueWorkDeps

/** For all requests of an attempt: a token, up to three actions. */
const ATTEMPT_TIMEOUT_MS = 60_000
/** Longer than an attempt takes. */
const LEASE_MS = 90_000
const SECRET_BYTES = 32
/** Attempts without a success before the subscription counts as failed. */
const ATTEMPTS_MAX = 5
const RETRY_BACKOFF: BackoffPolicy = { baseMs: 2_000, factor: 4, maxMs: 10 * 60_000, jitterFloor: 0.5 }
/** Of failed ones. */
const FAILED_BACKOFF: BackoffPolicy = { baseMs: 10 * 60_000, factor: 2, maxMs: 6 * 3_600_000, jitterFloor: 0.5 }
/** An account that is not active, or whose installation is disabled, is looked at again. */
const INACTIVE_DELAY_MS = 10 * 60_000
const ERROR_LENGTH_MAX = 500
/** A condition that does not hold is looked at again. */
const CONDITION_DELAY_MS = 3_600_000
const CONDITION_JITTER = 0.2

/** The account cannot be used now, through no fault of the subscription. */
const INACTIVE: ReadonlySet<Failure['reason']> = new Set([
  'ACCOUNT_NOT_ACTIVE',
  'INTEGRATION_DISABLED',
  'CREDENTIALS_INVALID',
])

/**
 * Creates, renews and replaces the subscriptions of accounts at third parties. Requests are sent outside of transactions: the third party may call the address of
 * the account, and wait for the answer, before it responds.
 */
export class AccountSubscriber {
  readonly #deps: SubscriberOptions

  constructor(deps: SubscriberOptions) {
    this.#deps = deps
  }

  /** Makes the request that has been due the longest. @returns whether there was one */
  async runOnce(): Promise<boolean> {
    return await runDue(this.#deps, { table: SUBSCRIPTIONS, leaseMs: LEASE_MS, work: (lease) => this.#work(lease) })
  }

  async #work(lease: Lease<DueSubscription>): Promise<DueResult | undefined> {
    const signal = AbortSignal.timeout(ATTEMPT_TIMEOUT_MS)
    const resolved = await this.#load(lease)
    if (resolved instanceof Failure) return this.#unusable(lease, resolved)
    const { webhookSubscription: plan } = resolved.plan
    if (plan === undefined) return await this.#delete(lease)
    const present = targetOf(lease, resolved, plan, signal)
    if (!plan.keys.includes(lease.event)) return await this.#remove(lease, present, 'forever')
    const isWanted = await catchFailure(() => isSubscriptionWanted(this.#deps, present))
    if (isWanted instanceof Failure) return this.#failed(lease, resolved, errorOfFailure(isWanted))
    if (!isWanted) return await this.#remove(lease, present, 'for_now')
    await this.#ensureSecret(lease, plan)
    // With the secret.
    const account = await this.#load(lease)
    if (account instanceof Failure) return this.#unusable(lease, account)
    const target = { ...present, resolved: account }
    await this.#endReplaced(lease, target, lease.replacedId)
    const answer = await this.#request(lease, target)
    if (answer.kind !== 'ok') return this.#failed(lease, account, answer)
    await this.#succeed(lease, target, answer)
    return undefined
  }

  /** The account with a fresh token, or why it cannot be used. */
  async #load({ environmentId, integratedAccountId: id }: DueSubscription): Promise<ResolvedAccount | Failure> {
    return await catchFailure(() => loadAccountForCall(this.#deps, environmentId, id, 'sync'))
  }

  /** @returns `undefined` for an account that was deleted, which has taken its subscriptions with it */
  #unusable(lease: DueSubscription, failure: Failure): DueResult | undefined {
    if (failure.reason === 'RESOURCE_NOT_FOUND') return undefined
    if (!INACTIVE.has(failure.reason)) return this.#failed(lease, undefined, errorOfFailure(failure))
    const postponed = { delayMs: INACTIVE_DELAY_MS, isCounted: false, isFailed: false, isGone: false }
    return failedRequest(lease, { ...postponed, error: failure.publicMessage })
  }

  /** What is due: a renewal, or another subscription. */
  async #request(
    lease: Lease<DueSubscription>,
    target: SubscriptionTarget,
  ): Promise<SubscriptionAnswer | SubscriptionError> {
    const { clock } = this.#deps
    const isOver = lease.expiresAt !== null && lease.expiresAt <= clock.now()
    const canRenew = target.plan.actions.renew !== undefined && lease.externalId !== null && !lease.isReplacementDue
    const now = () => clock.now()
    if (canRenew && !isOver)
      return (
        (await requestSubscription(this.#deps, target, 'renew', now)) ?? { kind: 'gone', error: 'renew found none' }
      )
    const found = await this.#find(lease, target)
    if (found !== undefined) return found
    const created = await this.#create(target)
    // Some third parties permit one subscription per address.
    const isInTheWay = created.kind === 'rejected' && target.id !== null && target.plan.actions.delete !== undefined
    if (!isInTheWay || (await endSubscription(this.#deps, target)) !== undefined) return created
    return await this.#create(target)
  }

  async #create(target: SubscriptionTarget): Promise<SubscriptionAnswer | SubscriptionError> {
    const now = () => this.#deps.clock.now()
    const created = await requestSubscription(this.#deps, { ...target, id: null }, 'create', now)
    return created ?? { kind: 'rejected', error: 'create made none' }
  }

  /** One that an earlier attempt created, whose response was lost. An error of the search does not prevent the creation. */
  async #find(lease: Lease<DueSubscription>, target: SubscriptionTarget): Promise<SubscriptionAnswer | undefined> {
    const mayExist = lease.externalId === null && (lease.attempts > 1 || lease.failedAt !== null)
    if (!mayExist || target.plan.actions.find === undefined) return undefined
    const found = await requestSubscription(this.#deps, target, 'find', () => this.#deps.clock.now())
    return found?.kind === 'ok' ? found : undefined
  }

  /** Stored before the first request, so that the handshake and the first deliveries can be verified. */
  async #ensureSecret({ environmentId, integratedAccountId: id }: DueSubscription, { secret }: SubscriptionPlan) {
    if (secret?.kind !== 'generated') return
    const account = { environmentId, id }
    await this.#deps.database.transaction(async (tx) => {
      await listSubscriptions(tx, account, 'update')
      const { secret: stored } = await readSubscriptionState(this.#deps, tx, account)
      if (stored === undefined)
        await updateSubscriptionState(this.#deps, tx, account, {
          secret: randomBytes(SECRET_BYTES).toString(secret.encoding),
        })
    })
  }

  async #succeed(lease: Lease<DueSubscription>, target: SubscriptionTarget, answer: SubscriptionAnswer): Promise<void> {
    const { clock, random, database } = this.#deps
    const { id: externalId, expiresAt } = answer
    const isReplaced = lease.externalId !== null && !isSameId(lease.externalId, externalId)
    const replacedId = isReplaced ? lease.externalId : null
    const delayMs = renewalDelayMs(target.plan, expiresAt, clock.now(), random)
    const isStored = await database.transaction(async (tx) => {
      const others = await listSubscriptions(tx, accountOf(lease), 'update')
      const settlement = subscribed({ externalId, replacedId, expiresAt, delayMs })
      if (!(await settleDue(tx, SUBSCRIPTIONS, lease, settlement))) return false
      const ids = [...others.filter(({ event }) => event !== lease.event), { event: lease.event, externalId }]
      await updateSubscriptionState(this.#deps, tx, accountOf(lease), {
        secret: answer.secret,
        ids: Object.fromEntries(
          ids.flatMap((each) => (each.externalId === null ? [] : [[each.event, each.externalId]])),
        ),
      })
      return true
    })
    // The account was deleted meanwhile, or another worker took over: nothing else would delete what was just created.
    if (!isStored && target.plan.actions.delete !== undefined && !isSameId(target.id, externalId))
      await endSubscription(this.#deps, { ...target, id: externalId })
    if (isStored) await this.#endReplaced(lease, target, replacedId)
  }

  /** Deletes the subscription that another one has replaced. What cannot be deleted is tried again with the next request. */
  async #endReplaced(lease: Lease<DueSubscription>, target: SubscriptionTarget, replacedId: Json): Promise<void> {
    if (replacedId === null) return
    const error =
      target.plan.actions.delete === undefined
        ? undefined
        : await endSubscription(this.#deps, { ...target, id: replacedId })
    if (error?.kind !== 'transient') await forgetReplaced(this.#deps.database.pool, lease, replacedId)
  }

  /** Of an event that the definition no longer orders, or of an account for which it does not. */
  async #remove(
    lease: Lease<DueSubscription>,
    target: SubscriptionTarget,
    term: 'forever' | 'for_now',
  ): Promise<DueResult | undefined> {
    const { database, random } = this.#deps
    if (lease.externalId !== null) await markDeleting(database.pool, lease)
    for (const id of [lease.replacedId, lease.externalId]) {
      if (id === null || target.plan.actions.delete === undefined) continue
      const error = await endSubscription(this.#deps, { ...target, id })
      if (error?.kind === 'transient' && lease.attempts < ATTEMPTS_MAX)
        return this.#failed(lease, target.resolved, error)
    }
    if (term === 'for_now') return unsubscribed(CONDITION_DELAY_MS * (1 - CONDITION_JITTER * random()))
    return await this.#delete(lease)
  }

  async #delete(lease: Lease<DueSubscription>): Promise<undefined> {
    await deleteSubscription(this.#deps.database.pool, lease)
    return undefined
  }

  /** A failure; when the subscription counts as failed from now on, with the event. */
  #failed(lease: DueSubscription, resolved: ResolvedAccount | undefined, error: SubscriptionError): DueResult {
    const isFailed = error.kind === 'rejected' || (error.kind === 'transient' && lease.attempts >= ATTEMPTS_MAX)
    const failure: FailedRequest = {
      delayMs: this.#retryDelayMs(lease, error, isFailed),
      isCounted: true,
      isFailed,
      isGone: error.kind === 'gone',
      error: redactedError(error, resolved),
    }
    const settlement = failedRequest(lease, failure)
    if (!isFailed || lease.failedAt !== null) return settlement
    return { ...settlement, record: (tx) => appendError(tx, lease, failure) }
  }

  #retryDelayMs(lease: DueSubscription, error: SubscriptionError, isFailed: boolean): number {
    const { random, clock } = this.#deps
    if (error.kind === 'gone') return 0
    const { attempts, expiresAt } = lease
    const delayMs = isFailed
      ? backoffMs(FAILED_BACKOFF, Math.max(1, attempts - ATTEMPTS_MAX), random)
      : backoffMs(RETRY_BACKOFF, attempts, random)
    // Several attempts before the end, whatever the life.
    const leftMs = expiresAt === null ? Infinity : (expiresAt.getTime() - clock.now().getTime()) / 4
    const soonMs = leftMs > RETRY_BACKOFF.baseMs ? Math.min(delayMs, leftMs) : delayMs
    return Math.max(soonMs, (error.kind === 'transient' ? error.retryAfterMs : undefined) ?? 0)
  }
}

function targetOf(
  lease: Lease<DueSubscription>,
  resolved: ResolvedAccount,
  plan: SubscriptionPlan,
  signal: AbortSignal,
): SubscriptionTarget {
  return { resolved, plan, event: lease.event, id: lease.externalId, attemptId: lease.leaseId, signal }
}

function accountOf({ environmentId, integratedAccountId: id }: DueSubscription) {
  return { environmentId, id }
}

async function appendError(tx: Tx, lease: DueSubscription, { error }: FailedRequest): Promise<void> {
  const details = { webhook_subscription: { event: lease.event, last_error: error } }
  await appendAccountEvent(tx, accountOf(lease), 'webhook_error', details)
}

function redactedError({ error }: SubscriptionError, resolved: ResolvedAccount | undefined): string {
  if (resolved === undefined) return error.slice(0, ERROR_LENGTH_MAX)
  return createRedaction(resolved.plan, resolved.access).redactCut(error, ERROR_LENGTH_MAX)
}

function isSameId(one: Json, other: Json): boolean {
  return canonicalJson(one) === canonicalJson(other)
}
