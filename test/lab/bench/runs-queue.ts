import { RunQueue } from '../../../src/sync/runs/index.ts'
import { WEBHOOK_QUEUE_GROUP } from '../../../src/sync/runs/run.ts'
import { startDurableDatabase } from '../../support/durable-database.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from './support/report.ts'
import { insertBacklog } from './support/run-backlog.ts'

/** A million runs, as 100 environments with a full queue each have them. */
const BACKLOG = { environments: 100, accountsPerEnvironment: 2_000, runsPerAccount: 5 }
/** Workers at once, and runs each claims, renews and settles in one call. */
const HOLDERS = 2
const BATCH = 50
const WARM_UP_MS = 3_000
const MEASURE_MS = 15_000

/** Runs a second through claim, heartbeat and settle while a million wait. */
export async function run(): Promise<void> {
  await using durable = await startDurableDatabase(HOLDERS)
  const waiting = await insertBacklog(durable.database, BACKLOG)
  reportBaseline('runs-queue/waiting', waiting, 'runs')
  const queue = new RunQueue({ database: durable.database, random: Math.random })
  const beganMs = performance.now() + WARM_UP_MS
  const endMs = beganMs + MEASURE_MS
  const claims: number[] = []
  let settled = 0
  const holder = async (name: string): Promise<void> => {
    for (let fromMs = performance.now(); fromMs < endMs; fromMs = performance.now()) {
      const held = await queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder: name, limit: BATCH })
      const claimMs = performance.now() - fromMs
      await queue.heartbeat(held)
      const ended = await queue.settle(held.map((lease) => ({ ...lease, outcome: { kind: 'completed' } })))
      if (fromMs < beganMs) continue
      claims.push(claimMs)
      settled += ended.filter(({ kind }) => kind === 'settled').length
    }
  }
  await Promise.all(Array.from({ length: HOLDERS }, (_, index) => holder(`holder-${index}`)))
  claims.sort((a, b) => a - b)
  const quantile = (share: number) => claims[Math.floor(claims.length * share)] ?? Number.NaN
  reportAtLeast('runs-queue/per-second', (settled / MEASURE_MS) * 1_000, 'runs/s', 8_000)
  reportBaseline('runs-queue/claim-p50', quantile(0.5), 'ms')
  reportAtMost('runs-queue/claim-p99', quantile(0.99), 'ms', 15)
}
