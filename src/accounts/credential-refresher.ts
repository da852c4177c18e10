import { assertNever, Failure } from '../base/index.ts'
import type { AccountAccess, AccountReporter, AccountSignal, CredentialRefresher } from '../proxy/index.ts'
import { type IntegratedAccount, withIntegration } from './account.ts'
import { assertNoReservedKeys, contextPatchFrom } from './context.ts'
import type { AccountDependencies } from './dependencies.ts'
import { getResolvedAccount } from './load-account.ts'
import { type AccountRef, storeForbiddenError, updateIntegratedAccountRow } from './sql/integrated-account.ts'
import { changeAccountStatus } from './status.ts'

/** An error like the stored one is not written again within this time. */
const FORBIDDEN_DEDUP_WINDOW_MS = 60_000

type RefresherDependencies = Pick<AccountDependencies, 'database' | 'secrets' | 'definitions' | 'tokens' | 'clock'> & {
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
    async updateContext(access, context) {
      const account = storedAccountOf(access)
      if (account === undefined) throw new Error('an account without an environment has no stored context')
      assertNoReservedKeys(context, Object.keys(access.credentials))
      await updateIntegratedAccountRow(deps.database.pool, account.environmentId, account.id, {
        context: contextPatchFrom(context),
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

async function storeSignal(
  deps: RefresherDependencies,
  access: AccountAccess,
  account: AccountRef,
  signal: AccountSignal,
): Promise<void> {
  const tx = deps.database.pool
  switch (signal.kind) {
    case 'unauthorized': {
      const current = await getResolvedAccount(deps, tx, account.environmentId, account.id)
      // A 401 for credentials that have been replaced since says nothing about the new ones.
      if (current.access.credentialVersion === access.credentialVersion)
        await changeAccountStatus(tx, account, 'unauthorized', signal.message)
      return
    }
    case 'forbidden': {
      const { resource, method } = signal
      const occurred_at = deps.clock.now().toISOString()
      await storeForbiddenError(tx, account, { resource, method, occurred_at }, FORBIDDEN_DEDUP_WINDOW_MS)
      return
    }
    case 'worked':
      await changeAccountStatus(tx, account, 'call_succeeded')
      return
    default:
      assertNever(signal)
  }
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
  deps: Pick<AccountDependencies, 'database' | 'secrets' | 'definitions' | 'integrations' | 'tokens'>,
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
