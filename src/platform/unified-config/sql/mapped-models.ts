import { type Db, query } from '../../../foundation/database/index.ts'
import type { MappedAccount } from './effective.ts'

/**
 * Names of the models of which a mapping is stored for an account, in any layer. Uses unified_mapping_of_team,
 * unified_mapping_of_environment and unified_mapping_of_account.
 */
export async function selectMappedModels(tx: Db, account: MappedAccount): Promise<readonly string[]> {
  const { environmentId, integratedAccountId, integrationName } = account
  const found = await query<{ readonly model: string }>(
    tx,
    `select base.model from environment join unified_mapping base on base.team_id = environment.team_id
       where environment.id = :environmentId and base.environment_id is null and base.integration_name = :integrationName
     union
     select own.model from unified_mapping own
       where own.environment_id = :environmentId and own.integration_name = :integrationName
         and coalesce(own.integrated_account_id = :integratedAccountId, true)`,
    { environmentId, integratedAccountId: integratedAccountId ?? null, integrationName },
  )
  return found.map(({ model }) => model)
}

/**
 * Names of the models of which a mapping is stored for a team or its environment, by integration. Uses unified_mapping_of_team and
 * unified_mapping_of_environment.
 */
export async function selectModelsByIntegration(
  tx: Db,
  environmentId: string,
  integrationNames: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = await query<{ readonly integrationName: string; readonly models: readonly string[] }>(
    tx,
    `select mapping.integration_name, array_agg(distinct mapping.model) as models from (
       select base.integration_name, base.model
         from environment join unified_mapping base on base.team_id = environment.team_id
         where environment.id = :environmentId and base.environment_id is null and base.integration_name = any(:integrationNames)
       union all
       select own.integration_name, own.model from unified_mapping own
         where own.environment_id = :environmentId and own.integration_name = any(:integrationNames)
           and own.integrated_account_id is null
     ) mapping group by mapping.integration_name`,
    { environmentId, integrationNames },
  )
  return new Map(found.map(({ integrationName, models }) => [integrationName, models]))
}
