import { newId } from '../../src/foundation/base/index.ts'
import type { Database } from '../../src/foundation/database/index.ts'
import { execute, jsonb } from '../../src/foundation/database/index.ts'
import type { Json, JsonObject } from '../../src/foundation/json/index.ts'

let names = 0

/** A new team with an environment; returns the environment's id. */
export async function seedEnvironment({ pool }: Database): Promise<string> {
  const [teamId, environmentId] = [newId(), newId()]
  await execute(pool, 'insert into team (id, name) values (:teamId, :id)', { teamId, id: 'team' })
  await execute(pool, 'insert into environment (id, team_id, name) values (:environmentId, :teamId, :id)', {
    environmentId,
    teamId,
    id: 'test',
  })
  return environmentId
}

/** An integration of that name, installed; returns the installation's id. */
export async function seedInstallation(
  { pool }: Database,
  environmentId: string,
  name: string,
  config: JsonObject,
  override: JsonObject = {},
): Promise<string> {
  const [integrationId, id] = [newId(), newId()]
  await execute(
    pool,
    `insert into integration (id, team_id, name, config) select :integrationId, team_id, :name, :config2::jsonb from environment where id = :environmentId`,
    { integrationId, name, config2: jsonb(config), environmentId },
  )
  await execute(
    pool,
    `insert into environment_integration (environment_id, id, integration_id, show_in_catalog, is_enabled, override)
     values (:environmentId, :id, :integrationId, false, true, :environmentId2::jsonb)`,
    { environmentId, id, integrationId, environmentId2: jsonb(override) },
  )
  return id
}

/** A webhook; returns its id. @param given.eventTypes default: it asks for all events */
export async function seedWebhook(
  { pool }: Database,
  environmentId: string,
  given: { readonly eventTypes?: readonly string[]; readonly isActive?: boolean } = {},
): Promise<string> {
  const { eventTypes = [], isActive = true } = given
  const id = newId()
  await execute(
    pool,
    `insert into webhook (environment_id, id, target_url, event_types, is_active)
     values (:environmentId, :id, 'https://app.example.com/hook', :eventTypes, :isActive)`,
    { environmentId, id, eventTypes, isActive },
  )
  return id
}

/** A trigger, and what it refers to unless a job or webhook is given; returns its id. */
export async function seedTrigger(
  database: Database,
  environmentId: string,
  given: { readonly webhookId?: string; readonly syncJobId?: string },
): Promise<string> {
  const { pool } = database
  const [id, accountId, syncJobId] = [newId(), newId(), given.syncJobId ?? newId()]
  const installationId = await seedInstallation(database, environmentId, `seed-${++names}`, {})
  await execute(
    pool,
    `insert into integrated_account (environment_id, id, environment_integration_id, tenant_id, authentication_method,
       context, status, is_sandbox, region, object_store_context_fields)
     values (:environmentId, :accountId, :installationId, 'tenant', 'api_key', '{}', 'active', false, 'wnam', '{}')`,
    { environmentId, accountId, installationId },
  )
  if (given.syncJobId === undefined)
    await execute(
      pool,
      `insert into sync_job (environment_id, id, label, integration_name, resources, args_schema)
       values (:environmentId, :syncJobId, 'job', 'x', '[]', '{}')`,
      { environmentId, syncJobId },
    )
  await execute(
    pool,
    `insert into sync_job_cron_trigger (environment_id, id, sync_job_id, integrated_account_id, cron_expression,
       daemon_group_key, webhook_id, args)
     values (:environmentId, :id, :syncJobId, :accountId, '@daily', :environmentId3, :environmentId2, '{}')`,
    {
      environmentId,
      id,
      syncJobId,
      accountId,
      environmentId3: given.webhookId === undefined ? 'group' : null,
      environmentId2: given.webhookId ?? null,
    },
  )
  return id
}

/** How many rows of the table have that id. */
export async function countRows({ pool }: Database, table: string, id: string): Promise<number> {
  return await execute(pool, `select 1 from ${table} where id = :id`, { id })
}

/** Reason and fields of the failure that rejects the promise. */
export async function rejectionOf(work: Promise<unknown>): Promise<{ reason: string; fields: Json[] }> {
  const error = await work.then(
    () => undefined,
    (thrown) => thrown,
  )
  return { reason: error?.reason, fields: error?.violations?.map(({ field }: { field: string }) => field) ?? [] }
}
