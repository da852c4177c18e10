import { type Db, query } from '../../../foundation/database/index.ts'
import type { AccountStatus } from '../../../platform/accounts/index.ts'
import type { DefinitionVersions } from '../../../platform/integrations/index.ts'
import type { ToolServerRecord } from './tool-server.ts'

/** Whose accounts a tool server calls: one account, or those of a tenant, of some integrations or of all (none given). */
export type ToolAccountScope = Pick<
  ToolServerRecord,
  'environmentId' | 'integratedAccountId' | 'tenantId' | 'integrations'
>

/** An account as far as tools are derived from it: equal in two reads when the tools derived from it are the same. */
export interface ToolAccount extends DefinitionVersions {
  readonly id: string
  readonly environmentId: string
  readonly environmentIntegrationId: string
  readonly status: AccountStatus
  /** A hash of the ids and versions of all stored models and mappings that may hold for the account; null: there are none. */
  readonly mappings: string | null
}

/** Accounts of one tenant that a tool server calls at most: the newest ones. */
export const TOOL_ACCOUNTS_MAX = 50
const COLUMNS = `account.id, account.environment_id, account.environment_integration_id, account.status, installation.version as
  installation_version, installation.is_enabled, integration.id as integration_id, integration.name as integration_name,
  integration.version as integration_version`
const ACCOUNTS = `integrated_account account
  join environment_integration installation on installation.environment_id = account.environment_id
    and installation.id = account.environment_integration_id and not installation.is_hidden
  join integration on integration.id = installation.integration_id`

/**
 * The accounts of each scope, in one statement, newest first; of a tenant one more than a server calls, where there are more. The
 * integrations of a scope restrict before the limit does: what a server offers does not depend on accounts of others. Models and
 * mappings are hashed once for all accounts of an integration.
 *
 * The limit of the scopes leaves nothing out: with it a plan for any parameters expects one scope instead of ten, so that
 * PostgreSQL keeps it and does not plan each execution, which takes ten times as long as executing. Uses the primary keys,
 * integrated_account_of_tenant, unified_model_name, unified_mapping_of_team, unified_mapping_of_environment and
 * unified_mapping_of_account.
 */
export async function selectToolAccounts(
  tx: Db,
  scopes: readonly ToolAccountScope[],
): Promise<readonly (readonly ToolAccount[])[]> {
  const rows = await query<ToolAccount & { readonly scope: number }>(
    tx,
    `with found as materialized (
       select wanted.scope, environment.team_id, account.*
       from (
         select * from unnest(:environmentIds::uuid[], :accountIds::uuid[], :tenantIds::text[], :integrations::jsonb[])
           with ordinality as given (environment_id, account_id, tenant_id, integrations, scope) limit :count
       ) wanted
       cross join lateral (
         select ${COLUMNS} from ${ACCOUNTS}
           where account.environment_id = wanted.environment_id and account.id = wanted.account_id
         union all
         (select ${COLUMNS} from ${ACCOUNTS}
           where account.environment_id = wanted.environment_id and account.tenant_id = wanted.tenant_id
             and (wanted.integrations = '[]' or jsonb_exists(wanted.integrations, integration.name))
           order by account.id desc limit ${TOOL_ACCOUNTS_MAX + 1})
       ) account
       join environment on environment.id = account.environment_id
     ), shared as materialized (
       select part.environment_id, part.integration_name, layers.versions
       from (select distinct team_id, environment_id, integration_name from found) part
       cross join lateral (
         select string_agg(id || ' ' || version, ',' order by id) as versions from (
           select id, version from unified_model where team_id = part.team_id
           union all
           select id, version from unified_mapping
             where team_id = part.team_id and environment_id is null and integration_name = part.integration_name
           union all
           select id, version from unified_mapping where environment_id = part.environment_id
             and integrated_account_id is null and integration_name = part.integration_name
         ) stored
       ) layers
     )
     select found.scope::int, found.id, found.environment_id,
       found.environment_integration_id, found.status, found.integration_id, found.integration_name,
       found.integration_version, found.installation_version,
       found.is_enabled, md5(nullif(concat_ws(';', shared.versions, own.versions), '')) as mappings
     from found
     join shared on shared.environment_id = found.environment_id and shared.integration_name = found.integration_name
     cross join lateral (
       select string_agg(id || ' ' || version, ',' order by id) as versions from unified_mapping
       where environment_id = found.environment_id and integrated_account_id = found.id
         and integration_name = found.integration_name
     ) own
     order by found.scope, found.id desc`,
    {
      environmentIds: scopes.map(({ environmentId }) => environmentId),
      accountIds: scopes.map(({ integratedAccountId }) => integratedAccountId),
      tenantIds: scopes.map(({ tenantId }) => tenantId),
      integrations: scopes.map(({ integrations }) => JSON.stringify(integrations)),
      count: scopes.length,
    },
  )
  const byScope = Map.groupBy(rows, ({ scope }) => scope)
  return scopes.map((_, at) => byScope.get(at + 1)?.map(({ scope: _number, ...source }) => source) ?? [])
}
