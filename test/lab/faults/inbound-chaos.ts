/**
 * Third parties send webhooks, many of them twice at once, while servers and workers die by SIGKILL and PostgreSQL crashes:
 * each has its effect once.
 *
 * 10 000 deliveries (`PATCHBAY_FAULTS_DELIVERIES` for fewer) to 4 accounts; like a third party, a sender repeats a delivery
 * until it is answered 2xx, and 30 % are sent again while the first is in work.
 */

import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { query } from '../../../src/foundation/database/database.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from '../bench/support/report.ts'
import { seededRandom } from './support/seeded-random.ts'
import { WebhookCluster } from './support/webhook-cluster.ts'

const DELIVERIES = Number(process.env.PATCHBAY_FAULTS_DELIVERIES ?? 10_000)
const ACCOUNTS = 4
const SENDERS = 16
const DUPLICATE_SHARE = 0.3
const KILL_EVERY_MS = 4_000
const CRASH_EVERY_MS = 12_000
const RETRY_MS = 300
const REQUEST_MS_MAX = 15_000
/** Longest wait for the last effect after the last delivery. */
const DRAIN_MS_MAX = 5 * 60_000

const SECRET = 'the-signing-secret'
const CONFIG = {
  label: 'Chaos',
  base_url: 'http://127.0.0.1:9',
  credentials: { format: 'api_key', config: { fields: [{ name: 'api_key', type: 'password', required: true }] } },
  webhook: {
    signature_verification: {
      format: 'hmac',
      config: {
        secret: SECRET,
        algorithm: 'sha256',
        string_type: 'hex',
        parts: ['$body'],
        compare_with: '$header.x-signature',
      },
    },
    events: '{"event": "created", "resource": "contacts", "id": body.id, "data": body}',
    dedupe: { keys: ['$header.x-delivery'] },
    rate_limit: { requests_per_second: 10_000, burst: 100_000 },
  },
}

const random = seededRandom('inbound-chaos')
await using cluster = await WebhookCluster.start()
const installationId = await cluster.install('chaos', CONFIG, {})
const addresses: string[] = []
for (let n = 0; n < ACCOUNTS; n++)
  addresses.push(cluster.addressOf('integrated-account', await cluster.connect(installationId, {})))

let isOver = false
let [serverKills, workerKills, crashes, duplicates, retries] = [0, 0, 0, 0, 0]
const chaos = [killServers(), killWorkers(), crashDatabase()]
let next = 0
await Promise.all(Array.from({ length: SENDERS }, send))
isOver = true
await Promise.all(chaos)
const isDrained = await untilDrained()
await report()

async function send(): Promise<void> {
  for (let n = next++; n < DELIVERIES; n = next++) {
    const isTwice = random() < DUPLICATE_SHARE
    if (isTwice) duplicates++
    await Promise.all(Array.from({ length: isTwice ? 2 : 1 }, () => sendUntilAccepted(n)))
  }
}

async function sendUntilAccepted(n: number): Promise<void> {
  const body = JSON.stringify({ id: n })
  const headers = {
    'content-type': 'application/json',
    'x-delivery': `delivery-${n}`,
    'x-signature': createHmac('sha256', SECRET).update(body).digest('hex'),
  }
  for (;;) {
    const signal = AbortSignal.timeout(REQUEST_MS_MAX)
    const request = { method: 'POST', headers, body, signal }
    const status = await fetch(addresses[n % ACCOUNTS] ?? '', request).then(
      async (response) => {
        await response.arrayBuffer()
        return response.status
      },
      () => 0,
    )
    if (status >= 200 && status < 300) return
    retries++
    await sleep(RETRY_MS)
  }
}

async function killServers(): Promise<void> {
  for (; !isOver; await sleep(KILL_EVERY_MS)) await cluster.killServer(serverKills++)
}

async function killWorkers(): Promise<void> {
  for (; !isOver; await sleep(KILL_EVERY_MS)) await cluster.killWorker(workerKills++)
}

async function crashDatabase(): Promise<void> {
  for (await sleep(CRASH_EVERY_MS / 2); !isOver; await sleep(CRASH_EVERY_MS)) {
    await cluster.crashDatabase()
    crashes++
  }
}

async function untilDrained(): Promise<boolean> {
  const sql = `select (select count(*) from inbound_queue) + (select count(*) from inbound_lease) as waiting`
  for (const end = Date.now() + DRAIN_MS_MAX; Date.now() < end; await sleep(1_000)) {
    const [found] = await query<{ readonly waiting: number }>(cluster.database.pool, sql).catch(() => [])
    if (found?.waiting === 0) return true
  }
  return false
}

async function report(): Promise<void> {
  const effects = await cluster.effects()
  const wanted = Array.from({ length: DELIVERIES }, (_, n) => String(n))
  const [stored] = await query<{ readonly events: number; readonly unlike: number }>(
    cluster.database.pool,
    `select count(*) as events, (
       select count(*) from inbound_item i where i.state = 'routed' and not exists (
         select from event e where e.id = i.event_id and e.payload ->> 'inbound_event_id' = i.inbound_event_id::text)
     ) as unlike from inbound_event`,
  )
  reportBaseline('inbound-chaos/deliveries', DELIVERIES, 'deliveries')
  reportBaseline('inbound-chaos/retries', retries, 'requests')
  reportAtLeast('inbound-chaos/duplicates', duplicates / DELIVERIES, 'of the deliveries', 0.2)
  reportAtLeast('inbound-chaos/server-kills', serverKills, 'kills', 2)
  reportAtLeast('inbound-chaos/worker-kills', workerKills, 'kills', 2)
  reportAtLeast('inbound-chaos/crashes', crashes, 'crashes', 1)
  reportAtMost('inbound-chaos/not-drained', isDrained ? 0 : 1, 'queues', 0)
  reportAtMost('inbound-chaos/lost', wanted.filter((id) => !effects.has(id)).length, 'deliveries', 0)
  reportAtMost('inbound-chaos/doubled', [...effects.values()].filter((count) => count > 1).length, 'effects', 0)
  reportAtMost('inbound-chaos/stored-twice', (stored?.events ?? 0) - DELIVERIES, 'events', 0)
  reportAtMost('inbound-chaos/ids-changed', stored?.unlike ?? DELIVERIES, 'events', 0)
}
