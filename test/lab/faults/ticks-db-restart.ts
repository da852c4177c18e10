/**
 * PostgreSQL stops without ceremony, as after a crash, and starts again; no tick is lost or fired twice.
 *
 * 1 000 triggers every second to every 10 s under 2 workers, an immediate stop every 5 to 10 s with the server away for up
 * to 2 s, for a minute (`PATCHBAY_FAULTS_MINUTES` for longer).
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { seededRandom } from './support/seeded-random.ts'
import { checkTicks, reportTickCheck } from './support/tick-checker.ts'
import { TickCluster } from './support/tick-cluster.ts'

const DURATION_MS = Number(process.env.PATCHBAY_FAULTS_MINUTES ?? 1) * 60_000
const TRIGGERS = 1_000
const WORKERS = 2
const UP_MS = { min: 5_000, max: 10_000 }
const DOWN_MS = { min: 0, max: 2_000 }
const RECOVERY_MS_MAX = 3_000
/** The last recovery ends, and what is due then is fired. */
const SETTLE_MS = 8_000

const random = seededRandom('ticks-db-restart')
await using cluster = await TickCluster.start()
const expressions = Array.from({ length: TRIGGERS }, (_, index) => `*/${(index % 10) + 1} * * * * *`)
const triggers = await cluster.createTriggers(expressions)
await Promise.all(Array.from({ length: WORKERS }, () => cluster.addWorker()))
const restarts: Date[] = []
for (const end = Date.now() + DURATION_MS; Date.now() < end; ) {
  await sleep(between(UP_MS))
  restarts.push(await cluster.crashServer(between(DOWN_MS)))
}
await sleep(SETTLE_MS)
const until = new Date()
await sleep(SETTLE_MS)
await cluster.stopWorkers()
reportAtLeast('ticks-db-restart/restarts', restarts.length, 'restarts', 1)
reportTickCheck('ticks-db-restart', checkTicks(triggers, await cluster.readRuns(), until))
reportAtMost('ticks-db-restart/recovery-max', await slowestRecoveryMs(), 'ms', RECOVERY_MS_MAX)

/** From the moment the server answers to the first run made after it. */
async function slowestRecoveryMs(): Promise<number> {
  let slowest = 0
  for (const answered of restarts) {
    const first = await cluster.firstRunAfter(answered)
    slowest = Math.max(slowest, first === undefined ? Number.POSITIVE_INFINITY : first.getTime() - answered.getTime())
  }
  return slowest
}

function between({ min, max }: { readonly min: number; readonly max: number }): number {
  return min + random() * (max - min)
}
