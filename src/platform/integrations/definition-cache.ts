import { LRUCache } from 'lru-cache'
import { compilePlan, type Plan, resolveConfig } from '../../engine/definitions/index.ts'
import { notFound } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import { isJsonObject, type JsonObject } from '../../foundation/json/index.ts'
import type { SecretStore } from '../../foundation/secrets/index.ts'
import { findTeamOfEnvironment } from '../tenancy/sql/environments.ts'
import { findWithheldSecrets } from './secret-destinations.ts'
import { type DefinitionVersions, findDefinitionVersions, findEnvironmentIntegration } from './sql/installations.ts'
import { findDefinitionOf, findIntegration, type IntegrationRecord } from './sql/integrations.ts'
import { integrationSecretRef, overrideSecretRef, restoreSecrets, withoutSecretsAt } from './stored-config.ts'

/** Cache size; a plan takes tens to hundreds of kilobytes. */
const PLANS_CACHED_MAX = 500

/** The definition that calls run on: integration and override merged, secrets in place, compiled. Never shown or logged. */
export interface EffectiveDefinition {
  readonly plan: Plan
  /** Holds secrets in plain text. */
  readonly config: JsonObject
  readonly environmentVariables: JsonObject
  /** Values of `{{connection.<name>}}`; `public_url` is where this service is reached, below which addresses of accounts are made. */
  readonly connection: JsonObject
  /** Of the installation that was read. */
  readonly installationVersion: number
  /** Credentials that were entered with an earlier version of the installation are for other hosts, and are not sent. */
  readonly reauthorizationVersion: number
}

/** An effective definition, and the current state of its installation. */
export interface InstalledDefinition extends EffectiveDefinition {
  readonly integrationName: string
  readonly isEnabled: boolean
}

/** A cache of effective definitions by installation and versions. */
export interface DefinitionCache {
  /** @throws Failure RESOURCE_NOT_FOUND for an unknown installation, DEFINITION_INVALID when override and config no longer fit */
  get(tx: Db, environmentId: string, environmentIntegrationId: string): Promise<InstalledDefinition>
  /** Like `get`, for a caller that has just read the versions. */
  getVersion(tx: Db, installation: InstallationVersions): Promise<EffectiveDefinition>
}

/** An installation at a version of its own and of its integration. */
interface InstallationVersions extends Pick<DefinitionVersions, 'integrationVersion' | 'installationVersion'> {
  readonly environmentId: string
  readonly environmentIntegrationId: string
}

/**
 * Merges and compiles a definition once per version of integration and installation.
 *
 * `tx` must not be a transaction that has changed the integration or the installation: what it reads is cached for others.
 *
 * @param connection values of `{{connection.<name>}}`, which are the same for all accounts; absent: none
 */
export function createDefinitionCache(
  secrets: Pick<SecretStore, 'get'>,
  connection: () => JsonObject = () => ({}),
): DefinitionCache {
  const definitions = new LRUCache<string, EffectiveDefinition>({ max: PLANS_CACHED_MAX })

  async function getVersion(tx: Db, installation: InstallationVersions): Promise<EffectiveDefinition> {
    const { environmentIntegrationId, integrationVersion, installationVersion } = installation
    const key = `${environmentIntegrationId} ${integrationVersion} ${installationVersion}`
    const cached = definitions.get(key)
    if (cached !== undefined) return cached
    const { environmentId } = installation
    const { config, ...versions } = await readConfig(secrets, tx, environmentId, environmentIntegrationId)
    const variables = config.environment_variables
    const environmentVariables = isJsonObject(variables) ? variables : {}
    const definition = {
      plan: compilePlan(config),
      config,
      environmentVariables,
      connection: connection(),
      ...versions,
    }
    definitions.set(key, definition)
    return definition
  }

  return {
    getVersion,
    async get(tx, environmentId, environmentIntegrationId) {
      const versions = await findDefinitionVersions(tx, environmentId, environmentIntegrationId)
      if (versions === undefined) throw notFound('environment_integration', environmentIntegrationId)
      const definition = await getVersion(tx, { ...versions, environmentId, environmentIntegrationId })
      return { ...definition, integrationName: versions.integrationName, isEnabled: versions.isEnabled }
    },
  }
}

/** The merged config with secrets in place, and the versions of the row that it was read from. */
async function readConfig(
  secrets: Pick<SecretStore, 'get'>,
  tx: Db,
  environmentId: string,
  id: string,
): Promise<Pick<EffectiveDefinition, 'config' | 'installationVersion' | 'reauthorizationVersion'>> {
  const installation = await findEnvironmentIntegration(tx, environmentId, id)
  if (installation === undefined) throw notFound('environment_integration', id)
  const integration = await findDefinitionOf(tx, installation.integrationId)
  const teamId = await findTeamOfEnvironment(tx, environmentId)
  if (integration?.config === undefined || teamId === undefined) throw notFound('environment_integration', id)
  // Decided here too: the owner may have added the secrets after the override was accepted.
  const withheld = findWithheldSecrets({
    config: integration.config,
    override: installation.override,
    isForeign: teamId !== integration.teamId,
  })
  const ownersSecrets = withoutSecretsAt(await secrets.get(tx, integrationSecretRef(integration)), withheld)
  const override = restoreSecrets(installation.override, await secrets.get(tx, overrideSecretRef(installation)))
  const { config } = resolveConfig(restoreSecrets(integration.config, ownersSecrets), override)
  const { version: installationVersion, reauthorizationVersion } = installation
  return { config, installationVersion, reauthorizationVersion }
}

/** Cache size; a large config takes a few hundred kilobytes. */
const INTEGRATIONS_CACHED_MAX = 500

/** A cache of integrations by version, for responses that embed them. */
export interface IntegrationCache {
  /**
   * The integration with its masked config, at that version or a later one; `undefined` when it was deleted. Always the
   * same object, so that what is derived from it can be cached with it.
   */
  find(tx: Db, id: string, version: number): Promise<IntegrationRecord | undefined>
}

/**
 * A version of an integration never changes, so it is read once. `tx` must not be a transaction that has changed the
 * integration: what it reads is cached for others.
 */
export function createIntegrationCache(): IntegrationCache {
  const integrations = new LRUCache<string, IntegrationRecord>({ max: INTEGRATIONS_CACHED_MAX })
  return {
    async find(tx, id, version) {
      const key = `${id} ${version}`
      const cached = integrations.get(key)
      if (cached !== undefined) return cached
      const integration = await findIntegration(tx, id)
      if (integration !== undefined) integrations.set(key, integration)
      return integration
    },
  }
}
