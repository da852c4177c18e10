/**
 * A delivery worker as a process of its own.
 *
 * `delivery-worker-main.ts <database url> <key ring> <deliveries at once> [profile]`, forked: works after the first message,
 * and after each later one sends its counters.
 */

import { systemClock } from '../../../../src/foundation/base/index.ts'
import { Database, logLoopErrors } from '../../../../src/foundation/database/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import { createSecretStore, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import { createLogger } from '../../../../src/foundation/telemetry/index.ts'
import { DeliveryWorker } from '../../../../src/webhooks/outbound/index.ts'

const [url = '', keys = '', concurrency = '128'] = process.argv.slice(2)
const logger = createLogger('warn')
const worker = new DeliveryWorker({
  database: new Database({ target: { kind: 'url', url }, applicationName: 'delivery-worker' }),
  secrets: createSecretStore(parseKeyRing(keys)),
  http: createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) }),
  clock: systemClock,
  random: Math.random,
  logger,
  holder: `bench:${process.pid}`,
  concurrency: Number(concurrency),
  onError: logLoopErrors(logger),
})
let isStarted = false
process.on('message', () => {
  if (isStarted) process.send?.(worker.stats)
  isStarted = true
  worker.start()
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
