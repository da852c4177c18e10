import { LRUCache } from 'lru-cache'
import { isJsonObject, type JsonObject, notFound } from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import { compilePlan, type Plan, resolveConfig } from '../definitions/index.ts'
import type { SecretStore } from '../secrets/index.ts'
import { findEnvironment } from '../tenancy/index.ts'
import { findSecretExfiltrationPaths } from './override-allowlist.ts'
import { type DefinitionVersions, findDefinitionVersions, findEnvironmentIntegration } from './sql/installations.ts'
import { findIntegration, type IntegrationRecord } from './sql/integrations.ts'
import { integrationSecretRef, overrideSecretRef, restoreSecrets } from './stored-config.ts'

/** Plans kept in memory; one takes tens to hundreds of kilobytes. */
const PLANS_CACHED_MAX = 500

/** A definition in force: integration and override merged, secrets in place, compiled. Never shown, never logged. */
export interface EffectiveDefinition {
  readonly plan: Plan
  /** Holds secrets in plain text. */
  readonly config: JsonObject
  readonly environmentVariables: JsonObject
}

/** A definition in force, and what is said about it in the database now. */
export interface InstalledDefinition extends EffectiveDefinition {
  readonly integrationName: string
  readonly isEnabled: boolean
}

/** Definitions by installation. */
export interface DefinitionCache {
  /** @throws Failure RESOURCE_NOT_FOUND for an unknown installation, DEFINITION_INVALID when override and config no longer fit */
  get(tx: Tx, environmentId: string, environmentIntegrationId: string): Promise<InstalledDefinition>
  /** Like `find`, for a caller that has just read the versions. */
  getVersion(tx: Tx, installation: InstallationVersions): Promise<EffectiveDefinition>
}

/** An installation, and the states of it and its integration that are wanted. */
interface InstallationVersions extends Pick<DefinitionVersions, 'integrationVersion' | 'installationVersion'> {
  readonly environmentId: string
  readonly environmentIntegrationId: string
}

/**
 * Resolves and compiles definitions once per version of integration and installation.
 *
 * A transaction handed in must not have changed the integration or the installation itself: what it reads is remembered for
 * others.
 */
export function createDefinitionCache(secrets: Pick<SecretStore, 'get'>): DefinitionCache {
  const definitions = new LRUCache<string, EffectiveDefinition>({ max: PLANS_CACHED_MAX })

  async function at(tx: Tx, installation: InstallationVersions): Promise<EffectiveDefinition> {
    const { environmentIntegrationId, integrationVersion, installationVersion } = installation
    const key = `${environmentIntegrationId} ${integrationVersion} ${installationVersion}`
    const known = definitions.get(key)
    if (known !== undefined) return known
    const { environmentId } = installation
    const config = await readConfig(secrets, tx, environmentId, environmentIntegrationId)
    const variables = config.environment_variables
    const environmentVariables = isJsonObject(variables) ? variables : {}
    const definition = { plan: compilePlan(config), config, environmentVariables }
    definitions.set(key, definition)
    return definition
  }

  return {
    getVersion: at,
    async get(tx, environmentId, environmentIntegrationId) {
      const versions = await findDefinitionVersions(tx, environmentId, environmentIntegrationId)
      if (versions === undefined) throw notFound('environment_integration', environmentIntegrationId)
      const definition = await at(tx, { ...versions, environmentId, environmentIntegrationId })
      return { ...definition, integrationName: versions.integrationName, isEnabled: versions.isEnabled }
    },
  }
}

/** The merged config with secrets in place. */
async function readConfig(
  secrets: Pick<SecretStore, 'get'>,
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<JsonObject> {
  const installation = await findEnvironmentIntegration(tx, environmentId, id)
  if (installation === undefined) throw notFound('environment_integration', id)
  const integration = await findIntegration(tx, installation.integrationId)
  const environment = await findEnvironment(tx, environmentId)
  if (integration?.config === undefined || environment === undefined) throw notFound('environment_integration', id)
  // The second wall behind `checkSecretExfiltration`: the owner may have added the secrets after the override was accepted.
  const isDiverted =
    environment.teamId !== integration.teamId && findSecretExfiltrationPaths(installation.override).length > 0
  const ownersSecrets = isDiverted ? {} : await secrets.get(tx, integrationSecretRef(integration))
  const override = restoreSecrets(installation.override, await secrets.get(tx, overrideSecretRef(installation)))
  return resolveConfig(restoreSecrets(integration.config, ownersSecrets), override).config
}

/** Integrations kept in memory; a large config takes a few hundred kilobytes. */
const INTEGRATIONS_CACHED_MAX = 500

/** Integrations at a version, for answers that embed them. */
export interface IntegrationCache {
  /**
   * The integration with its masked config, at the version wanted or a later one; `undefined` when it is gone. The same
   * object every time, so that what is derived from it can be remembered with it.
   */
  find(tx: Tx, id: string, version: number): Promise<IntegrationRecord | undefined>
}

/**
 * A version of an integration never changes, so it is read once. A transaction handed in must not have changed the
 * integration itself: what it reads is remembered for others.
 */
export function createIntegrationCache(): IntegrationCache {
  const integrations = new LRUCache<string, IntegrationRecord>({ max: INTEGRATIONS_CACHED_MAX })
  return {
    async find(tx, id, version) {
      const key = `${id} ${version}`
      const known = integrations.get(key)
      if (known !== undefined) return known
      const integration = await findIntegration(tx, id)
      if (integration !== undefined) integrations.set(key, integration)
      return integration
    },
  }
}
