import { type DurableDatabase, startDurableDatabase } from '../../support/durable-database.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from './support/report.ts'
import { fireBaseline } from './support/tick-baseline.ts'
import { TickerFleet } from './support/ticker-fleet.ts'
import {
  atMinute,
  insertTriggers,
  MILLION,
  type Population,
  schedule,
  thisMinute,
} from './support/trigger-population.ts'

const SIZES: readonly { readonly name: string; readonly population: Population; readonly secondsMax: number }[] = [
  { name: '100k', population: { ...MILLION, environments: 20 }, secondsMax: 5 },
  { name: '1M', population: MILLION, secondsMax: 40 },
]
/** Of the floor: as many as the workers use together. */
const FLOOR_CONNECTIONS = 4
const RATIO_MIN = 0.7

/** All triggers on one minute: how fast their runs wait, against claiming and inserting by hand. `BENCH_TICKS=100k` for one. */
export async function run(): Promise<void> {
  const asked = process.env.BENCH_TICKS
  for (const { name, population, secondsMax } of SIZES.filter((size) => asked === undefined || size.name === asked)) {
    await using durable = await startDurableDatabase()
    const triggers = await insertTriggers(durable.database, population)
    const floor = triggers / (await floorSeconds(durable, triggers))
    const { seconds, cpuMs } = await fleetDrains(durable, triggers)
    reportBaseline(`ticks-burst/${name}/floor`, floor, 'ticks/s')
    reportBaseline(`ticks-burst/${name}/worker-cpu`, (cpuMs / triggers) * 1_000, 'µs/tick')
    reportAtMost(`ticks-burst/${name}`, seconds, 's', secondsMax)
    reportAtLeast(`ticks-burst/${name}/ratio`, triggers / seconds / floor, 'x floor', RATIO_MIN)
  }
}

async function floorSeconds({ database }: DurableDatabase, triggers: number): Promise<number> {
  await schedule(database, atMinute(thisMinute()))
  const fromMs = performance.now()
  requireAll(await fireBaseline(database, FLOOR_CONNECTIONS), triggers)
  return (performance.now() - fromMs) / 1_000
}

async function fleetDrains({ database, url }: DurableDatabase, triggers: number) {
  await schedule(database, atMinute(thisMinute()))
  await using fleet = await TickerFleet.start(url)
  const drained = await fleet.drain()
  requireAll(drained.fired, triggers)
  return drained
}

function requireAll(fired: number, triggers: number): void {
  if (fired !== triggers) throw new Error(`${fired} of ${triggers} were fired`)
}
