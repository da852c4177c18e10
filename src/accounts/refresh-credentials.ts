import { Failure } from '../base/index.ts'
import type { IntegrationCache } from '../integrations/index.ts'
import type { Database } from '../storage/index.ts'
import { type IntegratedAccount, withIntegration } from './embedded.ts'
import { getResolvedAccount, type ResolveAccountDeps } from './ready-account.ts'
import type { TokenProvider } from './tokens/tokens.ts'

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
