import { type Db, query } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'

/** What the layers of a mapping are read for; without an account, those of an environment. */
export interface MappedAccount {
  readonly environmentId: string
  readonly integratedAccountId?: string | undefined
  /** Name of the account's integration. */
  readonly integrationName: string
}

/** Where a mapping holds: in a team, in an environment of it, or for an account of that. */
export interface MappingPlace {
  /** Absent: that of the environment. */
  readonly teamId?: string | undefined
  readonly environmentId?: string | undefined
  readonly integratedAccountId?: string | undefined
  readonly integrationName: string
}

/** A stored model (`resource` and `method` empty) or mapping, at its version. */
export interface StoredLayer {
  readonly kind: 'model' | 'base' | 'environment' | 'account'
  readonly id: string
  readonly version: number
  readonly resource: string
  readonly method: string
  readonly config: JsonObject
}

/** The team that is given, else that of the environment. */
const OWNER = 'coalesce(:teamId::uuid, (select team_id from environment where id = :environmentId))'

/**
 * Everything that is stored about a model for an account, an environment or a team, in one statement, lowest layer first.
 * Prepared; uses unified_model_name, unified_mapping_of_team, unified_mapping_of_environment and unified_mapping_of_account.
 */
export async function selectLayers(tx: Db, place: MappingPlace, model: string): Promise<readonly StoredLayer[]> {
  const { teamId = null, environmentId = null, integratedAccountId = null, integrationName } = place
  return await query(
    tx,
    `select kind, id, version, resource, method, config from (
       select 0 as rank, 'model' as kind, id, version, '' as resource, '' as method, config
         from unified_model where team_id = ${OWNER} and name = :model
       union all
       select 1, 'base', id, version, resource, method, config
         from unified_mapping where team_id = ${OWNER} and environment_id is null
           and model = :model and integration_name = :integrationName
       union all
       select 2, 'environment', id, version, resource, method, config
         from unified_mapping where environment_id = :environmentId and integrated_account_id is null
           and model = :model and integration_name = :integrationName
       union all
       select 3, 'account', id, version, resource, method, config
         from unified_mapping where environment_id = :environmentId and integrated_account_id = :integratedAccountId
           and model = :model and integration_name = :integrationName
     ) layers order by rank, id`,
    { teamId, environmentId, integratedAccountId, integrationName, model },
  )
}
