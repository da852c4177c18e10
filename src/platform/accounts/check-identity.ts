import type { ActionStepResult, ApiProxy } from '../../engine/proxy/index.ts'
import { catchFailure } from '../../foundation/base/index.ts'
import { getAtPath, isJsonNumber, type Json } from '../../foundation/json/index.ts'
import type { Lease } from '../../foundation/queue/index.ts'
import {
  type ActivationTarget,
  outcomeOfAction,
  outcomeOfFailure,
  type PhaseOutcome,
  type PhaseResult,
  STEP_LIMITS,
} from './activation-outcome.ts'
import type { AccountDependencies } from './dependencies.ts'
import { connectPlanOf, type ResolvedAccount } from './resolved-account.ts'
import { type Activation, storeExternalId } from './sql/activation.ts'

type IdentityDependencies = Pick<AccountDependencies, 'database'> & { readonly proxy: Pick<ApiProxy, 'runAction'> }

/** What the third party says about the owner of the credentials. */
interface IdentityAnswer {
  /** Absent when the request failed, as `outcome` says. */
  readonly value?: Json | undefined
  readonly outcome: PhaseOutcome
  readonly steps: readonly ActionStepResult[]
}

/**
 * Compares the id that the third party gives the account with the one from when it was connected first, and stores it when
 * there is none. Without `identity` in the definition there is nothing to compare.
 *
 * @returns the failed or inconclusive phase; `undefined` when the account is the same
 */
export async function checkIdentity(
  deps: IdentityDependencies,
  resolved: ResolvedAccount,
  lease: Lease<Activation>,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const identity = connectPlanOf(resolved)?.identity
  if (identity?.kind !== 'response') return undefined
  const { value, outcome, steps } = await askIdentity(deps, resolved, signal)
  if (outcome.kind !== 'passed') return { phase: 'validation', outcome, steps }
  return await compareIdentity(deps, resolved, lease, getAtPath(value ?? null, identity.path), steps)
}

/**
 * As `checkIdentity`, of an identity that is a key of the context: once `post_install` or the customer has filled it, and a request
 * of the validation has shown that the credentials are for it.
 */
export async function checkIdentityInContext(
  deps: IdentityDependencies,
  resolved: ResolvedAccount,
  lease: Lease<Activation>,
): Promise<PhaseResult | undefined> {
  const identity = connectPlanOf(resolved)?.identity
  if (identity?.kind !== 'context') return undefined
  return await compareIdentity(deps, resolved, lease, resolved.access.context[identity.key], [])
}

async function compareIdentity(
  { database }: Pick<IdentityDependencies, 'database'>,
  resolved: ResolvedAccount,
  lease: Lease<Activation>,
  found: Json | undefined,
  steps: readonly ActionStepResult[],
): Promise<PhaseResult | undefined> {
  const externalId = typeof found === 'string' || isJsonNumber(found) ? String(found) : ''
  const error = findIdentityError(resolved, externalId)
  if (error !== undefined) return { phase: 'validation', outcome: error, steps }
  if (resolved.account.externalId === null) await storeExternalId(database.pool, lease, externalId)
  return undefined
}

/** The response that contains the id: to a request of its own, or that of the token endpoint. */
async function askIdentity(
  { proxy }: IdentityDependencies,
  resolved: ResolvedAccount,
  signal: AbortSignal,
): Promise<IdentityAnswer> {
  const connect = connectPlanOf(resolved)
  if (connect?.identity?.kind !== 'response' || connect.identity.request === undefined)
    return { value: resolved.token?.fields, outcome: { kind: 'passed' }, steps: [] }
  const target: ActivationTarget = { kind: 'verification', credential: connect.key, of: 'identity' }
  const { plan, access } = resolved
  const run = await catchFailure(() => proxy.runAction(plan, access, { target, signal, limits: STEP_LIMITS }))
  if (run instanceof Error) return { outcome: outcomeOfFailure(run, 'validation'), steps: [] }
  const { outcome, steps } = run
  const value = outcome.kind === 'ok' ? outcome.result : undefined
  return { value, outcome: outcomeOfAction(outcome, { phase: 'validation', target }, steps.at(-1)), steps }
}

function findIdentityError({ account }: ResolvedAccount, externalId: string): PhaseOutcome | undefined {
  if (externalId === '') {
    const error = 'validation failed at identity: there is no id of the account where the definition expects it'
    return { kind: 'failed', code: 'validation_error', error }
  }
  if (account.externalId === null || account.externalId === externalId) return undefined
  const error =
    'validation failed at identity: the credentials are of another account of the third party than the one that was connected: connect that one, or confirm the change'
  return { kind: 'failed', code: 'identity_changed', error }
}
