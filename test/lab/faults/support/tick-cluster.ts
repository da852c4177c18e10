import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '../../../../src/foundation/base/index.ts'
import {
  Database,
  type EmbeddedServer,
  execute,
  migrate,
  query,
  startEmbeddedServer,
} from '../../../../src/foundation/database/index.ts'
import { isAlive } from '../../../../src/foundation/database/postmaster.ts'
import { nextTicks } from '../../../../src/sync/schedules/cron-expression.ts'
import { shardOf } from '../../../../src/sync/schedules/shard-cursors.ts'
import { createTenant, readOne } from '../../../support/tenant.ts'

const WORKER = join(import.meta.dirname, 'tick-worker.ts')
const EXIT_POLL_MS = 10

/** A trigger of the scenario, and the moment after which it owes its ticks. */
export interface ClusterTrigger {
  readonly id: string
  readonly expression: string
  readonly from: Date
}

/** A durable PostgreSQL of its own, and worker processes on it that can be killed. */
export class TickCluster implements AsyncDisposable {
  readonly database: Database
  #server: EmbeddedServer
  readonly #url: string
  readonly #dataDir: string
  readonly #workers: ChildProcess[] = []

  private constructor(server: EmbeddedServer, dataDir: string) {
    this.#server = server
    this.#dataDir = dataDir
    this.#url = `postgres://${server.user}@/postgres?host=${encodeURIComponent(server.host)}&port=${server.port}`
    this.database = new Database({ target: { kind: 'url', url: this.#url } })
  }

  static async start(): Promise<TickCluster> {
    const dataDir = mkdtempSync(join(tmpdir(), 'patchbay-faults-'))
    chmodSync(dataDir, 0o711) // root's servers run under another uid, which must be able to walk in
    const cluster = new TickCluster(await startEmbeddedServer({ dataDir }), dataDir)
    await migrate(cluster.database)
    return cluster
  }

  /** Creates triggers, each with an account of its own, all owing their ticks from now. */
  async createTriggers(expressions: readonly string[]): Promise<readonly ClusterTrigger[]> {
    const { environmentId, syncJobId, webhookId, accountIds } = await createTenant(this.database, expressions.length)
    const { now } = await readOne<{ now: Date }>(this.database, 'select clock_timestamp()::timestamptz(3) as now')
    const triggers = expressions.map((expression) => ({ id: newId(), expression, from: now }))
    const ids = triggers.map(({ id }) => id)
    await execute(
      this.database.pool,
      `insert into sync_job_cron_trigger (environment_id, id, sync_job_id, integrated_account_id, cron_expression, webhook_id, args)
       select :environmentId, v.id, :syncJobId, v.account, v.expression, :webhookId, '{}' from unnest(:ids::uuid[], :accountIds::uuid[], :expressions::text[]) v (id, account, expression)`,
      { environmentId, syncJobId, webhookId, ids, accountIds, expressions },
    )
    await execute(
      this.database.pool,
      `insert into trigger_schedule (trigger_id, environment_id, shard, region, cron_expression, next_fire_at)
       select v.id, :environmentId, v.shard, 'wnam', v.expression, v.next
       from unnest(:ids::uuid[], :nextFireAt2::smallint[], :expressions::text[], :nextFireAt::timestamptz[]) v (id, shard, expression, next)`,
      {
        environmentId,
        ids,
        nextFireAt2: ids.map(shardOf),
        expressions,
        nextFireAt: triggers.map(({ expression, from }) => nextTicks(expression, from, 1)[0] ?? from),
      },
    )
    return triggers
  }

  /** Starts one more worker and waits until it works. */
  async addWorker(): Promise<void> {
    const worker = spawn(process.execPath, [WORKER, this.#url], { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#workers.push(worker)
    await once(worker.stdout, 'data')
  }

  /** Kills a worker with SIGKILL: it can do nothing about it. */
  async killWorker(place: number): Promise<void> {
    const [worker] = this.#workers.splice(place, 1)
    if (worker === undefined) throw new Error(`no worker ${place}`)
    const gone = once(worker, 'exit')
    worker.kill('SIGKILL')
    await gone
  }

  get workers(): number {
    return this.#workers.length
  }

  /**
   * Stops PostgreSQL at once, as a crash would, and starts it again after a while.
   *
   * @returns when it answers again
   */
  async crashServer(downMs: number): Promise<Date> {
    process.kill(this.#server.pid, 'SIGQUIT')
    while (isAlive(this.#server.pid)) await sleep(EXIT_POLL_MS)
    await sleep(downMs)
    this.#server = await startEmbeddedServer({ dataDir: this.#dataDir })
    return new Date()
  }

  async stopWorkers(): Promise<void> {
    const stopping = this.#workers.splice(0).map(async (worker) => {
      const gone = once(worker, 'exit')
      worker.kill('SIGTERM')
      await gone
    })
    await Promise.all(stopping)
  }

  /** Every run a tick made, as `[trigger id, tick, lateness in ms]`. */
  async readRuns(): Promise<readonly (readonly [string, Date, number])[]> {
    const found = await query<{ id: string; at: Date; late: number }>(
      this.database.pool,
      `select trigger_id as id, scheduled_for as at, extract(epoch from created_at - scheduled_for)::float8 * 1000 as late
       from sync_job_run where kind = 'cron'`,
    )
    return found.map(({ id, at, late }) => [id, at, late])
  }

  /** How many schedules still owe a tick of before the moment. */
  async countDueBefore(moment: Date): Promise<number> {
    const sql = 'select count(*) as count from trigger_schedule where next_fire_at < :moment'
    return (await query<{ count: number }>(this.database.pool, sql, { moment }))[0]?.count ?? Number.NaN
  }

  /** When the first run after the moment was made. */
  async firstRunAfter(moment: Date): Promise<Date | undefined> {
    const sql = 'select min(created_at) as first from sync_job_run where created_at >= :moment'
    return (await query<{ first: Date | null }>(this.database.pool, sql, { moment }))[0]?.first ?? undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const worker of this.#workers) worker.kill('SIGKILL')
    await this.database[Symbol.asyncDispose]()
    await this.#server.stop()
    rmSync(this.#dataDir, { recursive: true, force: true })
  }
}
