/**
 * Workers die by SIGKILL while triggers fire; every tick has exactly one run afterwards.
 *
 * `two-workers`: 200 triggers every second for a minute, one of two workers killed half-way and not replaced.
 * `ticks-kill`: 2 000 triggers every 1 to 10 s under 4 workers, a random one killed and replaced every 5 s, for 3 minutes
 * (`PATCHBAY_FAULTS_MINUTES` for longer).
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { reportAtMost } from '../bench/support/report.ts'
import { seededRandom } from './support/seeded-random.ts'
import { checkTicks, reportTickCheck } from './support/tick-checker.ts'
import { TickCluster } from './support/tick-cluster.ts'

const MINUTES = Number(process.env.PATCHBAY_FAULTS_MINUTES ?? 3)
const KILL_EVERY_MS = 5_000
/** What is due when the faults end still has to be fired. */
const SETTLE_MS = 6_000
const random = seededRandom('ticks-kill')

async function twoWorkers(): Promise<void> {
  await using cluster = await TickCluster.start()
  const triggers = await cluster.createTriggers(Array.from({ length: 200 }, () => '* * * * * *'))
  await Promise.all([cluster.addWorker(), cluster.addWorker()])
  await sleep(30_000)
  await cluster.killWorker(0)
  await sleep(30_000)
  const until = new Date()
  await sleep(SETTLE_MS)
  await cluster.stopWorkers()
  reportTickCheck('ticks-kill/two-workers', checkTicks(triggers, await cluster.readRuns(), until))
}

async function randomKills(): Promise<void> {
  await using cluster = await TickCluster.start()
  const expressions = Array.from({ length: 2_000 }, (_, index) => `*/${(index % 10) + 1} * * * * *`)
  const triggers = await cluster.createTriggers(expressions)
  await Promise.all(Array.from({ length: 4 }, () => cluster.addWorker()))
  for (const end = Date.now() + MINUTES * 60_000; Date.now() < end; ) {
    await sleep(KILL_EVERY_MS)
    await cluster.killWorker(Math.floor(random() * cluster.workers))
    await cluster.addWorker()
  }
  const until = new Date()
  await sleep(SETTLE_MS)
  await cluster.stopWorkers()
  const verdict = checkTicks(triggers, await cluster.readRuns(), until)
  reportTickCheck('ticks-kill', verdict)
  reportAtMost('ticks-kill/lateness-p99', verdict.latenessP99Ms, 'ms', 1_500)
  reportAtMost('ticks-kill/lateness-max', verdict.latenessMaxMs, 'ms', 5_000)
}

await twoWorkers()
await randomKills()
