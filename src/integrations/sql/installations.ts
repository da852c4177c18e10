import type { JsonObject } from '../../base/index.ts'
import { execute, jsonb, query, queryOne, type Tx } from '../../database/index.ts'

/** An integration installed in an environment, as it is stored. */
export interface EnvironmentIntegrationRecord {
  readonly id: string
  readonly environmentId: string
  readonly integrationId: string
  readonly showInCatalog: boolean
  readonly isEnabled: boolean
  /** Secrets are masked; null removes a key of the integration's config. */
  readonly override: JsonObject
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

/** Which states of installation and integration a definition in force was made of. */
export interface DefinitionVersions {
  readonly integrationId: string
  readonly integrationName: string
  readonly integrationVersion: number
  readonly installationVersion: number
  readonly isEnabled: boolean
}

/** Environments named per integration at most. */
const INSTALLED_ENVIRONMENTS_MAX = 1_000

const COLUMNS = `id, environment_id as "environmentId", integration_id as "integrationId",
  show_in_catalog as "showInCatalog", is_enabled as "isEnabled", override,
  created_at as "createdAt", updated_at as "updatedAt", version`

/** Stores an installation, or `undefined` when the environment has one of that integration. */
export async function insertEnvironmentIntegration(
  tx: Tx,
  ids: { readonly environmentId: string; readonly id: string; readonly integrationId: string },
  fields: EnvironmentIntegrationFields,
): Promise<EnvironmentIntegrationRecord | undefined> {
  return await queryOne(
    tx,
    `insert into environment_integration (environment_id, id, integration_id, show_in_catalog, is_enabled, override)
     values (?, ?, ?, ?, ?, ?::jsonb) on conflict (environment_id, integration_id) do nothing returning ${COLUMNS}`,
    [ids.environmentId, ids.id, ids.integrationId, fields.showInCatalog, fields.isEnabled, jsonb(fields.override)],
  )
}

/** Rides on the primary key. */
export async function findEnvironmentIntegration(
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<EnvironmentIntegrationRecord | undefined> {
  return await queryOne(tx, `select ${COLUMNS} from environment_integration where environment_id = ? and id = ?`, [
    environmentId,
    id,
  ])
}

/** Like `findEnvironmentIntegration`, and holds the row until the transaction ends, so that a merge loses no update. */
export async function lockEnvironmentIntegration(
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<EnvironmentIntegrationRecord | undefined> {
  return await queryOne(
    tx,
    `select ${COLUMNS} from environment_integration where environment_id = ? and id = ? for update`,
    [environmentId, id],
  )
}

/** The environment's installation of an integration. Rides on environment_integration_pair. */
export async function findEnvironmentIntegrationOf(
  tx: Tx,
  environmentId: string,
  integrationId: string,
): Promise<EnvironmentIntegrationRecord | undefined> {
  return await queryOne(
    tx,
    `select ${COLUMNS} from environment_integration where environment_id = ? and integration_id = ?`,
    [environmentId, integrationId],
  )
}

/** Versions of an installation and its integration, to tell whether what was compiled is current. Rides on primary keys. */
export async function findDefinitionVersions(
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<DefinitionVersions | undefined> {
  return await queryOne(
    tx,
    `select integration.id as "integrationId", integration.name as "integrationName",
       integration.version as "integrationVersion", installation.version as "installationVersion",
       is_enabled as "isEnabled"
     from environment_integration installation join integration on integration.id = integration_id
     where installation.environment_id = ? and installation.id = ?`,
    [environmentId, id],
  )
}

/**
 * Installations of the environment below `before` (all when undefined), newest first. Rides on the primary key backwards.
 */
export async function selectEnvironmentIntegrations(
  tx: Tx,
  environmentId: string,
  filter: EnvironmentIntegrationFilter,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly EnvironmentIntegrationRecord[]> {
  const { integrationId = null, isEnabled = null, showInCatalog = null } = filter
  return await query(
    tx,
    `select ${COLUMNS} from environment_integration
     where environment_id = ? and (?::uuid is null or id < ?) and integration_id = coalesce(?, integration_id)
       and is_enabled = coalesce(?, is_enabled) and show_in_catalog = coalesce(?, show_in_catalog)
     order by id desc limit ?`,
    [environmentId, page.before ?? null, page.before ?? null, integrationId, isEnabled, showInCatalog, page.limit],
  )
}

/** Changes the given fields; `undefined` when there is no such installation or its version is not the given one. */
export async function updateEnvironmentIntegrationRow(
  tx: Tx,
  environmentId: string,
  id: string,
  fields: { readonly [Field in keyof EnvironmentIntegrationFields]?: EnvironmentIntegrationFields[Field] | undefined },
  version: number | undefined,
): Promise<EnvironmentIntegrationRecord | undefined> {
  return await queryOne(
    tx,
    `update environment_integration set
       show_in_catalog = coalesce(?, show_in_catalog), is_enabled = coalesce(?, is_enabled),
       override = coalesce(?::jsonb, override), updated_at = now(), version = version + 1
     where environment_id = ? and id = ? and version = coalesce(?, version) returning ${COLUMNS}`,
    [
      fields.showInCatalog ?? null,
      fields.isEnabled ?? null,
      fields.override === undefined ? null : jsonb(fields.override),
      environmentId,
      id,
      version ?? null,
    ],
  )
}

/**
 * Deletes an installation; returns whether the environment had it in the given version.
 *
 * The foreign key of accounts refuses it while there are any.
 */
export async function deleteEnvironmentIntegrationRow(
  tx: Tx,
  environmentId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const sql = `delete from environment_integration
     where environment_id = ? and id = ? and version = coalesce(?, version)`
  return (await execute(tx, sql, [environmentId, id, version ?? null])) > 0
}

/** The environments of one team in which each integration is installed, oldest installation first. */
export async function listInstalledEnvironments(
  tx: Tx,
  teamId: string,
  integrationIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = await query<{ integrationId: string; environmentIds: readonly string[] }>(
    tx,
    `select integration_id as "integrationId",
       (array_agg(environment_id order by installation.id))[1:${INSTALLED_ENVIRONMENTS_MAX}] as "environmentIds"
     from environment_integration installation join environment on environment.id = environment_id
     where integration_id = any(?) and team_id = ? group by integration_id`,
    [integrationIds, teamId],
  )
  return new Map(found.map(({ integrationId, environmentIds }) => [integrationId, environmentIds]))
}

/** Where an integration is installed, in any team, oldest first. Rides on environment_integration_of_integration. */
export async function listInstallationsOf(
  tx: Tx,
  integrationId: string,
  limit: number,
): Promise<readonly { readonly environmentId: string; readonly id: string; readonly teamId: string }[]> {
  return await query(
    tx,
    `select environment_id as "environmentId", installation.id, team_id as "teamId"
     from environment_integration installation join environment on environment.id = environment_id
     where integration_id = ? order by installation.id limit ?`,
    [integrationId, limit],
  )
}
