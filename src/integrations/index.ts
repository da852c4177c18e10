/**
 * Integrations, who may use them, and their installations in environments: from a definition as it is written to the plan
 * that calls run on.
 *
 * Lives here: keeping definitions and overrides with their secrets apart, sharing, and the definition in force. Never here:
 * what a definition means (that is `definition/`), or calling one.
 */

export {
  createDefinitionCache,
  type DefinitionCache,
  type EffectiveDefinition,
  type InstalledDefinition,
} from './definition-source.ts'
export type { Integration } from './described.ts'
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
} from './environment-integration.ts'
export {
  createIntegrationGrant,
  deleteIntegrationGrant,
  listIntegrationGrants,
} from './grants.ts'
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
export { createIntegrationCache, type IntegrationCache } from './integration-cache.ts'
export { upsertDefinition } from './put-definition.ts'

export {
  type AccountCascade,
  deleteEnvironmentIntegration,
  deleteInstallationsOfEnvironment,
  type InstallationDeleteDeps,
} from './remove-installation.ts'
