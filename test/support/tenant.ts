import { newId } from '../../src/foundation/base/index.ts'
import type { Database } from '../../src/foundation/database/index.ts'
import { execute, jsonb, query } from '../../src/foundation/database/index.ts'

/** One environment with a job, an installation, a webhook and any number of accounts. */
export interface Tenant {
  readonly environmentId: string
  readonly syncJobId: string
  readonly installationId: string
  readonly webhookId: string
  readonly accountIds: readonly string[]
}

const INTEGRATION_NAME = 'github'

/** Fills the tables that runs refer to. */
export async function createTenant(database: Database, accounts = 1): Promise<Tenant> {
  const [teamId, environmentId, integrationId, installationId] = [newId(), newId(), newId(), newId()]
  const [syncJobId, webhookId] = [newId(), newId()]
  const accountIds = Array.from({ length: accounts }, () => newId())
  const insert = (sql: string, parameters: Readonly<Record<string, string | readonly string[]>>) =>
    execute(database.pool, sql, parameters)
  await insert(`insert into team (id, name) values (:teamId, 'team')`, { teamId })
  await insert(`insert into environment (id, team_id, name) values (:environmentId, :teamId, 'production')`, {
    environmentId,
    teamId,
  })
  await insert(`insert into integration (id, team_id, name, config) values (:integrationId, :teamId, :name, '{}')`, {
    integrationId,
    teamId,
    name: INTEGRATION_NAME,
  })
  await insert(
    `insert into environment_integration (environment_id, id, integration_id, show_in_catalog, is_enabled, override)
     values (:environmentId, :installationId, :integrationId, true, true, '{}')`,
    { environmentId, installationId, integrationId },
  )
  await insert(
    `insert into integrated_account (environment_id, id, environment_integration_id, tenant_id, authentication_method,
       context, status, is_sandbox, region, object_store_context_fields)
     select :environmentId, id, :installationId, 'acme', 'api_key', '{}', 'active', false, 'wnam', '{}' from unnest(:accountIds::uuid[]) id`,
    { environmentId, installationId, accountIds },
  )
  await insert(
    `insert into sync_job (environment_id, id, label, integration_name, resources, args_schema)
     values (:environmentId, :syncJobId, 'job', :name, :resources::jsonb, '{}')`,
    { environmentId, syncJobId, name: INTEGRATION_NAME, resources: jsonb([{ resource: 'repos', method: 'list' }]) },
  )
  await insert(
    `insert into webhook (environment_id, id, target_url, event_types, is_active)
     values (:environmentId, :webhookId, 'https://receiver.example/', '{}', true)`,
    { environmentId, webhookId },
  )
  return { environmentId, syncJobId, installationId, webhookId, accountIds }
}

/** One value of one row, for assertions. */
export async function readOne<Row>(
  database: Database,
  sql: string,
  parameters: Readonly<Record<string, string>> = {},
): Promise<Row> {
  const [found] = await query<Row>(database.pool, sql, parameters)
  if (found === undefined) throw new Error(`no row: ${sql}`)
  return found
}
