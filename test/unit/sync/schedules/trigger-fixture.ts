import { type Clock, newId } from '../../../../src/foundation/base/index.ts'
import type { Database } from '../../../../src/foundation/database/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import type { Lease } from '../../../../src/foundation/queue/index.ts'
import { type QueuedRun, RunQueue } from '../../../../src/sync/runs/index.ts'
import { type Run, WEBHOOK_QUEUE_GROUP } from '../../../../src/sync/runs/run.ts'
import { fireDue, type PassReport } from '../../../../src/sync/schedules/fire-due.ts'
import {
  CATCH_UP,
  createTrigger,
  type TriggerInput,
  type TriggerRecord,
  type UpdateDeps,
} from '../../../../src/sync/schedules/index.ts'
import { QueueDepthCache } from '../../../../src/sync/schedules/queue-depth-cache.ts'
import { ShardCursors } from '../../../../src/sync/schedules/shard-cursors.ts'
import type { Tenant } from '../../../support/tenant.ts'

/** A run as the tests look at it. */
export interface StoredRun {
  readonly id: string
  readonly scheduledFor: Date
  readonly status: Run['status']
  readonly reason: string | null
  readonly webhookId: string | null
  readonly groupKey: string | null
}

/** What a pass may be given. */
interface FireOptions {
  readonly regions?: readonly string[]
  readonly database?: Database
  readonly cursors?: ShardCursors
  readonly queue?: Pick<RunQueue, 'enqueueTicks' | 'countWaiting'>
}

/** Schedules of one tenant, in a database whose time the clock tells. */
export class TriggerFixture {
  readonly queue: RunQueue
  readonly deps: UpdateDeps
  readonly tenant: Tenant
  readonly #database: Database

  constructor(database: Database, tenant: Tenant, clock: Pick<Clock, 'now'>) {
    this.#database = database
    this.tenant = tenant
    this.queue = new RunQueue({ database, random: () => 0.5 })
    this.deps = {
      database,
      queue: this.queue,
      clock,
      minTickGapSeconds: 1,
      checkResources: async () => [],
      assertMapped: async () => undefined,
      resolveArgs: async (_, given) => given,
    }
  }

  /** A trigger of an account of its own, by default every ten seconds to the webhook. */
  async create(input: Partial<TriggerInput> & { readonly account?: number } = {}): Promise<TriggerRecord> {
    const { account = 0, ...given } = input
    const { environmentId, syncJobId, webhookId, accountIds } = this.tenant
    const defaults: TriggerInput = {
      syncJobId,
      integratedAccountId: accountIds[account] ?? '',
      cronExpression: '*/10 * * * * *',
      destination: { kind: 'webhook', webhookId },
    }
    return await this.#database.transaction((tx) =>
      createTrigger(this.deps, tx, environmentId, { ...defaults, ...given }),
    )
  }

  /** One pass of a new ticker, or of one with these cursors. */
  async fire(more: FireOptions = {}): Promise<PassReport> {
    const { queue } = this
    const depths = new QueueDepthCache(queue)
    const pass = { database: this.#database, queue, depths, catchUp: CATCH_UP }
    const { cursors = new ShardCursors(0), ...other } = more
    return await fireDue({ ...pass, ...other }, cursors)
  }

  /** Every run of a trigger, in the order of their ticks. */
  async runsOf(triggerId: string): Promise<readonly StoredRun[]> {
    return await query(
      this.#database.pool,
      `select id, scheduled_for as "scheduledFor", status, skip_reason as reason, webhook_id as "webhookId",
         daemon_group_key as "groupKey"
       from sync_job_run where trigger_id = :triggerId order by scheduled_for, kind`,
      { triggerId },
    )
  }

  /** The ticks of a trigger that have runs, as `12:00:10`. */
  async ticksOf(triggerId: string): Promise<readonly string[]> {
    return (await this.runsOf(triggerId)).map(({ scheduledFor }) => scheduledFor.toISOString().slice(11, 19))
  }

  /** The state of a schedule, with its moments as `12:00:10`. */
  async scheduleOf(triggerId: string): Promise<unknown> {
    const [found] = await query(
      this.#database.pool,
      `select to_char(next_fire_at at time zone 'UTC', 'HH24:MI:SS') as "nextFireAt",
         to_char(r.scheduled_for at time zone 'UTC', 'HH24:MI:SS') as "lastRunAt",
         (select count(*)::integer from sync_job_run x where x.trigger_id = s.trigger_id and x.status <> 'skipped') as fired,
         (select count(*)::integer from sync_job_run x where x.trigger_id = s.trigger_id and x.status = 'skipped') as skipped
       from trigger_schedule s
       left join sync_job_run r on r.id = s.last_run_id and r.scheduled_for = s.last_scheduled_for and r.status = s.last_run_status
       where s.trigger_id = :triggerId`,
      { triggerId },
    )
    return found
  }

  async claim(limit = 1): Promise<readonly Lease<QueuedRun>[]> {
    return await this.queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder: newId(), limit })
  }

  /** Completes every waiting run. */
  async completeWaiting(): Promise<void> {
    for (let claimed = await this.claim(100); claimed.length > 0; claimed = await this.claim(100))
      await this.queue.settle(claimed.map((run) => ({ ...run, outcome: { kind: 'completed' } })))
  }
}

/** Forgets every trigger and run, so that a pass concerns the triggers of its test alone. */
export async function clearTriggers(database: Database): Promise<void> {
  await execute(
    database.pool,
    `truncate sync_job_cron_trigger, trigger_schedule, missed_ticks, sync_job_run, run_queue, run_lease, run_checkpoint,
       previous_run`,
  )
}
