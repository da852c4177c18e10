/**
 * Integrations, who may use them, and their installations in environments: from a definition as it is written to the plan
 * that calls run on.
 *
 * Lives here: keeping definitions and overrides with their secrets apart, sharing, and the definition in force. Never here:
 * what a definition means (that is `definition/`), or calling one.
 */

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
  deleteInstallationsOfEnvironment,
  type InstallationDeleteDeps,
} from './delete-installation.ts'
export { createIntegrationGrant, deleteIntegrationGrant, listIntegrationGrants } from './grants.ts'
export {
  createEnvironmentIntegration,
  type EnvironmentIntegration,
  type EnvironmentIntegrationChange,
  type EnvironmentIntegrationDeps,
  type EnvironmentIntegrationInput,
  getEnvironmentIntegration,
  listEnvironmentIntegrations,
  resolveEnvironmentIntegration,
  updateEnvironmentIntegration,
} from './installation.ts'
export {
  checkDefinition,
  createIntegration,
  deleteIntegration,
  deleteIntegrationsOfTeam,
  getIntegration,
  type IntegrationChange,
  type IntegrationDeps,
  type IntegrationInput,
  listIntegrations,
  updateIntegration,
} from './integration.ts'
export type { Integration } from './integration-view.ts'
export type { DefinitionVersions, EnvironmentIntegrationFilter } from './sql/installations.ts'
export {
  findIntegrations,
  type GrantCursor,
  type IntegrationGrantRecord,
  type IntegrationRecord,
  type Sharing,
} from './sql/integrations.ts'
export { upsertDefinition } from './upsert-definition.ts'
