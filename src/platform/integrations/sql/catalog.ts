import { type Db, type IdPage, query } from '../../../foundation/database/index.ts'
import type { DefinitionVersions } from './installations.ts'

/** What is read of an installation for the catalogue: its definition is cached by the versions. */
export interface CatalogRow extends Pick<DefinitionVersions, 'integrationVersion' | 'installationVersion'> {
  /** Of the installation. */
  readonly id: string
  readonly environmentId: string
  readonly integrationId: string
  readonly integrationName: string
  readonly category: string
  readonly isBeta: boolean
  /** The team that owns the integration. */
  readonly teamName: string
  readonly isTeamVerified: boolean
  /** Empty when there are none. */
  readonly teamTosLink: string
}

/** Which installations a catalogue has; an undefined field does not restrict. */
export interface CatalogRowFilter {
  /** These alone, whether or not the catalogue shows them; absent: all that it shows. */
  readonly ids?: readonly string[] | undefined
  readonly category?: string | undefined
  readonly isBeta?: boolean | undefined
}

/** At most `limit` enabled installations of an environment below the id `before`, newest first. Uses the primary key backwards. */
export async function selectCatalogRows(
  tx: Db,
  environmentId: string,
  { ids, category, isBeta }: CatalogRowFilter,
  { before, limit }: IdPage,
): Promise<readonly CatalogRow[]> {
  return await query(
    tx,
    `select installation.id, installation.environment_id, integration.id as integration_id,
       integration.name as integration_name, integration.category, integration.is_beta,
       integration.version as integration_version, installation.version as installation_version,
       team.name as team_name, team.is_verified as is_team_verified, team.tos_link as team_tos_link
     from environment_integration installation
       join integration on integration.id = installation.integration_id
       join team on team.id = integration.team_id
     where installation.environment_id = :environmentId and is_enabled
       and case when :ids::uuid[] is null then show_in_catalog else installation.id = any(:ids) end
       and (:before::uuid is null or installation.id < :before)
       and (:category::text is null or integration.category = :category)
       and (:isBeta::boolean is null or integration.is_beta = :isBeta)
     order by installation.id desc limit :limit`,
    {
      environmentId,
      ids: ids ?? null,
      before: before ?? null,
      category: category ?? null,
      isBeta: isBeta ?? null,
      limit,
    },
  )
}
