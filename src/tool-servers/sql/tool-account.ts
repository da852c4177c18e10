import type { AccountStatus } from '../../accounts/index.ts'
import { query, type Tx } from '../../database/index.ts'
import type { DefinitionVersions } from '../../integrations/index.ts'
import type { ToolServerRecord } from './tool-server.ts'

/** Whose accounts a tool server calls: one account, or those of a tenant. */
export type ToolAccountScope = Pick<ToolServerRecord, 'environmentId' | 'integratedAccountId' | 'tenantId'>

/** An account as far as tools are derived from it: equal in two reads when the tools derived from it are the same. */
export interface ToolAccount extends DefinitionVersions {
  readonly id: string
  readonly environmentId: string
  readonly environmentIntegrationId: string
  readonly status: AccountStatus
  /** A hash of the ids and versions of all stored models and mappings that may hold for the account; null: there are none. */
  readonly mappings: string | null
}

/** Accounts of one tenant that a tool server calls at most. */
const ACCOUNTS_MAX = 50
const COLUMNS = 'id, environment_id, environment_integration_id, status'

/**
 * The accounts of each scope, in one statement, newest first. The limit of the scopes leaves nothing out: with it a plan for any
 * parameters expects one scope instead of ten, so that PostgreSQL keeps it and does not plan each execution, which takes ten times
 * as long as executing. Uses the primary keys, integrated_account_of_tenant,
 * unified_model_name, unified_mapping_of_team, unified_mapping_of_environment and unified_mapping_of_account.
 */
export async function selectToolAccounts(
  tx: Tx,
  scopes: readonly ToolAccountScope[],
): Promise<readonly (readonly ToolAccount[])[]> {
  const rows = await query<ToolAccount & { readonly scope: number }>(
    tx,
    `select wanted.scope::int, account.id, account.environment_id as "environmentId",
       account.environment_integration_id as "environmentIntegrationId", account.status,
       integration.id as "integrationId", integration.name as "integrationName",
       integration.version as "integrationVersion", installation.version as "installationVersion",
       installation.is_enabled as "isEnabled", stored.versions as mappings
     from (
       select * from unnest(:environmentIds::uuid[], :accountIds::uuid[], :tenantIds::text[])
         with ordinality as given (environment_id, account_id, tenant_id, scope) limit :count
     ) wanted
     cross join lateral (
       select ${COLUMNS} from integrated_account
         where environment_id = wanted.environment_id and id = wanted.account_id
       union all
       (select ${COLUMNS} from integrated_account
         where environment_id = wanted.environment_id and tenant_id = wanted.tenant_id order by id desc limit ${ACCOUNTS_MAX})
     ) account
     join environment on environment.id = account.environment_id
     join environment_integration installation on installation.environment_id = account.environment_id
       and installation.id = account.environment_integration_id
     join integration on integration.id = installation.integration_id
     cross join lateral (
       select md5(string_agg(id || ' ' || version, ',' order by id)) as versions from (
         select id, version from unified_model where team_id = environment.team_id
         union all
         select id, version from unified_mapping
           where team_id = environment.team_id and environment_id is null and integration_name = integration.name
         union all
         select id, version from unified_mapping where environment_id = account.environment_id
           and integrated_account_id is null and integration_name = integration.name
         union all
         select id, version from unified_mapping where environment_id = account.environment_id
           and integrated_account_id = account.id and integration_name = integration.name
       ) layers
     ) stored
     order by wanted.scope, account.id desc`,
    {
      environmentIds: scopes.map(({ environmentId }) => environmentId),
      accountIds: scopes.map(({ integratedAccountId }) => integratedAccountId),
      tenantIds: scopes.map(({ tenantId }) => tenantId),
      count: scopes.length,
    },
  )
  const byScope = Map.groupBy(rows, ({ scope }) => scope)
  return scopes.map((_, at) => byScope.get(at + 1)?.map(({ scope: _number, ...source }) => source) ?? [])
}
