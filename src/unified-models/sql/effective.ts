import type { JsonObject } from '../../base/index.ts'
import { query, type Tx } from '../../database/index.ts'

/** What the layers of a mapping are read for; without an account, those of an environment. */
export interface MappedAccount {
  readonly environmentId: string
  readonly integratedAccountId?: string | undefined
  /** Name of the account's integration. */
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

/**
 * Everything that is stored about a model for an account, in one statement, lowest layer first. Prepared; uses
 * unified_model_name, unified_mapping_of_team, unified_mapping_of_environment and unified_mapping_of_account.
 */
export async function selectLayers(tx: Tx, account: MappedAccount, model: string): Promise<readonly StoredLayer[]> {
  const { environmentId, integratedAccountId, integrationName } = account
  return await query(
    tx,
    `select kind, id, version, resource, method, config from (
       select 0 as rank, 'model' as kind, stored.id, stored.version, '' as resource, '' as method, stored.config
         from environment join unified_model stored on stored.team_id = environment.team_id
         where environment.id = :environmentId and stored.name = :model
       union all
       select 1, 'base', base.id, base.version, base.resource, base.method, base.config
         from environment join unified_mapping base on base.team_id = environment.team_id
         where environment.id = :environmentId and base.environment_id is null
           and base.model = :model and base.integration_name = :integrationName
       union all
       select 2, 'environment', own.id, own.version, own.resource, own.method, own.config
         from unified_mapping own
         where own.environment_id = :environmentId and own.integrated_account_id is null
           and own.model = :model and own.integration_name = :integrationName
       union all
       select 3, 'account', own.id, own.version, own.resource, own.method, own.config
         from unified_mapping own
         where own.environment_id = :environmentId and own.integrated_account_id = :integratedAccountId
           and own.model = :model and own.integration_name = :integrationName
     ) layers order by rank, id`,
    { environmentId, integratedAccountId: integratedAccountId ?? null, integrationName, model },
  )
}
