/**
 * A worker process for fault scripts: ticks, leases and upkeep as in the product, and runs that are over at once.
 *
 * `node tick-worker.ts <database url>`; prints `ready` when it has begun, ends on SIGTERM.
 */

import { systemClock } from '../../../../src/foundation/base/index.ts'
import { Database } from '../../../../src/foundation/database/index.ts'
import { createLogger } from '../../../../src/foundation/telemetry/index.ts'
import { createWorker } from '../../../../src/server/worker/worker.ts'
import { RunQueue } from '../../../../src/sync/runs/index.ts'

const [url] = process.argv.slice(2)
if (url === undefined) throw new Error('usage: tick-worker.ts <database url>')

const database = new Database({ target: { kind: 'url', url }, poolMax: 6, applicationName: 'tick-worker' })
const worker = createWorker({
  database,
  queue: new RunQueue({ database, random: Math.random }),
  clock: systemClock,
  random: Math.random,
  logger: createLogger('warn'),
  holder: `tick-worker:${process.pid}`,
  concurrency: 16,
  executeRun: async () => ({ kind: 'completed' }),
})
worker.start()
process.stdout.write('ready\n')
process.once('SIGTERM', () => {
  void worker.drain(5_000).then(() => database[Symbol.asyncDispose]())
})
