/**
 * Connected accounts: how they come about, what status they are in and why, their context, and what a call through one
 * needs.
 *
 * Lives here: the table of statuses, credentials as they are collected, context merges. A connecting account is proved
 * through the engine. Never here: any other call, or what runs for an account.
 */
export { AccountActivator, type AccountActivatorDeps } from './account-connector.ts'
export { createCredentialRefresher } from './account-keeper.ts'
export { createAccountReader } from './account-reader.ts'
export { changeAccountStatus } from './change-status.ts'
export { type CreateAccountDeps, createIntegratedAccount, type IntegratedAccountInput } from './connect.ts'
export { findReservedKeys } from './context.ts'
export type { IntegratedAccount } from './embedded.ts'
export {
  type AccountDeps,
  getIntegratedAccount,
  type IntegratedAccountChange,
  listIntegratedAccountHistory,
  listIntegratedAccounts,
  updateIntegratedAccount,
} from './integrated-account.ts'
export {
  type DryRunAccount,
  getResolvedAccount,
  getSyncableAccount,
  type LoadAccountDeps,
  type LoadPurpose,
  loadAccountForCall,
  loadAccountForDryRun,
  type ResolvedAccount,
  redactAccountSecrets,
  type SyncableAccount,
} from './ready-account.ts'
export { type RefreshCredentialsDeps, refreshCredentials } from './refresh-credentials.ts'
export {
  type AccountTriggers,
  type DeleteAccountDeps,
  deleteAccountsByInstallation,
  deleteIntegratedAccount,
} from './remove.ts'
export { runAccountActions } from './run-account-actions.ts'
export { ACCOUNT_TRANSITIONS, nextStatus, renderTransitions, type StatusCause } from './status.ts'
export { TokenRefresher } from './tokens/token-refresher.ts'
export { createTokenProvider, type TokenProvider, type TokenProviderDeps } from './tokens/tokens.ts'
export { type CredentialsChange, type UpdateCredentialsDeps, updateCredentials } from './update-credentials.ts'
