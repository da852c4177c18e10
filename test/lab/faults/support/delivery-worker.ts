/**
 * A delivery worker as a process of its own, with the retry schedule in seconds instead of hours.
 *
 * `delivery-worker.ts <database url> <key ring>`, forked: works from the beginning.
 */

import { systemClock } from '../../../../src/foundation/base/index.ts'
import { Database } from '../../../../src/foundation/database/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import { createSecretStore, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import { createLogger } from '../../../../src/foundation/telemetry/index.ts'
import { DELIVERY_POLICY, DeliveryQueue } from '../../../../src/webhooks/outbound/delivery-queue.ts'
import { DeliveryWorker } from '../../../../src/webhooks/outbound/index.ts'

/** Just longer than an attempt may take, so that the deliveries of a worker that was killed are soon another's. */
const LEASE_MS = 17_000
/** A lease that expires counts as an attempt, so that kills use up more of them than the faults of receivers. */
const ATTEMPTS_MAX = 25

const [url = '', keys = ''] = process.argv.slice(2)
const database = new Database({ target: { kind: 'url', url }, applicationName: 'delivery-worker' })
const retry = { delaysMs: [200, 500, 1_000, 2_000], jitter: 0.1 }
const worker = new DeliveryWorker({
  database,
  queue: new DeliveryQueue({
    database,
    random: Math.random,
    policy: { ...DELIVERY_POLICY, leaseMs: LEASE_MS, attemptsMax: ATTEMPTS_MAX, retry },
  }),
  secrets: createSecretStore(parseKeyRing(keys)),
  http: createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) }),
  clock: systemClock,
  random: Math.random,
  logger: createLogger('error'),
  holder: `faults:${process.pid}`,
  concurrency: 64,
  onError: () => undefined,
})
process.on('disconnect', () => process.exit())
worker.start()
process.send?.('ready')
