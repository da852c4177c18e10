import { newId } from '../../../../src/foundation/base/index.ts'
import { type Db, execute, jsonb } from '../../../../src/foundation/database/index.ts'
import {
  type Claim,
  insertWaiting,
  QUEUE_POLICY,
  Queue,
  type QueueTable,
  type SettledItem,
} from '../../../../src/foundation/queue/index.ts'
import { RunQueue } from '../../../../src/sync/runs/index.ts'
import { RUN_QUEUE, requestStop } from '../../../../src/sync/runs/sql/run-queue.ts'
import { clockedDatabase } from '../../../support/database.ts'
import { readOne } from '../../../support/tenant.ts'
import { describeQueue, type QueueUnderTest, type TestItem } from './queue-conformance.ts'

const { database, clock } = await clockedDatabase()
const ENVIRONMENT = newId()

// What a further kind of work would bring: its own record, no day, no exclusive key.
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

const PARCEL_QUEUE: QueueTable = {
  waiting: 'parcel_queue',
  lease: 'parcel_lease',
  id: 'parcel_id',
  key: 'target_id',
  payload: 'label',
}

interface ParcelPayload {
  readonly label: string
}

class ParcelQueue extends Queue<ParcelPayload> {
  async claim(claim: Claim) {
    return await database.transaction((tx) => this.lease(tx, claim))
  }

  protected override async recordSettled(tx: Db, settled: readonly SettledItem[]): Promise<void> {
    for (const { id, status, attempt, error } of settled)
      await execute(
        tx,
        'update parcel set status = :status, attempt = :attempt, error = :error2::jsonb where parcel_id = :id',
        { status, attempt, error2: error === null ? null : jsonb(error), id },
      )
  }
}

function keyOf(key: number): string {
  return `00000000-0000-7000-8000-${String(key).padStart(12, '0')}`
}

/** What every kind of work brings, as columns. */
function columnsOf({ group = 'webhook', region = 'wnam', availableAt }: TestItem) {
  const available_at = availableAt?.toISOString() ?? null
  return { environment_id: ENVIRONMENT, queue_group: group, region, available_at, attempt: 0 }
}

/** Runs `store` for fresh ids in a transaction of its own. */
async function enqueueWith(
  items: readonly TestItem[],
  store: (tx: Db, ids: readonly string[]) => Promise<void>,
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
      concurrencyKey: run.integratedAccountId,
      attempt: run.attempt,
      attemptBase: run.attemptsMax - QUEUE_POLICY.attemptsMax,
      expiresAt: run.leaseExpiresAt,
    }))
  const scheduledFor = clock.now()
  return {
    database,
    clock,
    keyOf,
    queue: bound(queue, claim),
    enqueue: (items, beforeCommit) =>
      enqueueWith(
        items,
        async (tx, ids) => {
          await execute(
            tx,
            `insert into sync_job_run (id, scheduled_for, environment_id, kind, sync_job_id, integrated_account_id, region,
               status, webhook_id, resources, args, error_handling, ignore_previous_run)
             select id, :scheduledFor, :ENVIRONMENT, 'manual', :syncJobId, account, 'wnam', 'created', :webhookId, '[]', '{}', 'ignore', false
             from unnest(:ids::uuid[], :ignorePreviousRun::uuid[]) v (id, account)`,
            {
              scheduledFor,
              ENVIRONMENT,
              syncJobId: newId(),
              webhookId: newId(),
              ids,
              ignorePreviousRun: items.map(({ key }) => keyOf(key)),
            },
          )
          const waiting = items.map((item, index) => ({
            ...columnsOf(item),
            run_id: ids[index] ?? '',
            integrated_account_id: keyOf(item.key),
            scheduled_for: scheduledFor.toISOString(),
            trigger_id: null,
          }))
          await insertWaiting(tx, RUN_QUEUE, waiting)
        },
        beforeCommit,
      ),
    statusOf: (id) => readOne(database, 'select status, attempt, error from sync_job_run where id = :id', { id }),
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
  const queue = new ParcelQueue({ database, policy: QUEUE_POLICY, random: () => 0.999 }, PARCEL_QUEUE)
  return {
    queue,
    database,
    clock,
    keyOf,
    enqueue: (items, beforeCommit) =>
      enqueueWith(
        items,
        async (tx, ids) => {
          await execute(tx, 'insert into parcel (parcel_id) select unnest(:ids::uuid[])', { ids })
          const waiting = items.map((item, index) => ({
            ...columnsOf(item),
            parcel_id: ids[index] ?? '',
            target_id: keyOf(item.key),
            label: 'a',
          }))
          await insertWaiting(tx, PARCEL_QUEUE, waiting)
        },
        beforeCommit,
      ),
    statusOf: (id) =>
      readOne(
        database,
        `select case when l.parcel_id is null then p.status else 'running' end as status,
           coalesce(l.attempt, p.attempt) as attempt, p.error
         from parcel p left join parcel_lease l using (parcel_id) where parcel_id = :id`,
        { id },
      ),
    requestStop: async (id) => {
      await execute(
        database.pool,
        'update parcel_lease set stop_requested_at = :stopRequestedAt where parcel_id = :id',
        {
          stopRequestedAt: clock.now(),
          id,
        },
      )
    },
  }
}

describeQueue('the queue of runs', openRuns, true)
describeQueue('a queue over other tables', openParcels, false)
