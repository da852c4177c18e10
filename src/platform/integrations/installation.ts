import { checkOverrideAsync, type ResolvedConfig, resolveConfig } from '../../engine/definitions/index.ts'
import { etagMismatch, Failure, newId, notFound } from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import { canonicalJson, deepMerge, type JsonObject } from '../../foundation/json/index.ts'
import type { EnvironmentScope } from '../tenancy/sql/environments.ts'
import { recordInstallationEvent } from './installation-events.ts'
import { type Integration, isVisible, withTeamAndEnvironments } from './integration-view.ts'
import { checkSecretExfiltration } from './override-allowlist.ts'
import { compareOverrides, type OverrideDifference, startReauthorization } from './override-difference.ts'
import { findMissingSecrets } from './secret-destinations.ts'
import {
  type EnvironmentIntegrationFilter,
  type EnvironmentIntegrationRecord,
  findEnvironmentIntegration,
  findEnvironmentIntegrationOf,
  insertEnvironmentIntegration,
  selectEnvironmentIntegrations as listRows,
  lockEnvironmentIntegration,
  updateEnvironmentIntegrationRow as updateRow,
} from './sql/installations.ts'
import { findIntegration, findIntegrationGrant, findIntegrations, type IntegrationRecord } from './sql/integrations.ts'
import {
  assertUrlsAllowed,
  assertValid,
  type ConfigToStore,
  type IntegrationDeps,
  overrideSecretRef,
  prepareConfig,
} from './stored-config.ts'

/** An installation with its integration. */
export interface EnvironmentIntegration extends EnvironmentIntegrationRecord {
  readonly integration: Integration
}

/** A new installation. */
export interface EnvironmentIntegrationInput {
  readonly integrationId: string
  /** Absent: false, and for an integration that is installed: as it is. */
  readonly showInCatalog?: boolean | undefined
  /** Absent: true, and for an integration that is installed: as it is. */
  readonly isEnabled?: boolean | undefined
  /**
   * Deep-merged over the integration's config at request time. Absent: nothing is overridden, and for an integration that is
   * installed: what is.
   */
  readonly override?: JsonObject | undefined
}

/**
 * Installs an integration in an environment, or returns the installation that is there when the input asks for nothing else.
 *
 * A team may install its own integrations, those shared with all, and those shared on request (`ask`) that it has a grant for.
 * Two overrides are the same when their values are, in any order of keys, secrets included; the mask stands for the stored
 * secret.
 *
 * @throws Failure RESOURCE_NOT_FOUND also for an integration that its owner does not share, INTEGRATION_GRANT_REQUIRED,
 * DEFINITION_INVALID, URL_NOT_ALLOWED, SECRET_MASKED with every finding of the override, ALREADY_INSTALLED naming the
 * existing installation when something of it would have to change
 */
export async function createEnvironmentIntegration(
  deps: IntegrationDeps,
  tx: Tx,
  scope: EnvironmentScope,
  input: EnvironmentIntegrationInput,
): Promise<EnvironmentIntegration> {
  const { integrationId, showInCatalog = false, isEnabled = true, override = {} } = input
  const integration = await getInstallable(tx, scope, integrationId)
  const before = await findEnvironmentIntegrationOf(tx, scope.environmentId, integrationId)
  const prepared = await prepareOverride(deps, scope, integration, override, before?.override)
  const { config = {} } = integration
  const ids = { environmentId: scope.environmentId, id: newId(), integrationId }
  const fields = { showInCatalog, isEnabled, override: prepared.masked }
  const record = before === undefined ? await insertEnvironmentIntegration(tx, ids, fields) : undefined
  if (record === undefined) {
    // A concurrent first installation is found only now.
    const existing = before ?? (await findEnvironmentIntegrationOf(tx, scope.environmentId, integrationId))
    if (existing === undefined || !(await isInstalledAs(deps, tx, existing, input, prepared)))
      throw alreadyInstalled(existing)
    return await withIntegration(tx, scope, existing)
  }
  // Its deletion may have begun before the insert locked it.
  if ((await findIntegration(tx, integrationId)) === undefined) throw notFound('integration', integrationId)
  await prepared.storeSecrets(tx, overrideSecretRef(record))
  const change = compareOverrides(config, {}, prepared.masked)
  await recordInstallationEvent(tx, 'environment_integration:created', record, change)
  return await withIntegration(tx, scope, record)
}

/** Whether an installation has everything that is given. @param prepared the given override */
async function isInstalledAs(
  { secrets }: Pick<IntegrationDeps, 'secrets'>,
  tx: Db,
  existing: EnvironmentIntegrationRecord,
  { showInCatalog, isEnabled, override }: EnvironmentIntegrationInput,
  { masked, given }: ConfigToStore,
): Promise<boolean> {
  if ((showInCatalog ?? existing.showInCatalog) !== existing.showInCatalog) return false
  if ((isEnabled ?? existing.isEnabled) !== existing.isEnabled) return false
  if (override === undefined) return true
  if (canonicalJson(masked) !== canonicalJson(existing.override)) return false
  const stored = await secrets.get(tx, overrideSecretRef(existing))
  return Object.entries(given).every(([name, text]) => stored[name] === text)
}

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getEnvironmentIntegration(
  tx: Db,
  scope: EnvironmentScope,
  id: string,
): Promise<EnvironmentIntegration> {
  return await withIntegration(
    tx,
    scope,
    (await findEnvironmentIntegration(tx, scope.environmentId, id)) ?? installationNotFound(id),
  )
}

/**
 * At most `limit` installations of the environment below the id `before`, newest first.
 *
 * @param page.view `basic` leaves `integration.config` undefined
 */
export async function listEnvironmentIntegrations(
  tx: Db,
  scope: EnvironmentScope,
  filter: EnvironmentIntegrationFilter,
  page: { readonly before: string | undefined; readonly limit: number; readonly view: 'basic' | 'full' },
): Promise<readonly EnvironmentIntegration[]> {
  const records = await listRows(tx, scope.environmentId, filter, page)
  return await withIntegrations(tx, scope, records, page.view === 'full')
}

/** Changes to an installation; what is undefined keeps its value. */
export interface EnvironmentIntegrationChange {
  readonly id: string
  readonly showInCatalog?: boolean | undefined
  readonly isEnabled?: boolean | undefined
  /** A merge patch (RFC 7396) to the stored override, or with `replaceOverride` the whole new one. */
  readonly override?: JsonObject | undefined
  readonly replaceOverride?: boolean | undefined
  /** When the override sends requests to other hosts, the accounts have to be connected again. */
  readonly reauthorizeAccounts?: boolean | undefined
  /** The version the caller saw; absent: any version. */
  readonly version?: number | undefined
}

/**
 * Changes an installation; nothing given changes nothing. An override is read, merged and written
 * under the lock of its row.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH; DEFINITION_INVALID, URL_NOT_ALLOWED, SECRET_MASKED with every
 * finding of the override that would result; RATE_LIMITED as `startTask`
 */
export async function updateEnvironmentIntegration(
  deps: IntegrationDeps,
  tx: Tx,
  scope: EnvironmentScope,
  change: EnvironmentIntegrationChange,
): Promise<EnvironmentIntegration> {
  const { id, version, showInCatalog, isEnabled } = change
  const merged =
    change.override === undefined ? undefined : await mergeOverride(deps, tx, scope, change, change.override)
  const fields = { showInCatalog, isEnabled, override: merged?.override }
  const isEmpty = Object.values(fields).every((value) => value === undefined)
  const endsCredentials = change.reauthorizeAccounts === true && (merged?.change.hostsAdded.length ?? 0) > 0
  const how = { version, endsCredentials }
  const updated = isEmpty ? undefined : await updateRow(tx, scope.environmentId, id, fields, how)
  if (updated !== undefined) {
    if (endsCredentials) await startReauthorization(tx, updated)
    await recordInstallationEvent(tx, 'environment_integration:updated', updated, merged?.change, endsCredentials)
    return await withIntegration(tx, scope, updated)
  }
  const stored = await getEnvironmentIntegration(tx, scope, id)
  if (isEmpty && (version === undefined || version === stored.version)) return stored
  throw etagMismatch('environment_integration', id)
}

/** The effective config, masked, and the layer (integration or override) of each of its leaves. @throws Failure RESOURCE_NOT_FOUND */
export async function resolveEnvironmentIntegration(
  tx: Db,
  scope: EnvironmentScope,
  id: string,
): Promise<ResolvedConfig> {
  const { integration, override } = await getEnvironmentIntegration(tx, scope, id)
  return resolveConfig(integration.config ?? {}, override)
}

async function getInstallable(tx: Db, { teamId }: EnvironmentScope, id: string): Promise<IntegrationRecord> {
  const integration = await findIntegration(tx, id)
  if (integration === undefined || !isVisible(integration, teamId)) throw notFound('integration', id)
  const isAsked = integration.teamId !== teamId && integration.sharing === 'ask'
  if (isAsked && (await findIntegrationGrant(tx, id, teamId)) === undefined)
    throw new Failure(
      'INTEGRATION_GRANT_REQUIRED',
      'the owner shares this integration on request: ask them for a grant',
      {
        resource: { type: 'integration', id },
      },
    )
  return integration
}

/** Checks an override with its integration and separates its secrets. */
async function prepareOverride(
  deps: IntegrationDeps,
  scope: EnvironmentScope,
  integration: IntegrationRecord,
  override: JsonObject,
  before: JsonObject | undefined,
): Promise<ConfigToStore> {
  const config = integration.config ?? {}
  const isForeign = integration.teamId !== scope.teamId
  assertValid([
    ...(await checkOverrideAsync(config, override, 'override', { owner: scope.environmentId })),
    ...(isForeign ? checkSecretExfiltration(config, override, 'override') : []),
    ...findMissingSecrets({ config, override, isForeign }, 'override'),
  ])
  assertUrlsAllowed(deps.checkUrls(override, 'override'))
  return prepareConfig(deps.secrets, override, before, 'override')
}

async function mergeOverride(
  deps: IntegrationDeps,
  tx: Tx,
  scope: EnvironmentScope,
  { id, version, replaceOverride = false }: EnvironmentIntegrationChange,
  given: JsonObject,
): Promise<{ readonly override: JsonObject; readonly change: OverrideDifference }> {
  const stored = (await lockEnvironmentIntegration(tx, scope.environmentId, id)) ?? installationNotFound(id)
  if (version !== undefined && version !== stored.version) throw etagMismatch('environment_integration', id)
  const integration = await findIntegration(tx, stored.integrationId)
  if (integration === undefined) throw new Error(`no integration ${stored.integrationId}, which is installed`)
  const override = replaceOverride ? given : deepMerge(stored.override, given)
  const { masked, storeSecrets } = await prepareOverride(deps, scope, integration, override, stored.override)
  await storeSecrets(tx, overrideSecretRef(stored))
  return { override: masked, change: compareOverrides(integration.config ?? {}, stored.override, masked) }
}

/** @param existing absent: it was deleted this moment */
function alreadyInstalled(existing: EnvironmentIntegrationRecord | undefined): Failure {
  const message =
    'the integration is installed in this environment with other settings: change that installation instead'
  const resource = { type: 'environment_integration', id: existing?.id ?? '' }
  return new Failure('ALREADY_INSTALLED', message, { resource })
}

async function withIntegration(
  tx: Db,
  scope: EnvironmentScope,
  record: EnvironmentIntegrationRecord,
): Promise<EnvironmentIntegration> {
  const [described] = await withIntegrations(tx, scope, [record], true)
  if (described === undefined) throw new Error('one record without its view')
  return described
}

async function withIntegrations(
  tx: Db,
  { teamId }: EnvironmentScope,
  records: readonly EnvironmentIntegrationRecord[],
  withConfig: boolean,
): Promise<readonly EnvironmentIntegration[]> {
  const ids = records.map(({ integrationId }) => integrationId)
  const integrations = await withTeamAndEnvironments(tx, teamId, await findIntegrations(tx, ids, withConfig))
  const byId = new Map(integrations.map((integration) => [integration.id, integration]))
  return records.map((record) => {
    const integration = byId.get(record.integrationId)
    if (integration === undefined) throw new Error(`no integration ${record.integrationId}, which is installed`)
    return { ...record, integration }
  })
}

function installationNotFound(id: string): never {
  throw notFound('environment_integration', id)
}
