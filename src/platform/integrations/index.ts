/**
 * Integrations (definitions), their sharing between teams, and their installations in environments.
 *
 * Lives here: storing definitions and overrides with the secrets separated, grants, and the effective definition that calls
 * run on. Never here: what a definition means (`engine/definitions/`), or calling an API (`engine/proxy/`).
 */

export { clientSecretWatch } from './client-secret-expiry.ts'
export {
  createDefinitionCache,
  createIntegrationCache,
  type DefinitionCache,
  type IntegrationCache,
} from './definition-cache.ts'
export {
  type AccountCascade,
  deleteEnvironmentIntegration,
  deleteSomeInstallations,
  hideInstallations,
  type InstallationDeleteDeps,
  installationDeletionTask,
} from './delete-installation.ts'
export {
  assertIntegrationsDeletable,
  continueIntegrationDeletion,
  deleteIntegration,
  deleteIntegrationsOfTeam,
  deletionTask,
  hideIntegrationsOfTeam,
  startDeletion,
} from './delete-integration.ts'
export { createIntegrationGrant, deleteIntegrationGrant, listIntegrationGrants } from './grants.ts'
export {
  createEnvironmentIntegration,
  type EnvironmentIntegration,
  type EnvironmentIntegrationChange,
  type EnvironmentIntegrationInput,
  getEnvironmentIntegration,
  listEnvironmentIntegrations,
  resolveEnvironmentIntegration,
  updateEnvironmentIntegration,
} from './installation.ts'
export {
  checkDefinition,
  createIntegration,
  getIntegration,
  type IntegrationChange,
  type IntegrationInput,
  listIntegrations,
  updateIntegration,
} from './integration.ts'
export type { Integration } from './integration-view.ts'
export { type DefinitionVersions, type EnvironmentIntegrationFilter, findInstalledName } from './sql/installations.ts'
export type { GrantCursor, IntegrationGrantRecord, Sharing } from './sql/integrations.ts'
export type { IntegrationDeps } from './stored-config.ts'
export { type UpsertDefinitionInput, upsertDefinition } from './upsert-definition.ts'
