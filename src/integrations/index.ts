/**
 * Integrations (definitions), their sharing between teams, and their installations in environments.
 *
 * Lives here: storing definitions and overrides with the secrets separated, grants, and the effective definition that calls
 * run on. Never here: what a definition means (`definitions/`), or calling an API (`proxy/`).
 */

export { clientSecretWatch } from './client-secret-expiry.ts'
export { findDefinitionByName } from './definition-by-name.ts'
export {
  createDefinitionCache,
  createIntegrationCache,
  type DefinitionCache,
  type EffectiveDefinition,
  type InstalledDefinition,
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
export { REAUTHORIZATION_KIND } from './override-difference.ts'
export { type CatalogRow, selectCatalogRows } from './sql/catalog.ts'
export {
  type DefinitionVersions,
  type EnvironmentIntegrationFilter,
  findInstalledName,
  type InstallationChoice,
  listInstallationChoices,
  listInstallationIds,
} from './sql/installations.ts'
export {
  findIntegrations,
  type GrantCursor,
  type IntegrationGrantRecord,
  type IntegrationRecord,
  listVisibleNames,
  type Sharing,
} from './sql/integrations.ts'
export type { IntegrationDeps } from './stored-config.ts'
export { type UpsertDefinitionInput, upsertDefinition } from './upsert-definition.ts'
