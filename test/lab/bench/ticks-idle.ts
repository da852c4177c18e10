import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../src/foundation/database/index.ts'
import { query } from '../../../src/foundation/database/index.ts'
import { startDurableDatabase } from '../../support/durable-database.ts'
import { Peer } from './support/peer.ts'
import { reportAtMost } from './support/report.ts'
import { insertTriggers, MILLION, schedule, YEARLY } from './support/trigger-population.ts'
import type { WorkerUse } from './support/worker-main.ts'

/** Start-up, and the first statistics of the server, are over by then. */
const SETTLE_MS = 15_000
const MEASURE_MS = 30_000
/** Reading the counter is one statement, at either end. */
const OWN_QUERIES = 1

/** What one worker costs while a million triggers wait and none is due. */
export async function run(): Promise<void> {
  await using durable = await startDurableDatabase()
  await insertTriggers(durable.database, MILLION)
  await schedule(durable.database, YEARLY)
  await using worker = new Peer<WorkerUse>('worker-main.ts', [durable.url])
  await worker.next()
  await sleep(SETTLE_MS)
  const before = await transactions(durable.database)
  await useOf(worker)
  await sleep(MEASURE_MS)
  const { cpuMs, heapMb } = await useOf(worker)
  const queries = (await transactions(durable.database)) - before - OWN_QUERIES
  reportAtMost('ticks-idle/cpu', (cpuMs / MEASURE_MS) * 100, '% of a core', 2)
  reportAtMost('ticks-idle/queries', queries / (MEASURE_MS / 1_000), 'queries/s', 5)
  reportAtMost('ticks-idle/heap', heapMb, 'MB', 200)
}

async function useOf(worker: Peer<WorkerUse>): Promise<WorkerUse> {
  const use = worker.next()
  worker.go()
  return await use
}

/** An idle worker's statements are transactions of their own. */
async function transactions(database: Database): Promise<number> {
  const [found] = await query<{ count: number }>(
    database.pool,
    'select xact_commit + xact_rollback as count from pg_stat_database where datname = current_database()',
  )
  return found?.count ?? Number.NaN
}
