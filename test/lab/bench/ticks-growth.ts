import { systemClock } from '../../../src/foundation/base/index.ts'
import { Database, execute, query } from '../../../src/foundation/database/index.ts'
import { silentLogger } from '../../../src/foundation/telemetry/logger.ts'
import { RunQueue } from '../../../src/sync/runs/index.ts'
import { Ticker } from '../../../src/sync/schedules/index.ts'
import { DatabaseClock } from '../../support/database-clock.ts'
import { startDurableDatabase } from '../../support/durable-database.ts'
import { reportAtMost, reportBaseline } from './support/report.ts'
import { everyMinute, insertTriggers, type Population, schedule, thisMinute } from './support/trigger-population.ts'

const SIZES: readonly Population[] = [1, 10, 100, 1_000].map((accountsPerEnvironment) => {
  return { environments: 200, accountsPerEnvironment, triggersPerAccount: 5 }
})
/** Of every fleet, however large. */
const DUE = 1_000
const ROUNDS = 10
const MINUTE_MS = 60_000
/** Cost of a tick in the largest fleet, against the smallest. */
const GROWTH_MAX = 2

/** What a tick costs the database, by the number of triggers beside those that are due. */
interface TickCost {
  readonly buffers: number
  readonly databaseMs: number
  readonly wallMs: number
}

/** The cost of a tick from a thousand triggers to a million, with a thousand due each time. */
export async function run(): Promise<void> {
  const costs: TickCost[] = []
  for (const population of SIZES) {
    await using durable = await startDurableDatabase(16, ['shared_preload_libraries=pg_stat_statements'])
    await execute(durable.database.pool, 'create extension pg_stat_statements')
    await using clock = await DatabaseClock.install(durable.url, ['clock_timestamp'])
    await using database = new Database({ target: { kind: 'url', url: clock.url } })
    const triggers = await insertTriggers(database, population)
    const cost = await tickCost(database, clock, triggers)
    reportBaseline(`ticks-growth/${triggers}/buffers`, cost.buffers, 'pages/tick')
    reportBaseline(`ticks-growth/${triggers}/database`, cost.databaseMs * 1_000, 'µs/tick')
    reportBaseline(`ticks-growth/${triggers}/wall`, cost.wallMs * 1_000, 'µs/tick')
    costs.push(cost)
  }
  const [smallest, largest] = [costs[0], costs.at(-1)]
  if (smallest === undefined || largest === undefined) throw new Error('nothing was measured')
  reportAtMost('ticks-growth/buffers', largest.buffers / smallest.buffers, 'x the smallest', GROWTH_MAX)
  reportAtMost('ticks-growth/database', largest.databaseMs / smallest.databaseMs, 'x the smallest', GROWTH_MAX)
}

/** The mean over all rounds but the first, which fills caches and prepares statements. */
async function tickCost(database: Database, clock: DatabaseClock, triggers: number): Promise<TickCost> {
  const from = thisMinute()
  await schedule(database, everyMinute(from, triggers / DUE))
  await clock.set(from)
  const ticker = new Ticker({
    database,
    queue: new RunQueue({ database, random: Math.random }),
    clock: systemClock,
    random: Math.random,
    logger: silentLogger,
  })
  let wallMs = 0
  for (let round = 0; round <= ROUNDS; round++) {
    if (round === 1) await execute(database.pool, 'select pg_stat_statements_reset()')
    const fromMs = performance.now()
    const { fired } = await ticker.runOnce()
    if (fired !== DUE) throw new Error(`${fired} of ${DUE} were fired`)
    if (round > 0) wallMs += performance.now() - fromMs
    await clock.advance(MINUTE_MS)
    await execute(database.pool, 'truncate run_queue') // or the next ticks would overlap
  }
  const [spent] = await query<{ ms: number; buffers: number }>(database.pool, SPENT)
  if (spent === undefined) throw new Error('no statistics')
  const ticks = DUE * ROUNDS
  return { buffers: spent.buffers / ticks, databaseMs: spent.ms / ticks, wallMs: wallMs / ticks }
}

const SPENT = `select sum(total_exec_time) as ms, sum(shared_blks_hit + shared_blks_read)::float8 as buffers
  from pg_stat_statements where query not like 'truncate%' and query not like '%test_clock.moment set%'`
