import { assertNever, type Clock, Failure } from '../base/index.ts'
import type { Database } from '../database/index.ts'
import type { IntegrationCache } from '../integrations/index.ts'
import type { AccountAccess, AccountSignal, CredentialRefresher } from '../proxy/index.ts'
import { type IntegratedAccount, withIntegration } from './account.ts'
import { assertNoReservedKeys, patchFrom } from './context.ts'
import { getResolvedAccount, type ResolveAccountDeps } from './load-account.ts'
import type { TokenProvider } from './refresh-token.ts'
import { storeForbiddenError, updateIntegratedAccountRow } from './sql/integrated-account.ts'
import { changeAccountStatus } from './status.ts'

/** What keeping accounts needs. */
export interface CredentialRefresherDeps extends ResolveAccountDeps {
  readonly database: Pick<Database, 'pool'>
  readonly tokens: Pick<TokenProvider, 'refresh'>
  readonly clock: Clock
  /** Told of a note that could not be taken. */
  readonly onReportError: (error: unknown) => void
}

/** The same refusal again within this time is not written again. */
const FORBIDDEN_DEDUP_WINDOW_MS = 60_000

type StoredAccountRef = { readonly environmentId: string; readonly id: string }

/** The keeper that the engine asks when an upstream refuses an account, and tells what came of calls. */
export function createCredentialRefresher(deps: CredentialRefresherDeps): CredentialRefresher {
  return {
    refresh: (access, signal) => raceCancellation(refreshUnlessNewer(deps, access), signal),
    async report(access, sign) {
      const account = accountOf(access)
      try {
        if (account !== undefined) await reportSignal(deps, access, account, sign)
      } catch (error) {
        deps.onReportError(error)
      }
    },
    async updateContext(access, patch) {
      const account = accountOf(access)
      if (account === undefined) throw new Error('the context of an account without an environment is nowhere stored')
      assertNoReservedKeys(patch, Object.keys(access.credentials))
      const { keys, removed } = patchFrom(patch)
      const change = { tenantId: undefined, contextKeys: keys, removedContextKeys: removed, version: undefined }
      await updateIntegratedAccountRow(deps.database.pool, account.environmentId, account.id, change)
    },
  }
}

async function refreshUnlessNewer(
  deps: CredentialRefresherDeps,
  access: AccountAccess,
): Promise<AccountAccess | undefined> {
  const account = accountOf(access)
  if (account === undefined) return undefined
  const ready = await getResolvedAccount(deps, deps.database.pool, account.environmentId, account.id)
  // Somebody else was faster, or the account was given new credentials.
  if (ready.access.credentialVersion !== access.credentialVersion) return ready.access
  try {
    return (await deps.tokens.refresh(ready, false))?.access
  } catch (error) {
    if (error instanceof Failure && error.reason === 'CREDENTIALS_INVALID') return undefined
    throw error
  }
}

async function reportSignal(
  deps: CredentialRefresherDeps,
  access: AccountAccess,
  account: StoredAccountRef,
  sign: AccountSignal,
): Promise<void> {
  const tx = deps.database.pool
  switch (sign.kind) {
    case 'unauthorized': {
      const now = await getResolvedAccount(deps, tx, account.environmentId, account.id)
      // A verdict about credentials that have been replaced since says nothing about those that are there now.
      if (now.access.credentialVersion === access.credentialVersion)
        await changeAccountStatus(tx, account, 'unauthorized', sign.message)
      return
    }
    case 'forbidden': {
      const { resource, method } = sign
      const occurred_at = deps.clock.now().toISOString()
      await storeForbiddenError(tx, account, { resource, method, occurred_at }, FORBIDDEN_DEDUP_WINDOW_MS)
      return
    }
    case 'worked':
      await changeAccountStatus(tx, account, 'call_succeeded')
      return
    default:
      assertNever(sign)
  }
}

function accountOf({ environmentId, id }: AccountAccess): StoredAccountRef | undefined {
  return environmentId === undefined ? undefined : { environmentId, id }
}

/** What comes of the work, unless the caller goes first. The work goes on: others may be waiting for it. */
async function raceCancellation<Result>(work: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  if (signal === undefined) return await work
  const { promise, reject } = Promise.withResolvers<never>()
  const cancel = () => reject(new Failure('CANCELLED', 'the call was cancelled while credentials were renewed'))
  if (signal.aborted) cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', cancel)
    promise.catch(() => {})
  }
}

/** What refreshing on request needs. */
export interface RefreshCredentialsDeps extends ResolveAccountDeps {
  readonly database: Pick<Database, 'pool'>
  readonly tokens: Pick<TokenProvider, 'refresh'>
  readonly integrations: IntegrationCache
}

/**
 * Asks for a new token now, however good the present one is. The status stays, but for a refusal; the account is answered
 * as it is afterwards. Not in a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND; METHOD_NOT_DEFINED when the account's credentials hold no token that could be refreshed;
 * CREDENTIALS_INVALID when the grant is refused, TOKEN_REQUEST_FAILED
 */
export async function refreshCredentials(
  deps: RefreshCredentialsDeps,
  environmentId: string,
  id: string,
): Promise<IntegratedAccount> {
  const tx = deps.database.pool
  const ready = await getResolvedAccount(deps, tx, environmentId, id)
  if ((await deps.tokens.refresh(ready, true)) === undefined) throw nothingToRefresh(id)
  return await withIntegration(deps.integrations, tx, (await getResolvedAccount(deps, tx, environmentId, id)).account)
}

function nothingToRefresh(id: string): Failure {
  const text = 'the account has no token that can be refreshed: its fields are all there is, or it has no refresh token'
  return new Failure('METHOD_NOT_DEFINED', text, { resource: { type: 'integrated_account', id } })
}
