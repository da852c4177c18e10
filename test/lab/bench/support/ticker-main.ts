/**
 * The part of a worker that fires ticks, as a process of its own.
 *
 * `ticker-main.ts <database url>`, forked: after every message it fires until nothing is due any more and sends what that
 * took.
 */

import { systemClock } from '../../../../src/foundation/base/index.ts'
import { Database } from '../../../../src/foundation/database/index.ts'
import { createLogger } from '../../../../src/foundation/telemetry/index.ts'
import { RunQueue } from '../../../../src/sync/runs/index.ts'
import { Ticker } from '../../../../src/sync/schedules/index.ts'

/** What firing everything that was due took. */
export interface Drained {
  readonly fired: number
  readonly cpuMs: number
}

const [url = ''] = process.argv.slice(2)
const database = new Database({ target: { kind: 'url', url } })
const ticker = new Ticker({
  database,
  queue: new RunQueue({ database, random: Math.random }),
  clock: systemClock,
  random: Math.random,
  logger: createLogger('warn'),
})

async function drain(): Promise<Drained> {
  const cpu = process.cpuUsage()
  const before = ticker.stats.fired
  for (let fired = 1; fired > 0; ) fired = (await ticker.runOnce()).fired
  const { user, system } = process.cpuUsage(cpu)
  return { fired: ticker.stats.fired - before, cpuMs: (user + system) / 1_000 }
}

process.on('message', async () => process.send?.(await drain()))
process.send?.('ready')
