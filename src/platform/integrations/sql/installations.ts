import {
  type Db,
  jsonb,
  newestFirst,
  nextVersion,
  query,
  queryOne,
  type Tx,
  whereVersion,
} from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'

/** An integration installed in an environment, as it is stored. */
export interface EnvironmentIntegrationRecord {
  readonly id: string
  readonly environmentId: string
  readonly integrationId: string
  readonly showInCatalog: boolean
  readonly isEnabled: boolean
  /** Secrets are masked; null removes a key of the integration's config. */
  readonly override: JsonObject
  /** When the secret of the definition's client ends; null: not known. */
  readonly clientSecretExpiresAt: Date | null
  /** Credentials entered with an earlier version are for hosts to which nothing is sent any more; 0: none are. */
  readonly reauthorizationVersion: number
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** What an environment decides about an installation. */
export type EnvironmentIntegrationFields = Pick<
  EnvironmentIntegrationRecord,
  'showInCatalog' | 'isEnabled' | 'override'
>

/** Which installations to list; what is undefined does not restrict. */
export interface EnvironmentIntegrationFilter {
  readonly integrationId?: string | undefined
  readonly isEnabled?: boolean | undefined
  readonly showInCatalog?: boolean | undefined
}

/** The versions of installation and integration that an effective definition is made of. */
export interface DefinitionVersions {
  readonly integrationId: string
  readonly integrationName: string
  readonly integrationVersion: number
  readonly installationVersion: number
  readonly isEnabled: boolean
}

/** Environments named per integration at most. */
const INSTALLED_ENVIRONMENTS_MAX = 1_000

const COLUMNS = [
  'id',
  'environment_id',
  'integration_id',
  'show_in_catalog',
  'is_enabled',
  'override',
  'client_secret_expires_at',
  'reauthorization_version',
  'created_at',
  'updated_at',
  'version',
]

/** Stores an installation, or `undefined` when the environment has one of that integration. */
export async function insertEnvironmentIntegration(
  tx: Db,
  ids: { readonly environmentId: string; readonly id: string; readonly integrationId: string },
  fields: EnvironmentIntegrationFields,
): Promise<EnvironmentIntegrationRecord | undefined> {
  const { environmentId, id, integrationId } = ids
  const [installation] = await tx('environment_integration')
    .insert({ environment_id: environmentId, id, integration_id: integrationId, ...toColumns(fields) })
    .onConflict(tx.raw('(environment_id, integration_id) where deleted_at is null'))
    .ignore()
    .returning(COLUMNS)
  return installation
}

/** Uses the primary key. */
export async function findEnvironmentIntegration(
  tx: Db,
  environmentId: string,
  id: string,
): Promise<EnvironmentIntegrationRecord | undefined> {
  return await tx('environment_integration')
    .where({ environment_id: environmentId, id, is_hidden: false })
    .first(COLUMNS)
}

/** Like `findEnvironmentIntegration`, and locks the row until the transaction ends, so that a merge loses no update. */
export async function lockEnvironmentIntegration(
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<EnvironmentIntegrationRecord | undefined> {
  return await tx('environment_integration')
    .where({ environment_id: environmentId, id, is_hidden: false })
    .forUpdate()
    .first(COLUMNS)
}

/** The environment's installation of an integration. Uses environment_integration_pair. */
export async function findEnvironmentIntegrationOf(
  tx: Db,
  environmentId: string,
  integrationId: string,
): Promise<EnvironmentIntegrationRecord | undefined> {
  return await tx('environment_integration')
    .where({ environment_id: environmentId, integration_id: integrationId, deleted_at: null })
    .first(COLUMNS)
}

/** Versions of an installation and its integration, the key of the definition cache. Prepared; uses primary keys. */
export async function findDefinitionVersions(
  tx: Db,
  environmentId: string,
  id: string,
): Promise<DefinitionVersions | undefined> {
  return await queryOne(
    tx,
    `select integration.id as integration_id, integration.name as integration_name,
       integration.version as integration_version, installation.version as installation_version, is_enabled
     from environment_integration installation join integration on integration.id = integration_id
     where installation.environment_id = :environmentId and installation.id = :id and not is_hidden`,
    { environmentId, id },
  )
}

/** An installation as a customer's choice, with the versions of its definition. */
export interface InstallationChoice extends DefinitionVersions {
  readonly environmentId: string
  readonly environmentIntegrationId: string
  readonly category: string
  readonly isBeta: boolean
  readonly showInCatalog: boolean
}

/** Installations of one environment that are read at once. */
const CHOICES_MAX = 1_000

/** Installations of an environment by name of the integration. @param ids absent: all. Uses the primary key */
export async function listInstallationChoices(
  tx: Db,
  environmentId: string,
  ids?: readonly string[],
): Promise<readonly InstallationChoice[]> {
  return await query(
    tx,
    `select installation.environment_id, installation.id as environment_integration_id,
       integration.id as integration_id, integration.name as integration_name, integration.category,
       integration.is_beta, integration.version as integration_version, installation.version as installation_version,
       is_enabled, show_in_catalog
     from environment_integration installation join integration on integration.id = integration_id
     where installation.environment_id = :environmentId and not is_hidden
       and (:ids::uuid[] is null or installation.id = any(:ids))
     order by integration.name, installation.id limit ${CHOICES_MAX}`,
    { environmentId, ids: ids ?? null },
  )
}

/**
 * Ids of an environment's installations of integrations of a name: one, or more when teams share integrations of one name.
 * Uses primary keys.
 */
export async function listInstallationIds(
  tx: Db,
  environmentId: string,
  integrationName: string,
): Promise<readonly string[]> {
  const found = await query<{ readonly id: string }>(
    tx,
    `select installation.id
     from environment_integration installation join integration on integration.id = installation.integration_id
     where installation.environment_id = :environmentId and integration.name = :integrationName
       and not is_hidden`,
    { environmentId, integrationName },
  )
  return found.map(({ id }) => id)
}

/** A page of the environment's installations. Uses the primary key backwards. */
export async function selectEnvironmentIntegrations(
  tx: Db,
  environmentId: string,
  filter: EnvironmentIntegrationFilter,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly EnvironmentIntegrationRecord[]> {
  const installations = tx('environment_integration').where({ environment_id: environmentId, is_hidden: false })
  const { integrationId, isEnabled, showInCatalog } = filter
  if (integrationId !== undefined) installations.where({ integration_id: integrationId })
  if (isEnabled !== undefined) installations.where({ is_enabled: isEnabled })
  if (showInCatalog !== undefined) installations.where({ show_in_catalog: showInCatalog })
  return await installations.modify(newestFirst, page).select(COLUMNS)
}

/**
 * Changes the given fields; `undefined` when there is no such installation or its version is not the given one.
 *
 * @param change.endsCredentials the credentials that were entered until now are sent nowhere any more
 */
export async function updateEnvironmentIntegrationRow(
  tx: Db,
  environmentId: string,
  id: string,
  fields: { readonly [Field in keyof EnvironmentIntegrationFields]?: EnvironmentIntegrationFields[Field] | undefined },
  { version, endsCredentials }: { readonly version: number | undefined; readonly endsCredentials: boolean },
): Promise<EnvironmentIntegrationRecord | undefined> {
  const ended = endsCredentials ? { reauthorization_version: tx.raw('version + 1') } : {}
  const [installation] = await tx('environment_integration')
    .where({ environment_id: environmentId, id, is_hidden: false })
    .modify(whereVersion, version)
    .update({ ...toColumns(fields), ...ended, ...nextVersion(tx) })
    .returning(COLUMNS)
  return installation
}

/** Deletes an installation. The foreign key of accounts rejects it while there are any. */
export async function deleteEnvironmentIntegrationRow(tx: Db, environmentId: string, id: string): Promise<void> {
  await tx('environment_integration').where({ environment_id: environmentId, id }).delete()
}

/** Who deletes the accounts of an installation: the transaction that shows it sees it, nothing else does. */
interface DeletedInstallation {
  readonly environmentId: string
  readonly id: string
}

/**
 * Turns an installation off for good, and hides it and its accounts from every statement that reads installations. Another one may
 * take its place.
 */
export async function hideInstallation(tx: Db, { environmentId, id }: DeletedInstallation): Promise<void> {
  const change = { is_hidden: true, is_enabled: false, deleted_at: tx.raw('coalesce(deleted_at, now())') }
  await tx('environment_integration').where({ environment_id: environmentId, id }).update(change)
}

/**
 * Shows a hidden installation to this transaction, which has to hide it again or delete it: others see what is committed. Locks it.
 */
export async function showHiddenInstallation(
  tx: Db,
  { environmentId, id }: DeletedInstallation,
): Promise<EnvironmentIntegrationRecord | undefined> {
  const [installation] = await tx('environment_integration')
    .where({ environment_id: environmentId, id, is_hidden: true })
    .update({ is_hidden: false })
    .returning(COLUMNS)
  return installation
}

/** Whose installations: an environment's, or an integration's in all environments. */
export type InstallationsOwner = { readonly environment_id: string } | { readonly integration_id: string }

/** The same for the oldest one of an owner that is deleted, hidden or not, with whether it was. Locks it. */
export async function showNextInstallation(
  tx: Db,
  of: InstallationsOwner,
): Promise<(EnvironmentIntegrationRecord & { readonly wasHidden: boolean }) | undefined> {
  const next = tx('environment_integration').where(of).orderBy(['environment_id', 'id']).forUpdate()
  const found = await next.first<{ readonly environmentId: string; readonly id: string; readonly isHidden: boolean }>(
    'environment_id',
    'id',
    'is_hidden',
  )
  if (found === undefined) return undefined
  const [installation] = await tx('environment_integration')
    .where({ environment_id: found.environmentId, id: found.id })
    .update({ is_hidden: false })
    .returning(COLUMNS)
  return { ...installation, wasHidden: found.isHidden }
}

/** Hides installations of owners that are deleted, like `hideInstallation`; returns those that were not hidden before. */
export async function hideInstallationsOf(
  tx: Db,
  column: 'environment_id' | 'integration_id',
  ownerIds: readonly string[],
): Promise<readonly EnvironmentIntegrationRecord[]> {
  return await tx('environment_integration')
    .whereRaw(`${column} = any(?)`, [[...ownerIds]])
    .where({ is_hidden: false })
    .update({ is_hidden: true, is_enabled: false, deleted_at: tx.raw('coalesce(deleted_at, now())') })
    .returning(COLUMNS)
}

/** The environments of one team in which each integration is installed, oldest installation first. */
export async function listInstalledEnvironments(
  tx: Db,
  teamId: string,
  integrationIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = await query<{ integrationId: string; environmentIds: readonly string[] }>(
    tx,
    `select integration_id,
       (array_agg(environment_id order by installation.id))[1:${INSTALLED_ENVIRONMENTS_MAX}] as environment_ids
     from environment_integration installation join environment on environment.id = environment_id
     where integration_id = any(:integrationIds) and team_id = :teamId and not is_hidden group by integration_id`,
    { integrationIds, teamId },
  )
  return new Map(found.map(({ integrationId, environmentIds }) => [integrationId, environmentIds]))
}

/** Of the integrations of a team, or of one of them, one that another team has installed. Uses environment_integration_of_integration. */
export async function findInstalledElsewhere(
  tx: Db,
  teamId: string,
  integrationId: string | null,
): Promise<string | undefined> {
  const found = await queryOne<{ readonly id: string }>(
    tx,
    `select integration.id from integration
     join environment_integration installation on installation.integration_id = integration.id and not is_hidden
     join environment on environment.id = environment_id and environment.team_id <> :teamId
     where integration.team_id = :teamId and (:integrationId::uuid is null or integration.id = :integrationId) limit 1`,
    { teamId, integrationId },
  )
  return found?.id
}

function toColumns(
  fields: {
    readonly [Field in keyof EnvironmentIntegrationFields]?: EnvironmentIntegrationFields[Field] | undefined
  },
) {
  return {
    show_in_catalog: fields.showInCatalog,
    is_enabled: fields.isEnabled,
    override: fields.override && jsonb(fields.override),
  }
}

/** The name of the integration that is installed; undefined for an unknown installation. Uses primary keys. */
export async function findInstalledName(tx: Db, environmentId: string, id: string): Promise<string | undefined> {
  const found = await tx('environment_integration as installation')
    .join('integration', 'integration.id', 'installation.integration_id')
    .where({ 'installation.environment_id': environmentId, 'installation.id': id, is_hidden: false })
    .first('integration.name')
  return found?.name
}
