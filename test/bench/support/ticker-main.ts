/**
 * The part of a worker that fires ticks, as a process of its own.
 *
 * `ticker-main.ts <database url> [<moment>]`, forked: after every message it fires until nothing is due any more and sends
 * what that took. With a moment, that is what is due then, and a minute later at every further message.
 */

import { systemClock } from '../../../src/base/index.ts'
import { Database } from '../../../src/database/index.ts'
import { RunQueue } from '../../../src/runs/index.ts'
import { Ticker } from '../../../src/schedules/index.ts'
import { createLogger } from '../../../src/telemetry/index.ts'

/** What firing everything that was due took. */
export interface Drained {
  readonly fired: number
  readonly cpuMs: number
}

const MINUTE_MS = 60_000

const [url = '', moment] = process.argv.slice(2)
const database = new Database({ target: { kind: 'url', url } })
let nowMs = moment === undefined ? undefined : Date.parse(moment)
const ticker = new Ticker({
  database,
  queue: new RunQueue({ database, random: Math.random }),
  clock: systemClock,
  random: Math.random,
  logger: createLogger('warn'),
  now: nowMs === undefined ? undefined : () => new Date(nowMs ?? 0),
})

async function drain(): Promise<Drained> {
  const cpu = process.cpuUsage()
  const before = ticker.stats.fired
  for (let fired = 1; fired > 0; ) fired = (await ticker.runOnce()).fired
  const { user, system } = process.cpuUsage(cpu)
  if (nowMs !== undefined) nowMs += MINUTE_MS
  return { fired: ticker.stats.fired - before, cpuMs: (user + system) / 1_000 }
}

process.on('message', async () => process.send?.(await drain()))
process.send?.('ready')
