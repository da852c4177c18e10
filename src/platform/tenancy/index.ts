/**
 * Teams, environments and API tokens: administration, the first start, authentication, and idempotency keys.
 *
 * Lives here: who may administer what, and in which environment a call takes place. Never here: what is inside an
 * environment, or how a request carries its token.
 */

export {
  type ApiTokenInput,
  type ApiTokenWithSecret,
  createApiToken,
  deleteApiToken,
  getApiToken,
  issueBrowserToken,
  revokeApiToken,
  updateApiToken,
} from './api-tokens.ts'
export { type Authenticator, createAuthenticator, type PresentedToken, type Principal } from './authenticate.ts'
export { bootstrap, type FirstStart } from './bootstrap.ts'
export { findBranding } from './branding.ts'
export {
  assertAccessTokensAllowed,
  type CascadeDelete,
  continueEnvironmentDeletion,
  createEnvironment,
  deleteEnvironment,
  getEnvironment,
  updateEnvironment,
} from './environments.ts'
export {
  assertScope,
  findMissingScope,
  findUnknownScopes,
  findUnlimitableScopes,
  type ScopeChoice,
  TOKEN_PRESETS,
  type TokenLimits,
} from './scopes.ts'
export { type ApiTokenRecord, deleteExpiredBrowserTokens, listApiTokens } from './sql/api-tokens.ts'
export { type EnvironmentRecord, type EnvironmentScope, findEnvironment, listEnvironments } from './sql/environments.ts'
export {
  deleteOldIdempotencyKeys,
  findIdempotencyKey,
  insertIdempotencyKey,
  SEALED_ANSWERS,
  storeIdempotentResponse,
} from './sql/idempotency-keys.ts'
export { findOperatorTeam, setTeamVerified, type TeamChange, type TeamRecord } from './sql/teams.ts'
export { continueTeamDeletion, createTeam, deleteTeam, getTeam, listTeams, updateTeam } from './teams.ts'
export { checkedRandomText, isCheckedRandomText } from './token-format.ts'
