import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../src/foundation/base/index.ts'
import { execute, queryOne } from '../../src/foundation/database/index.ts'
import { claimItems } from '../../src/foundation/queue/sql/queue.ts'
import { claimReauthorizationWarnings } from '../../src/platform/accounts/sql/account-state.ts'
import { hideInstallation, hideInstallationsOf } from '../../src/platform/integrations/sql/installations.ts'
import { markSilent } from '../../src/platform/subscriptions/sql/activity.ts'
import { RUN_QUEUE } from '../../src/sync/runs/sql/run-queue.ts'
import { claimDueTriggers } from '../../src/sync/schedules/sql/due-trigger.ts'
import { testDatabase } from '../support/database.ts'
import { claimOf, DUE_TABLES } from '../support/due-tables.ts'
import { seedEnvironment, seedTrigger } from '../support/seed-rows.ts'

const SRC = join(import.meta.dirname, '../../src')
const { database } = await testDatabase()
const tx = database.pool

interface Owner {
  readonly environmentId: string
  /** Of the installation. */
  readonly id: string
  readonly integrationId: string
}

/** How a deletion of many accounts hides them in its first transaction. */
const DELETIONS: Readonly<Record<string, (owner: Owner) => Promise<unknown>>> = {
  installation: (owner) => hideInstallation(tx, owner),
  environment: ({ environmentId }) => hideInstallationsOf(tx, 'environment_id', [environmentId]),
  integration: ({ integrationId }) => hideInstallationsOf(tx, 'integration_id', [integrationId]),
}

const WHOLE_SHARD = { at: new Date(0), triggerId: '00000000-0000-0000-0000-000000000000' }
const SOON = new Date(Date.now() + 3_600_000)

/** Claims of what waits for an account, by the file of the statement. */
const CLAIMS: Readonly<Record<string, () => Promise<readonly unknown[]>>> = {
  'platform/accounts/sql/account-state.ts': () => claimReauthorizationWarnings(tx, { regions: undefined, limit: 16 }),
  'platform/subscriptions/sql/activity.ts': () => database.transaction((tx) => markSilent(tx, 16)),
  'foundation/queue/sql/queue.ts': () =>
    claimItems(tx, RUN_QUEUE, {
      group: 'webhook',
      regions: null,
      leaseIds: [newId()],
      heldMax: null,
      holder: 'worker',
      leaseMs: 60_000,
    }),
  'sync/schedules/sql/due-trigger.ts': async () =>
    (await claimDueTriggers(tx, 0, WHOLE_SHARD, SOON, null, 16)).filter(({ isBeingDeleted }) => !isBeingDeleted),
  ...Object.fromEntries(Object.entries(DUE_TABLES).map(([path, table]) => [path, () => claimOf(tx, table)])),
}

/** Claims that take what belongs to a deletion, and why. */
const ALSO_DELETED: Readonly<Record<string, string>> = {
  'platform/accounts/sql/account-history.ts': 'deletes',
  'platform/accounts/sql/account-removal.ts': 'the work of a deletion itself',
  'foundation/queue/sql/due.ts': 'the statement of every `DueTable`',
  'platform/outbox/sql.ts': 'what happened before is delivered; the webhooks of a deleted environment are off',
  'webhooks/inbound/sql/maintenance.ts': 'deletes',
  'webhooks/inbound/sql/sync-hint.ts': 'takes the hint away: its triggers are not found, so that no run starts',
  'platform/objects/sql.ts': 'moves the bytes of a value that the deletion will delete, or deletes them',
  'foundation/queue/sql/round-robin-claim.ts': 'deliveries of events before; a received webhook ends with the reason',
  'foundation/secrets/sql/data-key.ts': 'keys of owners, which a deletion needs too',
  'foundation/secrets/sql/rotation.ts': 'keys of owners, which a deletion needs too',
  'foundation/queue/tasks/sql.ts': 'deletions are tasks',
  'platform/figures/sql.ts': 'counts what the deletion deletes',
  'platform/tenancy/sql/api-tokens.ts': 'deletes',
  'platform/tenancy/sql/idempotency-keys.ts': 'deletes',
}

let owner: Owner

beforeEach(async () => {
  await execute(tx, 'truncate team, run_queue, run_lease cascade')
  const environmentId = await seedEnvironment(database)
  const triggerId = await seedTrigger(database, environmentId, {})
  await execute(
    tx,
    `update integrated_account set status = 'connecting', reauthorization_warning_at = now() - interval '1 hour'`,
  )
  const found = await queryOne<Owner & { readonly accountId: string; readonly region: string }>(
    tx,
    `select account.environment_id as "environmentId", installation.id, installation.integration_id as "integrationId",
       account.id as "accountId", account.region
     from integrated_account account join environment_integration installation on installation.id = environment_integration_id
     where account.environment_id = :environmentId`,
    { environmentId },
  )
  if (found === undefined) throw new Error('there is no account')
  const { accountId, region } = found
  owner = found
  const account = { environmentId, accountId }
  await execute(
    tx,
    `insert into account_token (environment_id, integrated_account_id, region, version, expires_at, due_at)
     values (:environmentId, :accountId, :region, 1, now(), now() - interval '1 s')`,
    { ...account, region },
  )
  await execute(
    tx,
    `insert into webhook_subscription (environment_id, integrated_account_id, event, region, status, due_at)
     values (:environmentId, :accountId, '', :region, 'creating', now() - interval '1 s')`,
    { ...account, region },
  )
  await execute(
    tx,
    `insert into webhook_activity (environment_id, integrated_account_id, first_inbound_at, last_inbound_at, inbound_count, silent_at)
     values (:environmentId, :accountId, now(), now(), 1, now() - interval '1 s')`,
    account,
  )
  await execute(
    tx,
    `insert into run_queue (run_id, scheduled_for, environment_id, integrated_account_id, region, queue_group, available_at,
       fair_rank, attempt)
     values (:runId, now(), :environmentId, :accountId, :region, 'webhook', now() - interval '1 s', 0, 0)`,
    { ...account, region, runId: newId() },
  )
  await execute(
    tx,
    `insert into trigger_schedule (trigger_id, environment_id, shard, region, cron_expression, next_fire_at)
     values (:triggerId, :environmentId, 0, :region, '@daily', now() - interval '1 s')`,
    { triggerId, environmentId, region },
  )
})

describe.each(Object.entries(CLAIMS).filter(([path]) => ALSO_DELETED[path] === undefined))('%s', (path, claim) => {
  it.each(Object.entries(DELETIONS))('claims nothing of an account whose %s is being deleted', async (_, hide) => {
    if (path === 'platform/subscriptions/sql/activity.ts')
      await execute(tx, `update integrated_account set status = 'active'`)
    await hide(owner)
    expect(await claim()).toEqual([])
  })

  it('claims what is due of one that stays', async () => {
    if (path === 'platform/subscriptions/sql/activity.ts')
      await execute(tx, `update integrated_account set status = 'active'`)
    expect(await claim()).not.toEqual([])
  })
})

it('every claim is among them, or takes what is deleted for a reason', () => {
  const claims = globSync('**/{sql/*,sql}.ts', { cwd: SRC }).filter((path) =>
    /skip locked|: DueTable</.test(readFileSync(join(SRC, path), 'utf8')),
  )
  expect(claims.filter((path) => CLAIMS[path] === undefined && ALSO_DELETED[path] === undefined)).toEqual([])
  expect(Object.keys(ALSO_DELETED).filter((path) => !claims.includes(path))).toEqual([])
})
