/**
 * All workers die at once and stay away; the workers that return fire every tick of the meantime, each under its own time.
 *
 * 2 000 triggers every 2 to 10 s under 4 workers, all killed for a minute (`PATCHBAY_FAULTS_MINUTES` for longer, up to the
 * catch-up of 100 ticks per trigger), then 4 new ones.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { reportAtMost } from '../bench/support/report.ts'
import { seededRandom } from './support/seeded-random.ts'
import { checkTicks, reportTickCheck } from './support/tick-checker.ts'
import { TickCluster } from './support/tick-cluster.ts'

const OUTAGE_MS = Number(process.env.PATCHBAY_FAULTS_MINUTES ?? 1) * 60_000
const TRIGGERS = 2_000
const WORKERS = 4
const GAP_SECONDS = { min: 2, max: 10 }
const BEFORE_MS = 10_000
const DRAIN_SECONDS_MAX = 30
const POLL_MS = 100
/** What is due when the script ends still has to be fired. */
const SETTLE_MS = 6_000

const random = seededRandom('ticks-outage')
await using cluster = await TickCluster.start()
const triggers = await cluster.createTriggers(Array.from({ length: TRIGGERS }, randomGap))
await startWorkers()
await sleep(BEFORE_MS)
while (cluster.workers > 0) await cluster.killWorker(0)
await sleep(OUTAGE_MS)
const returned = new Date()
await startWorkers()
while ((await cluster.countDueBefore(returned)) > 0) await sleep(POLL_MS)
const drainSeconds = (Date.now() - returned.getTime()) / 1_000
const until = new Date()
await sleep(SETTLE_MS)
await cluster.stopWorkers()
reportTickCheck('ticks-outage', checkTicks(triggers, await cluster.readRuns(), until))
reportAtMost('ticks-outage/drained', drainSeconds, 's', DRAIN_SECONDS_MAX)

async function startWorkers(): Promise<void> {
  await Promise.all(Array.from({ length: WORKERS }, () => cluster.addWorker()))
}

function randomGap(): string {
  const { min, max } = GAP_SECONDS
  return `*/${min + Math.floor(random() * (max - min + 1))} * * * * *`
}
