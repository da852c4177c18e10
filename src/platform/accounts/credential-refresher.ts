import type { AccountAccess, AccountReporter, AccountSignal, CredentialRefresher } from '../../engine/proxy/index.ts'
import { assertNever, DAY_MS, Failure, HOUR_MS, MINUTE_MS } from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import { canonicalJson, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { assertWrite, type IntegratedAccount, withIntegration } from './account.ts'
import { appendAccountEvent, appendEventOf } from './account-events.ts'
import { assertNoReservedKeys, contextPatchFrom } from './context.ts'
import type { ContextWriter } from './context-rules.ts'
import type { AccountDependencies } from './dependencies.ts'
import { getResolvedAccount } from './load-account.ts'
import { markUnauthorized, markWorking, storeForbiddenError } from './sql/account-state.ts'
import { lockActivation } from './sql/activation.ts'
import { type AccountRef, findIntegratedAccount, lockAccountCredentials } from './sql/integrated-account.ts'
import { changeAccountStatus } from './status.ts'
import { updateAccount, withWholeContext } from './stored-context.ts'

/**
 * After a success contradicted a 401: for so long a 401 counts only when no call has succeeded for the time below. One 401 of
 * an account whose calls have not contradicted each other counts at once, so that a revoked token is noticed with the first call.
 */
const CONTRADICTION_MS = DAY_MS
/** While nothing succeeds for so long, 401s count again. */
const UNAUTHORIZED_MS = HOUR_MS
/** After a success that contradicted a 401 the next one is written not before this: the writes of an account are bounded. */
const CONTRADICTION_DEDUP_MS = MINUTE_MS

/** An error like the stored one is not written again within this time. */
const FORBIDDEN_DEDUP_WINDOW_MS = 60_000

type RefresherDependencies = Pick<
  AccountDependencies,
  'database' | 'secrets' | 'definitions' | 'contextValues' | 'tokens' | 'clock' | 'logger'
> & {
  /** Called when what a call reported could not be stored. */
  readonly onReportError: (error: unknown) => void
}

/** Refreshes the credentials of stored accounts when an upstream rejects them, and stores what calls report. */
export function createCredentialRefresher(deps: RefresherDependencies): CredentialRefresher & AccountReporter {
  return {
    refresh: (access, signal) => raceCancellation(refreshUnlessNewer(deps, access), signal),
    async report(access, signal) {
      const account = storedAccountOf(access)
      try {
        if (account !== undefined) await storeSignal(deps, access, account, signal)
      } catch (error) {
        deps.onReportError(error)
      }
    },
    async updateContext(access, context, isOfDefinition, leaseId) {
      const account = storedAccountOf(access)
      if (account === undefined) throw new Error('an account without an environment has no stored context')
      assertNoReservedKeys(context, Object.keys(access.credentials))
      const writer = isOfDefinition ? 'definition' : 'action'
      await deps.database.transaction(async (tx) => {
        // What an activation has found out with credentials that were replaced since is not said of the new ones.
        if (leaseId === undefined || (await lockActivation(tx, { ...account, leaseId })))
          await storeContext(deps, tx, account, context, writer)
      })
    },
  }
}

async function refreshUnlessNewer(
  deps: RefresherDependencies,
  access: AccountAccess,
): Promise<AccountAccess | undefined> {
  const account = storedAccountOf(access)
  if (account === undefined) return undefined
  const current = await getResolvedAccount(deps, deps.database.pool, account.environmentId, account.id)
  // Another call refreshed the token, or the account has new credentials.
  if (current.access.credentialVersion !== access.credentialVersion) return current.access
  try {
    return (await deps.tokens.refresh(current, false))?.access
  } catch (error) {
    if (error instanceof Failure && error.reason === 'CREDENTIALS_INVALID') return undefined
    throw error
  }
}

/** A change that leaves everything as it is writes nothing: a step of a sync may repeat it for every page. */
async function storeContext(
  deps: Pick<AccountDependencies, 'contextValues' | 'definitions'>,
  tx: Tx,
  account: AccountRef,
  context: JsonObject,
  writer: ContextWriter,
): Promise<void> {
  const found = await findIntegratedAccount(tx, account.environmentId, account.id)
  const isStored = (key: string) => found?.objectStoreContextFields.includes(key) === true
  const stored =
    found !== undefined && Object.keys(context).some(isStored) ? await withWholeContext(deps, tx, found) : found
  const { keys, removed } = contextPatchFrom(context)
  const isUnchanged = ([key, value]: [string, Json]) =>
    canonicalJson(stored?.context[key] ?? null) === canonicalJson(value)
  if (stored !== undefined && Object.entries(context).every(isUnchanged)) return
  if (found !== undefined) await assertWrite(deps, tx, found, context, writer)
  const patch = { context: { keys, removed } }
  const updated = await updateAccount(deps, tx, account, patch)
  if (updated !== undefined) await appendEventOf(tx, updated, 'updated')
}

async function storeSignal(
  deps: RefresherDependencies,
  access: AccountAccess,
  account: AccountRef,
  signal: AccountSignal,
): Promise<void> {
  await deps.database.transaction(async (tx) => {
    switch (signal.kind) {
      case 'unauthorized':
        if ((await hasCurrentCredentials(deps, tx, account, access)) && (await countsAsUnauthorized(deps, tx, account)))
          await changeAccountStatus(tx, account, 'unauthorized', signal.message, deps.logger)
        return
      case 'forbidden': {
        const { resource, method } = signal
        const error = { resource, method, occurred_at: deps.clock.now().toISOString() }
        if (await storeForbiddenError(tx, account, error, FORBIDDEN_DEDUP_WINDOW_MS))
          await appendAccountEvent(tx, account, 'forbidden_error')
        return
      }
      case 'worked':
        if (await markWorking(tx, account, { unauthorizedSince: access.unauthorizedSince, now: deps.clock.now() }))
          await changeAccountStatus(tx, account, 'call_succeeded', '', deps.logger)
        return
      default:
        assertNever(signal)
    }
  })
}

/**
 * Whether the account still has the credentials of a call: a 401 for those that have been replaced since says nothing about
 * the new ones. Locks the account, whose credentials then stay until the transaction ends.
 */
async function hasCurrentCredentials(
  deps: RefresherDependencies,
  tx: Tx,
  account: AccountRef,
  { credentials }: AccountAccess,
): Promise<boolean> {
  await lockAccountCredentials(tx, account)
  const current = await getResolvedAccount(deps, tx, account.environmentId, account.id)
  return canonicalJson(current.access.credentials) === canonicalJson(credentials)
}

/**
 * Damping: a third party that answers 401 on one endpoint and 200 on others, for want of a scope or plan, would otherwise change
 * the status with each call.
 */
async function countsAsUnauthorized(
  { clock }: Pick<RefresherDependencies, 'clock'>,
  tx: Db,
  account: AccountRef,
): Promise<boolean> {
  return await markUnauthorized(tx, account, {
    now: clock.now(),
    contradictionMs: CONTRADICTION_MS,
    unauthorizedMs: UNAUTHORIZED_MS,
    dedupMs: CONTRADICTION_DEDUP_MS,
  })
}

function storedAccountOf({ environmentId, id }: AccountAccess): AccountRef | undefined {
  return environmentId === undefined ? undefined : { environmentId, id }
}

/** Rejects when the signal aborts first. The refresh itself continues, because other calls may share it. */
async function raceCancellation<Result>(refresh: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  if (signal === undefined) return await refresh
  const { promise, reject } = Promise.withResolvers<never>()
  const cancel = () => reject(new Failure('CANCELLED', 'the call was cancelled while credentials were renewed'))
  if (signal.aborted) cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    return await Promise.race([refresh, promise])
  } finally {
    signal.removeEventListener('abort', cancel)
    promise.catch(() => {})
  }
}

/**
 * Requests a new token now, also when the present one is fresh, and returns the account as it is afterwards. Only a rejected
 * grant changes its status. Not in a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND; METHOD_NOT_DEFINED when the account's credentials hold no token that could be refreshed;
 * CREDENTIALS_INVALID when the grant is rejected, TOKEN_REQUEST_FAILED
 */
export async function refreshCredentials(
  deps: Pick<AccountDependencies, 'database' | 'secrets' | 'definitions' | 'contextValues' | 'integrations' | 'tokens'>,
  environmentId: string,
  id: string,
): Promise<IntegratedAccount> {
  const tx = deps.database.pool
  const resolved = await getResolvedAccount(deps, tx, environmentId, id)
  if ((await deps.tokens.refresh(resolved, true)) === undefined) throw nothingToRefresh(id)
  return await withIntegration(deps.integrations, tx, (await getResolvedAccount(deps, tx, environmentId, id)).account)
}

function nothingToRefresh(id: string): Failure {
  const text = 'the account has no token that can be refreshed: its fields are all there is, or it has no refresh token'
  return new Failure('METHOD_NOT_DEFINED', text, { resource: { type: 'integrated_account', id } })
}
