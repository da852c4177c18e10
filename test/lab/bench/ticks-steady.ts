import { setTimeout as sleep } from 'node:timers/promises'
import { query } from '../../../src/foundation/database/database.ts'
import { startDurableDatabase } from '../../support/durable-database.ts'
import { Peer } from './support/peer.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from './support/report.ts'
import { insertTriggers, MILLION, SPREAD, schedule } from './support/trigger-population.ts'
import type { WorkerUse } from './support/worker-main.ts'

const WORKERS = 2
/** Also what came due while the schedules were inserted is fired by then. */
const WARM_UP_MS = 15_000
/** `BENCH_SECONDS` for longer. */
const MEASURE_MS = Number(process.env.BENCH_SECONDS ?? 45) * 1_000
const DUE_PER_SECOND_MIN = 1_000

/**
 * A million triggers of which more than a thousand come due each second, under whole workers whose runs are over at once:
 * how late a tick's transaction begins, and how late a worker has taken its run up.
 */
export async function run(): Promise<void> {
  await using durable = await startDurableDatabase()
  await insertTriggers(durable.database, MILLION)
  await schedule(durable.database, SPREAD)
  await using fleet = new AsyncDisposableStack()
  const workers = Array.from({ length: WORKERS }, () => fleet.use(new Peer<WorkerUse>('worker-main.ts', [durable.url])))
  await Promise.all(workers.map((worker) => worker.next()))
  await sleep(WARM_UP_MS)
  const from = new Date()
  await sleep(MEASURE_MS)
  const until = new Date()
  await sleep(WARM_UP_MS / 3)
  const [late] = await query<Lateness>(durable.database.pool, LATENESS, { from, until })
  if (late === undefined) throw new Error('no ticks')
  reportAtLeast('ticks-steady/due', late.ticks / (MEASURE_MS / 1_000), 'ticks/s', DUE_PER_SECOND_MIN)
  reportAtMost('ticks-steady/lateness-p50', late.p50, 'ms', 200)
  reportAtMost('ticks-steady/lateness-p99', late.p99, 'ms', 1_000)
  reportBaseline('ticks-steady/started-p50', late.startedP50, 'ms')
  reportBaseline('ticks-steady/started-p99', late.startedP99, 'ms')
}

interface Lateness {
  readonly ticks: number
  readonly p50: number
  readonly p99: number
  readonly startedP50: number
  readonly startedP99: number
}

const PERCENTILE = (share: number, moment: string) =>
  `1000 * percentile_cont(${share}) within group (order by extract(epoch from ${moment} - scheduled_for))`
const LATENESS = `select count(*) as ticks,
    ${PERCENTILE(0.5, 'created_at')} as p50, ${PERCENTILE(0.99, 'created_at')} as p99,
    ${PERCENTILE(0.5, 'started_at')} as "startedP50", ${PERCENTILE(0.99, 'started_at')} as "startedP99"
  from sync_job_run where scheduled_for >= :from and scheduled_for < :until`
