import { Database, execute } from '../../../src/foundation/database/index.ts'
import { DatabaseClock } from '../../support/database-clock.ts'
import { type DurableDatabase, startDurableDatabase } from '../../support/durable-database.ts'
import { reportAtMost, reportBaseline } from './support/report.ts'
import { TickerFleet } from './support/ticker-fleet.ts'
import { everyMinute, insertTriggers, MILLION, schedule, thisMinute } from './support/trigger-population.ts'

const TRIGGERS = { ...MILLION, environments: 20 }
/** Each round fires every trigger once and leaves a dead row and a dead index entry behind. `BENCH_ROUNDS` for longer. */
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const LOSS_MAX = 0.2

/** What ticks lose while another session holds a snapshot, so that nothing they leave behind can be cleaned up. */
export async function run(): Promise<void> {
  await using durable = await startDurableDatabase()
  await using clock = await DatabaseClock.install(durable.url, ['clock_timestamp'])
  const triggers = await insertTriggers(durable.database, TRIGGERS)
  const unpinned = await ticksPerSecond(durable, clock, triggers)
  const pinned = await whilePinned(durable, () => ticksPerSecond(durable, clock, triggers))
  reportBaseline('ticks-pinned/unpinned', unpinned, 'ticks/s')
  reportBaseline('ticks-pinned/pinned', pinned, 'ticks/s')
  reportAtMost('ticks-pinned/loss', 1 - pinned / unpinned, 'of the rate', LOSS_MAX)
}

/** The rate over all rounds; time between them does not count. */
async function ticksPerSecond({ database }: DurableDatabase, clock: DatabaseClock, triggers: number): Promise<number> {
  const from = thisMinute()
  await schedule(database, everyMinute(from))
  await clock.set(from)
  await using fleet = await TickerFleet.start(clock.url)
  let seconds = 0
  for (let round = 0; round < ROUNDS; round++) {
    const drained = await fleet.drain()
    if (drained.fired !== triggers) throw new Error(`${drained.fired} of ${triggers} were fired`)
    seconds += drained.seconds
    await clock.advance(60_000)
    await execute(database.pool, 'truncate run_queue') // or the next ticks would overlap
  }
  return (triggers * ROUNDS) / seconds
}

/** Does the work while a transaction elsewhere keeps its snapshot. */
async function whilePinned<Result>({ url }: DurableDatabase, work: () => Promise<Result>): Promise<Result> {
  await using session = new Database({ target: { kind: 'url', url }, poolMax: 1, applicationName: 'pin' })
  return await session.transaction(async (tx) => {
    await execute(tx, 'set transaction isolation level repeatable read')
    await execute(tx, 'set local idle_in_transaction_session_timeout = 0')
    await execute(tx, 'select 1')
    return await work()
  })
}
