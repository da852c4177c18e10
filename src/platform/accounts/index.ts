/**
 * Connected accounts: how they are created and activated, their status and its history, their credentials, tokens and context,
 * and loading one for a call.
 *
 * Lives here: everything about credentials, from the fields of a form to the refresh of a token. Never here: calls other than
 * those that obtain or check credentials, and what runs for an account.
 */

export {
  type AccountFilter,
  changeIntegratedAccount,
  createAccountCascade,
  deleteIntegratedAccount,
  getIntegratedAccount,
  type IntegratedAccount,
  type IntegratedAccountChange,
  listIntegratedAccountHistory,
  listIntegratedAccounts,
} from './account.ts'
export { runAccountActions } from './account-activator.ts'
export { type RemovalFailure, SEALED_REMOVALS } from './account-remover.ts'
export { createAccountWork } from './account-work.ts'
export { findReservedKeys } from './context.ts'
export { createIntegratedAccount, type IntegratedAccountInput } from './create-account.ts'
export { createCredentialRefresher, refreshCredentials } from './credential-refresher.ts'
export type { AccountDependencies, AccountReader } from './dependencies.ts'
export { issueAccessToken } from './issue-access-token.ts'
export {
  accountRedactor,
  createAccountReader,
  type DryRunAccount,
  findEndedAccounts,
  getResolvedAccount,
  getSyncableAccount,
  loadAccountForCall,
  loadAccountForDryRun,
  type SyncableAccount,
} from './load-account.ts'
export { reauthorizationTask } from './reauthorize-accounts.ts'
export { createTokenProvider } from './refresh-token.ts'
export { type CredentialsChange, updateCredentials } from './replace-credentials.ts'
export type { ResolvedAccount } from './resolved-account.ts'
export type { AccountHistoryRecord } from './sql/account-history.ts'
export { countAccounts, findAccountOwner } from './sql/account-state.ts'
export { type AccountOfValue, findAccountsByContext } from './sql/context-lookup.ts'
export {
  type AccountRef,
  type AccountStatus,
  type ForbiddenError,
  findIntegratedAccount,
  isKeptSql,
} from './sql/integrated-account.ts'
export { type WithWholeContext, withWholeContext, withWholeContexts } from './stored-context.ts'
export { createTokenHosts, createTokenHttp, type TokenHosts } from './token-http.ts'
export { webhookPath } from './webhook-address.ts'
export { updateContextFromWebhook } from './webhook-context.ts'
