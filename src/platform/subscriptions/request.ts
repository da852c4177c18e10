import type { SubscriptionPlan, SubscriptionVerb } from '../../engine/definitions/index.ts'
import { environmentRoots } from '../../engine/expressions/index.ts'
import { isTruthy } from '../../engine/formats/index.ts'
import {
  type AccountReporter,
  type ActionOutcome,
  type ActionStepResult,
  type ApiProxy,
  type ExpressionEvaluator,
  withCause,
} from '../../engine/proxy/index.ts'
import { catchFailure, Failure, isTransient } from '../../foundation/base/index.ts'
import { headerTexts } from '../../foundation/egress/index.ts'
import { isJsonNumber, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { ResolvedAccount } from '../accounts/resolved-account.ts'
import { readExpiry } from './expiry.ts'

/** What a request about a subscription takes. */
export interface SubscriptionDependencies {
  readonly proxy: Pick<ApiProxy, 'runAction'>
  readonly evaluator: ExpressionEvaluator
}

/** Stores context changes of requests, but no status: what a third party thinks of a subscription says nothing about the account. */
export function createSilentReporter(reporter: AccountReporter): AccountReporter {
  return { report: async () => {}, updateContext: reporter.updateContext.bind(reporter) }
}

/** A subscription as the third party describes it. */
export interface SubscriptionAnswer {
  readonly kind: 'ok'
  readonly id: Json
  readonly expiresAt: Date | undefined
  /** Read from the response; `undefined` where it is generated, or absent there. */
  readonly secret: Json | undefined
}

/** A request that did not succeed. Messages are redacted. */
export type SubscriptionError =
  /** Later it may succeed. */
  | { readonly kind: 'transient'; readonly error: string; readonly retryAfterMs: number | undefined }
  /** The third party does not know the subscription. */
  | { readonly kind: 'gone'; readonly error: string }
  | { readonly kind: 'rejected'; readonly error: string }

/** What one request is about. */
export interface SubscriptionTarget {
  readonly resolved: ResolvedAccount
  readonly plan: SubscriptionPlan
  readonly event: string
  /** What the third party calls the subscription; null: there is none yet. */
  readonly id: Json
  /** Another one for each attempt. */
  readonly attemptId: string
  /** Ends the requests of the attempt. */
  readonly signal: AbortSignal
}

/** One request of an action is sent once: the worker repeats the whole action. */
const LIMITS = { attemptsMax: 1, timeoutMs: 20_000 } as const
const GONE: readonly number[] = [404, 410]

/**
 * Runs `create`, `renew` or `find` and reads id, end and secret from the result. Not in a transaction: the third party may
 * call the address of the account before it responds.
 *
 * @returns `find`: `undefined` when there is none
 */
export async function requestSubscription(
  deps: SubscriptionDependencies,
  target: SubscriptionTarget,
  verb: Exclude<SubscriptionVerb, 'delete'>,
  now: () => Date,
): Promise<SubscriptionAnswer | SubscriptionError | undefined> {
  const run = await runSubscriptionAction(deps, target, verb)
  if (run.kind !== 'ok') return run
  const answer = await catchFailure(() => readAnswer(deps, target, verb, run.outcome, now()))
  return answer instanceof Failure ? errorOfFailure(answer) : answer
}

/** Whether the definition orders this subscription for this account. @throws Failure EXPRESSION_FAILED */
export async function isSubscriptionWanted(
  { evaluator }: Pick<SubscriptionDependencies, 'evaluator'>,
  target: SubscriptionTarget,
): Promise<boolean> {
  const { plan, resolved } = target
  if (plan.when === undefined) return true
  const { context, environmentVariables } = resolved.access
  const variables = environmentRoots(plan.when, environmentVariables)
  return isTruthy(await evaluator.evaluate(plan.when, { context, subscription: placeholdersOf(target), ...variables }))
}

/** Deletes a subscription at the third party; one that it does not know is deleted. Not in a transaction. */
export async function endSubscription(
  deps: Pick<SubscriptionDependencies, 'proxy'>,
  target: SubscriptionTarget,
): Promise<SubscriptionError | undefined> {
  const run = await runSubscriptionAction(deps, target, 'delete')
  return run.kind === 'ok' || run.kind === 'gone' ? undefined : run
}

interface SuccessfulRun {
  readonly kind: 'ok'
  readonly outcome: Extract<ActionOutcome, { readonly kind: 'ok' }>
}

async function runSubscriptionAction(
  { proxy }: Pick<SubscriptionDependencies, 'proxy'>,
  target: SubscriptionTarget,
  verb: SubscriptionVerb,
): Promise<SuccessfulRun | SubscriptionError> {
  const { resolved, signal } = target
  const { id } = target
  // What it is called may be an object.
  const causeId = typeof id === 'string' || isJsonNumber(id) ? String(id) : undefined
  const access = { ...withCause(resolved.access, 'subscription', causeId), subscription: placeholdersOf(target) }
  const request = { target: { kind: 'subscription', verb }, limits: LIMITS, signal } as const
  const run = await catchFailure(() => proxy.runAction(resolved.plan, access, request))
  if (run instanceof Failure) return errorOfFailure(run)
  const { outcome, steps } = run
  return outcome.kind === 'ok' ? { kind: 'ok', outcome } : errorOfOutcome(outcome, verb, steps.at(-1))
}

/** `{{subscription.<name>}}` in the requests of a subscription. */
function placeholdersOf({ plan, event, id, attemptId }: SubscriptionTarget): JsonObject {
  return { id, event, events: event === '' ? [...plan.events] : [event], attempt_id: attemptId }
}

async function readAnswer(
  { evaluator }: Pick<SubscriptionDependencies, 'evaluator'>,
  target: SubscriptionTarget,
  verb: Exclude<SubscriptionVerb, 'delete'>,
  { result, headers }: SuccessfulRun['outcome'],
  now: Date,
): Promise<SubscriptionAnswer | undefined> {
  const { plan, resolved, id: known } = target
  const { context, environmentVariables } = resolved.access
  const input = { result, headers: headerTexts(headers), context, subscription: placeholdersOf(target) }
  const read = async (expression: string | undefined) =>
    expression === undefined
      ? undefined
      : await evaluator.evaluate(expression, { ...input, ...environmentRoots(expression, environmentVariables) })
  const id = verb === 'renew' ? known : ((await read(plan.id)) ?? null)
  if (id === null && verb === 'find') return undefined
  if (id === null)
    throw new Failure('EXPRESSION_FAILED', 'webhook.subscription.id: the response does not name the subscription')
  const expiresAt = readExpiry(await read(plan.expires), now)
  const secret = plan.secret?.kind === 'response' && verb !== 'renew' ? await read(plan.secret.expression) : undefined
  return { kind: 'ok', id, expiresAt, secret: secret ?? undefined }
}

function errorOfOutcome(
  outcome: Exclude<ActionOutcome, { readonly kind: 'ok' }>,
  verb: SubscriptionVerb,
  last: ActionStepResult | undefined,
): SubscriptionError {
  const error = last?.error ?? `${verb} failed`
  switch (outcome.kind) {
    case 'rate_limited':
      return { kind: 'transient', error, retryAfterMs: outcome.retryAfterSeconds * 1_000 }
    case 'failed':
      return errorOfFailure(outcome.failure, error)
    case 'upstream_error':
      if (outcome.action === 'retry') return { kind: 'transient', error, retryAfterMs: undefined }
      return { kind: GONE.includes(outcome.status) && verb !== 'create' ? 'gone' : 'rejected', error }
  }
}

/** A failure as the error of a request. @param error redacted; absent: the message of the failure */
export function errorOfFailure(failure: Failure, error: string = failure.publicMessage): SubscriptionError {
  if (!isTransient(failure)) return { kind: 'rejected', error }
  const { retryAfterSeconds } = failure
  return {
    kind: 'transient',
    error,
    retryAfterMs: retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1_000,
  }
}
