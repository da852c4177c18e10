/**
 * Connected accounts: how they come about, what status they are in and why, their context, and what a call through one
 * needs.
 *
 * Lives here: the table of statuses, credentials as they are collected, context merges. A connecting account is proved
 * through the engine. Never here: any other call, or what runs for an account.
 */

export {
  type AccountDeps,
  type AccountTriggers,
  type DeleteAccountDeps,
  deleteAccountsByInstallation,
  deleteIntegratedAccount,
  getIntegratedAccount,
  type IntegratedAccount,
  type IntegratedAccountChange,
  listIntegratedAccountHistory,
  listIntegratedAccounts,
  updateIntegratedAccount,
} from './account.ts'
export { AccountActivator, runAccountActions } from './account-activator.ts'
export { findReservedKeys } from './context.ts'
export { type CreateAccountDeps, createIntegratedAccount, type IntegratedAccountInput } from './create-account.ts'
export { createCredentialRefresher, type RefreshCredentialsDeps, refreshCredentials } from './credential-refresher.ts'
export { type CredentialsChange, type UpdateCredentialsDeps, updateCredentials } from './credentials.ts'
export {
  createAccountReader,
  type DryRunAccount,
  getSyncableAccount,
  type LoadAccountDeps,
  loadAccountForCall,
  loadAccountForDryRun,
  type ResolvedAccount,
  redactAccountSecrets,
  type SyncableAccount,
} from './load-account.ts'
export { createTokenProvider, type TokenProvider, type TokenProviderDeps } from './refresh-token.ts'
export {
  type AccountFilter,
  type AccountHistoryRecord,
  type AccountStatus,
  type AuthenticationMethod,
  type ForbiddenError,
  findIntegratedAccount,
  type Region,
} from './sql/integrated-account.ts'
export { TokenRefresher } from './token-refresher.ts'
