import type { Database } from '../../../../src/foundation/database/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'

/** How many triggers, and whose. */
export interface Population {
  readonly environments: number
  readonly accountsPerEnvironment: number
  readonly triggersPerAccount: number
}

/** When they fire, as SQL over `n`, the trigger's number: the expression and its next tick. */
export interface Schedules {
  readonly expression: string
  readonly next: string
}

/** A million triggers of 200 environments. */
export const MILLION: Population = { environments: 200, accountsPerEnvironment: 1_000, triggersPerAccount: 5 }

const QUARTER_SECONDS = 900
const OFFSET = `(n % ${QUARTER_SECONDS})`
const SINCE_HOUR = `extract(epoch from now() - date_trunc('hour', now()))`

/** Each every quarter of an hour, spread over its 900 seconds: of a million, 1 111 come due each second. */
export const SPREAD: Schedules = {
  expression: `format('%s %s,%s,%s,%s * * * *', ${OFFSET} % 60, ${OFFSET} / 60, ${OFFSET} / 60 + 15, ${OFFSET} / 60 + 30, ${OFFSET} / 60 + 45)`,
  next: `date_trunc('hour', now()) + make_interval(secs => ${OFFSET} + ${QUARTER_SECONDS} * (1 + floor((${SINCE_HOUR} - ${OFFSET}) / ${QUARTER_SECONDS})))`,
}

/** Once a year, on New Year's Day: none comes due while one looks. */
export const YEARLY: Schedules = {
  expression: `'0 0 1 1 *'`,
  next: `(date_trunc('year', now() at time zone 'UTC') + interval '1 year') at time zone 'UTC'`,
}

/** Every minute from a moment on, which is one; of so many triggers one, the others once a year. */
export function everyMinute(from: Date, oneIn = 1): Schedules {
  const isFrequent = `n % ${oneIn} = 0`
  return {
    expression: `case when ${isFrequent} then '* * * * *' else ${YEARLY.expression} end`,
    next: `case when ${isFrequent} then '${from.toISOString()}'::timestamptz else ${YEARLY.next} end`,
  }
}

/** All at one minute of the day, which is due from then on. */
export function atMinute(minute: Date): Schedules {
  const text = `${minute.getUTCMinutes()} ${minute.getUTCHours()} * * *`
  return { expression: `'${text}'`, next: `'${minute.toISOString()}'::timestamptz` }
}

/** The minute that has begun. */
export function thisMinute(): Date {
  return new Date(Math.floor(Date.now() / 60_000) * 60_000)
}

/** Environments inserted by one statement, which stays well below the limit on its time. */
const CHUNK = 10

/** Inserts triggers and what they refer to, in seconds for a million. They have no schedules yet. */
export async function insertTriggers(database: Database, population: Population): Promise<number> {
  const { environments, accountsPerEnvironment, triggersPerAccount } = population
  for (let done = 0; done < environments; done += CHUNK)
    await database.transaction(async (tx) => {
      await execute(tx, 'set local session_replication_role = replica') // no check of every reference
      await execute(tx, INSERT_CHUNK, {
        environments: Math.min(CHUNK, environments - done),
        accountsPerEnvironment,
        triggersPerAccount,
      })
    })
  for (const table of ['integrated_account', 'sync_job_cron_trigger'])
    await execute(database.pool, `vacuum analyze ${table}`)
  return environments * accountsPerEnvironment * triggersPerAccount
}

/** The webhooks ask for no events of runs: those are recorded where one does, at a cost of their own. */
const INSERT_CHUNK = `with tenant as materialized (
    select uuidv7() as environment_id, uuidv7() as installation_id, uuidv7() as job_id, uuidv7() as webhook_id
    from generate_series(1, :environments::integer)
  ), installation as (
    insert into environment_integration (environment_id, id, integration_id, show_in_catalog, is_enabled, override)
    select environment_id, installation_id, uuidv7(), true, true, '{}' from tenant
  ), job as (
    insert into sync_job (environment_id, id, label, integration_name, resources, args_schema)
    select environment_id, job_id, 'job', 'crm', '[{"resource": "contacts", "method": "list"}]', '{}' from tenant
  ), webhook as (
    insert into webhook (environment_id, id, target_url, event_types, is_active)
    select environment_id, webhook_id, 'https://receiver.example/', '{integrated_account:*}', true from tenant
  ), account as materialized (
    select tenant.*, uuidv7() as account_id from tenant cross join generate_series(1, :accountsPerEnvironment::integer)
  ), stored_account as (
    insert into integrated_account (environment_id, id, environment_integration_id, tenant_id, authentication_method,
      context, status, is_sandbox, region, object_store_context_fields)
    select environment_id, account_id, installation_id, 'acme', 'api_key', '{}', 'active', false, 'wnam', '{}' from account
  )
  insert into sync_job_cron_trigger (environment_id, id, sync_job_id, integrated_account_id, cron_expression, webhook_id, args)
  select environment_id, uuidv7(), job_id, account_id, '', webhook_id, '{}' from account cross join generate_series(1, :triggersPerAccount::integer)`

/** Gives every trigger a schedule in the place of the one it had, and forgets what was fired. */
export async function schedule(database: Database, schedules: Schedules): Promise<void> {
  await execute(database.pool, 'truncate trigger_schedule, missed_ticks, sync_job_run, run_queue, run_lease')
  await database.transaction(async (tx) => {
    await execute(tx, 'set local session_replication_role = replica')
    await execute(tx, 'set local statement_timeout = 0')
    await execute(
      tx,
      `insert into trigger_schedule (trigger_id, environment_id, shard, region, cron_expression, next_fire_at)
       select id, environment_id, get_byte(uuid_send(id), 15) % 64, 'wnam', ${schedules.expression}, ${schedules.next}
       from (select id, environment_id, row_number() over (order by id)::integer as n from sync_job_cron_trigger) numbered`,
    )
  })
  for (const statement of ['vacuum analyze trigger_schedule', 'checkpoint']) await execute(database.pool, statement)
}
