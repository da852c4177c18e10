import { newId } from '../../src/base/index.ts'
import { execute, jsonb } from '../../src/database/database.ts'
import type { Tx } from '../../src/database/index.ts'
import { QUEUE_POLICY, RunQueue } from '../../src/runs/index.ts'
import { type Claim, TableQueue } from '../../src/runs/queue.ts'
import { enqueueItems, RUN_QUEUE, requestStop } from '../../src/runs/sql/queue.ts'
import { queueSql } from '../../src/runs/sql/queue-table.ts'
import { clockedDatabase } from '../support/database.ts'
import { readOne } from '../support/tenant.ts'
import { describeQueue, type QueueUnderTest, type TestItem } from './queue-conformance.ts'

const { database, clock } = await clockedDatabase()
const ENVIRONMENT = newId()

// What a further kind of work would bring: its own record, no day, no exclusive flow.
await execute(
  database.pool,
  `create table parcel (parcel_id uuid primary key, status text not null default 'created',
     attempt integer not null default 0, error jsonb)`,
)
await execute(
  database.pool,
  `create table parcel_queue (parcel_id uuid primary key, environment_id uuid, target_id uuid, region text,
     queue_group text, label text, fair_rank bigint, available_at timestamptz(3), attempt integer, attempt_base integer)`,
)
await execute(
  database.pool,
  `create table parcel_lease (parcel_id uuid primary key, environment_id uuid, target_id uuid, region text,
     queue_group text, label text, lease_id uuid, holder text, attempt integer, attempt_base integer, claimed_at timestamptz(3),
     expires_at timestamptz(3), stop_requested_at timestamptz(3))`,
)

const PARCEL_QUEUE = queueSql<{ readonly label: string }>({
  waiting: 'parcel_queue',
  lease: 'parcel_lease',
  item: 'parcel_id',
  flow: 'target_id',
  carried: [{ column: 'label', field: 'label', type: 'text' }],
})

function flowId(flow: number): string {
  return `00000000-0000-7000-8000-${String(flow).padStart(12, '0')}`
}

function waitingOf(item: TestItem, id: string) {
  const { flow, group = 'webhook', region = 'wnam', availableAt } = item
  const common = { id, environmentId: ENVIRONMENT, flowId: flowId(flow), group, region }
  return availableAt === undefined ? common : { ...common, availableAt }
}

/** Runs `store` for fresh ids in a transaction of its own. */
async function enqueueWith(
  items: readonly TestItem[],
  store: (tx: Tx, ids: readonly string[]) => Promise<void>,
  beforeCommit?: () => Promise<void>,
): Promise<readonly string[]> {
  const ids = items.map(() => newId())
  await database.transaction(async (tx) => {
    await store(tx, ids)
    await beforeCommit?.()
  })
  return ids
}

async function openRuns(): Promise<QueueUnderTest> {
  await execute(database.pool, 'truncate sync_job_run, run_queue, run_lease')
  await clock.stop()
  const queue = new RunQueue({ database, random: () => 0.999 })
  const claim = async (request: Claim) =>
    (await queue.claim(request)).map((run) => ({
      id: run.id,
      leaseId: run.leaseId,
      environmentId: run.environmentId,
      flowId: run.integratedAccountId,
      attempt: run.attempt,
      attemptBase: run.attemptsMax - QUEUE_POLICY.attemptsMax,
      expiresAt: run.leaseExpiresAt,
    }))
  const scheduledFor = clock.now()
  return {
    database,
    clock,
    flowId,
    queue: bound(queue, claim),
    enqueue: (items, beforeCommit) =>
      enqueueWith(
        items,
        async (tx, ids) => {
          await execute(
            tx,
            `insert into sync_job_run (id, scheduled_for, environment_id, kind, sync_job_id, integrated_account_id, region,
               status, webhook_id, resources, args, error_handling, ignore_previous_run)
             select id, ?, ?, 'manual', ?, flow, 'wnam', 'created', ?, '[]', '{}', 'ignore', false
             from unnest(?::uuid[], ?::uuid[]) v (id, flow)`,
            [scheduledFor, ENVIRONMENT, newId(), newId(), ids, items.map(({ flow }) => flowId(flow))],
          )
          const carried = { scheduledFor, triggerId: null }
          const waiting = items.map((item, place) => ({ ...waitingOf(item, ids[place] ?? ''), ...carried }))
          await enqueueItems(tx, RUN_QUEUE, waiting)
        },
        beforeCommit,
      ),
    statusOf: (id) => readOne(database, 'select status, attempt, error from sync_job_run where id = ?', [id]),
    requestStop: async (id) => {
      await requestStop(database.pool, ENVIRONMENT, id)
    },
  }
}

/** The seam of a queue of runs, with another claim. */
function bound(queue: RunQueue, claim: QueueUnderTest['queue']['claim']): QueueUnderTest['queue'] {
  return {
    claim,
    heartbeat: queue.heartbeat.bind(queue),
    settle: queue.settle.bind(queue),
    reap: queue.reap.bind(queue),
  }
}

async function openParcels(): Promise<QueueUnderTest> {
  await execute(database.pool, 'truncate parcel, parcel_queue, parcel_lease')
  await clock.stop()
  const queue = new TableQueue({
    database,
    sql: PARCEL_QUEUE,
    policy: QUEUE_POLICY,
    random: () => 0.999,
    findEndings: async () => new Map(),
    conclude: async (tx, settled) => {
      for (const { id, status, attempt, error } of settled)
        await execute(tx, 'update parcel set status = ?, attempt = ?, error = ?::jsonb where parcel_id = ?', [
          status,
          attempt,
          error === null ? null : jsonb(error),
          id,
        ])
    },
  })
  return {
    queue,
    database,
    clock,
    flowId,
    enqueue: (items, beforeCommit) =>
      enqueueWith(
        items,
        async (tx, ids) => {
          await execute(tx, 'insert into parcel (parcel_id) select unnest(?::uuid[])', [ids])
          await queue.enqueue(
            tx,
            items.map((item, place) => ({ ...waitingOf(item, ids[place] ?? ''), label: 'a' })),
          )
        },
        beforeCommit,
      ),
    statusOf: (id) =>
      readOne(
        database,
        `select case when l.parcel_id is null then p.status else 'running' end as status,
           coalesce(l.attempt, p.attempt) as attempt, p.error
         from parcel p left join parcel_lease l using (parcel_id) where parcel_id = ?`,
        [id],
      ),
    requestStop: async (id) => {
      await execute(database.pool, 'update parcel_lease set stop_requested_at = ? where parcel_id = ?', [
        clock.now(),
        id,
      ])
    },
  }
}

describeQueue('the queue of runs', openRuns, true)
describeQueue('a queue over other tables', openParcels, false)
