/**
 * Jobs live through random days: records change, schedules and callers start runs, the third party answers badly, executors
 * die between any two steps, runs are stopped and retried, destinations and resources change. Then everything works again:
 * did incremental syncs deliver every change, and are they incremental still?
 *
 * `PATCHBAY_FAULTS_LIVES` jobs (300), a quarter of them synced by daemons; a few minutes. What was lost is printed with the
 * days that lost it.
 */

import fc from 'fast-check'
import { Database } from '../../../src/foundation/database/index.ts'
import { DatabaseClock } from '../../support/database-clock.ts'
import { startDurableDatabase } from '../../support/durable-database.ts'
import { commands } from '../../unit/sync/jobs/incremental-model.ts'
import { World } from '../../unit/sync/jobs/incremental-world.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { seededRandom } from './support/seeded-random.ts'

const LIVES = Number(process.env.PATCHBAY_FAULTS_LIVES ?? 300)
const DAEMONS_EVERY = 4

const random = seededRandom('incremental')
const lives = fc.sample(commands, { numRuns: LIVES, seed: Math.floor(random() * 2 ** 31) })
await using server = await startDurableDatabase()
await using clock = await DatabaseClock.install(server.url)
await using database = new Database({ target: { kind: 'url', url: clock.url } })
const counts = { faults: 0, crashes: 0, lost: 0, full: 0 }

for (const [index, days] of lives.entries()) {
  const world = await World.create(database, clock, index % DAEMONS_EVERY === 0 ? 'daemon' : 'webhook')
  for (const command of days) await world.perform(command)
  const lost = await world.findLost()
  if (lost.length > 0) process.stderr.write(`${JSON.stringify({ lost, days })}\n`)
  counts.lost += lost.length
  counts.full += (await world.isIncremental()) ? 0 : 1
  counts.faults += world.faults
  counts.crashes += world.crashes
}

reportAtLeast('incremental/lives', LIVES, 'jobs', 100)
reportAtLeast('incremental/faults', counts.faults, 'answers', LIVES)
reportAtLeast('incremental/crashes', counts.crashes, 'executors', LIVES / 4)
reportAtMost('incremental/lost', counts.lost, 'records', 0)
reportAtMost('incremental/not-incremental', counts.full, 'jobs', 0)
