import { assertNever, type Clock, Failure, type JsonObject } from '../base/index.ts'
import type { CallOutcome, Proxy as Engine } from '../proxy/index.ts'
import {
  type AccountRef,
  type AccountWithVersions,
  type Database,
  findIntegratedAccount,
  storeActionResult,
} from '../storage/index.ts'
import { changeAccountStatus } from './change-status.ts'
import { methodOf } from './credentials.ts'
import { type AccessDeps, withAccess } from './ready-account.ts'

/** What proving an account needs. */
export interface VerifyDeps extends AccessDeps {
  readonly database: Database
  readonly proxy: Pick<Engine, 'call'>
  readonly clock: Clock
}

/** What a proof came to. */
export type Verification =
  /** The account works, or is not connecting any more. */
  | { readonly kind: 'passed' }
  /** The third party said no: the credentials are wrong. */
  | { readonly kind: 'refused'; readonly error: string; readonly status: number | undefined }
  /** Nothing is known: it did not answer, or asked to wait. */
  | { readonly kind: 'unknown'; readonly error: string; readonly afterMs: number | undefined }

/** Failures that are nobody's verdict about the credentials. */
const PASSING: ReadonlySet<string> = new Set([
  ...['UPSTREAM_UNREACHABLE', 'DEADLINE_EXCEEDED', 'UPSTREAM_INVALID_RESPONSE', 'DATABASE_UNAVAILABLE', 'CANCELLED'],
])

/**
 * Proves a connecting account by the verification request of its credentials and makes it `active` or `validation_error`,
 * with the result in `last_action_result.validation`. A definition without one has nothing to prove.
 *
 * Safe to run twice at once: of two verdicts one changes the status. The call is made outside any transaction.
 *
 * @param isLastTry whether `unknown` is to end as `validation_error`
 */
export async function verifyAccount(deps: VerifyDeps, ref: AccountRef, isLastTry: boolean): Promise<Verification> {
  const { database, clock } = deps
  const account = await findIntegratedAccount(database.direct, ref.environmentId, ref.id)
  if (account?.status !== 'connecting') return { kind: 'passed' }
  const startedAt = clock.now()
  const { verification, isAsked } = await prove(deps, account)
  if (verification.kind === 'unknown' && !isLastTry) return verification
  await database.transaction(async (tx) => {
    const cause = verification.kind === 'passed' ? 'steps_passed' : 'validation_failed'
    const change = await changeAccountStatus(tx, ref, cause, verification.kind === 'passed' ? '' : verification.error)
    if (change.kind === 'changed' && isAsked)
      await storeActionResult(tx, ref, { validation: [stepResult(verification, startedAt, clock.now())] })
  })
  return verification
}

async function prove(
  deps: VerifyDeps,
  account: AccountWithVersions,
): Promise<{ readonly verification: Verification; readonly isAsked: boolean }> {
  try {
    const { plan, access } = await withAccess(deps, deps.database.direct, account)
    const connect = plan.credentials.find(
      (each) => each.verification !== undefined && methodOf(each) === account.authenticationMethod,
    )
    if (connect === undefined) return { verification: { kind: 'passed' }, isAsked: false }
    const target = { kind: 'verification', format: connect.format } as const
    return { verification: verdictOf(await deps.proxy.call(plan, access, { target })), isAsked: true }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const kind = PASSING.has(error.reason) ? 'unknown' : 'refused'
    const text = `the verification request failed: ${error.publicMessage}`
    return { verification: { kind, error: text, status: undefined, afterMs: undefined }, isAsked: true }
  }
}

function verdictOf(outcome: CallOutcome): Verification {
  switch (outcome.kind) {
    case 'ok':
      return { kind: 'passed' }
    case 'rate_limited':
      return {
        kind: 'unknown',
        error: 'the third party asks to wait before the verification request',
        afterMs: outcome.retryAfterSeconds * 1_000,
      }
    case 'upstream_error': {
      const error = `the verification request answered ${outcome.status}: ${outcome.message}`
      return outcome.action === 'retry'
        ? { kind: 'unknown', error, afterMs: undefined }
        : { kind: 'refused', error, status: outcome.status }
    }
    default:
      return assertNever(outcome)
  }
}

/** One entry of `last_action_result`; holds nothing that was sent or received but the status. */
function stepResult(verification: Verification, startedAt: Date, endedAt: Date): JsonObject {
  const common = {
    name: 'verification',
    type: 'request',
    started_at: startedAt.toISOString(),
    duration_ms: endedAt.getTime() - startedAt.getTime(),
  }
  if (verification.kind === 'passed') return { ...common, ok: true }
  const status =
    verification.kind === 'refused' && verification.status !== undefined ? { status: verification.status } : {}
  return { ...common, ...status, ok: false, error: verification.error }
}
