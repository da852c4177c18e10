/**
 * A whole worker as a process of its own, whose runs are over at once.
 *
 * `worker-main.ts <database url>`, forked: works from the beginning, and after every message sends what it has used since
 * the last.
 */

import { systemClock } from '../../../../src/foundation/base/index.ts'
import { Database } from '../../../../src/foundation/database/index.ts'
import { createLogger } from '../../../../src/foundation/telemetry/index.ts'
import { createWorker } from '../../../../src/server/worker/worker.ts'
import { RunQueue } from '../../../../src/sync/runs/index.ts'

/** What a worker used since it was last asked. */
export interface WorkerUse {
  readonly cpuMs: number
  readonly heapMb: number
}

const [url = ''] = process.argv.slice(2)
const database = new Database({ target: { kind: 'url', url }, applicationName: 'bench-worker' })
const worker = createWorker({
  database,
  queue: new RunQueue({ database, random: Math.random }),
  clock: systemClock,
  random: Math.random,
  logger: createLogger('warn'),
  holder: `bench:${process.pid}`,
  concurrency: 64,
  executeRun: async () => ({ kind: 'completed' }),
})
let used = process.cpuUsage()

function useSinceLast(): WorkerUse {
  const { user, system } = process.cpuUsage(used)
  used = process.cpuUsage()
  return { cpuMs: (user + system) / 1_000, heapMb: process.memoryUsage().heapUsed / 2 ** 20 }
}

process.on('message', () => process.send?.(useSinceLast()))
worker.start()
process.send?.('ready')
