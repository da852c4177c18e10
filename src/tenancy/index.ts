/**
 * Teams, their environments and API tokens; the first start; and the gate that turns a token into a principal.
 *
 * Lives here: who may administer what, and which environment a call takes place in. Never here: what is inside an
 * environment, or how a request carries its token.
 */

export {
  type ApiTokenInput,
  createApiToken,
  deleteApiToken,
  getApiToken,
  listApiTokens,
  revokeApiToken,
  updateApiToken,
} from './api-tokens.ts'
export {
  type Authenticator,
  createAuthenticator,
  type PresentedToken,
  type Principal,
  type TeamActor,
} from './authenticate.ts'
export { bootstrap, type FirstStart } from './bootstrap.ts'
export {
  type CascadeDelete,
  createEnvironment,
  deleteEnvironment,
  getEnvironment,
  listEnvironments,
  updateEnvironment,
} from './environments.ts'
export {
  type ApiTokenRecord,
  type EnvironmentRecord,
  type EnvironmentScope,
  findEnvironment,
  findOperatorTeam,
  findTeam,
  findTeams,
  selectEnvironments,
  type TeamRecord,
} from './sql.ts'
export { createTeam, deleteTeam, getTeam, listTeams, type TeamChange, updateTeam } from './teams.ts'
