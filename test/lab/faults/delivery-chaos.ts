/**
 * Events are delivered while workers die by SIGKILL, PostgreSQL crashes and 30 % of the requests fail at the receiver: none is
 * lost, and what arrives twice has the same id.
 *
 * 10 000 events (`PATCHBAY_FAULTS_EVENTS` for fewer) to 4 webhooks of which each asks for all, by 3 workers of which a random
 * one is killed and replaced every 3 s; a crash of the server every 10 s; about three minutes.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { newId, systemClock } from '../../../src/foundation/base/index.ts'
import { query } from '../../../src/foundation/database/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../src/foundation/secrets/index.ts'
import { appendEvents } from '../../../src/platform/outbox/index.ts'
import { createWebhook } from '../../../src/webhooks/outbound/index.ts'
import { startDurableDatabase } from '../../support/durable-database.ts'
import { seedEnvironment } from '../../support/seed-rows.ts'
import { Peer } from '../bench/support/peer.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from '../bench/support/report.ts'
import { FaultyReceiver } from './support/faulty-receiver.ts'
import { seededRandom } from './support/seeded-random.ts'

const EVENTS = Number(process.env.PATCHBAY_FAULTS_EVENTS ?? 10_000)
const EVENTS_PER_STATEMENT = 20
const EVENT_PAUSE_MS = 100
const UNIQUE_VIOLATION = '23505'
const WEBHOOKS = 4
const WORKERS = 3
const KILL_EVERY_MS = 3_000
const CRASH_EVERY_MS = 10_000
/** Longest wait for the last delivery after the last event. */
const DRAIN_MS_MAX = 10 * 60_000

const random = seededRandom('delivery-chaos')
await using durable = await startDurableDatabase()
const { database } = durable
const keys = generateKeyRingText('faults')
await using receiver = new FaultyReceiver(random)
const origin = await receiver.listen()
const environmentId = await seedEnvironment(database)
const paths = new Map<string, string>()
for (let n = 0; n < WEBHOOKS; n++) await addWebhook(`/${n}`)

const workers: Peer<unknown>[] = []
for (let n = 0; n < WORKERS; n++) workers.push(await startWorker())
let isOver = false
let [kills, crashes] = [0, 0]
const chaos = [killWorkers(), crashServer()]
const eventIds = await recordEvents()
await untilDrained()
isOver = true
await Promise.all(chaos)
for (const worker of workers) await worker[Symbol.asyncDispose]()
await report()

async function addWebhook(path: string): Promise<void> {
  const deps = { secrets: createSecretStore(parseKeyRing(keys)), clock: systemClock, findUrlViolation: () => undefined }
  const { webhook, secret } = await database.transaction((tx) =>
    createWebhook(deps, tx, environmentId, { targetUrl: `${origin}${path}` }),
  )
  receiver.expect(path, secret)
  paths.set(webhook.id, path)
}

async function startWorker(): Promise<Peer<unknown>> {
  const worker = new Peer('../../faults/support/delivery-worker.ts', [durable.url, keys])
  await worker.next()
  return worker
}

async function killWorkers(): Promise<void> {
  while (!isOver) {
    await sleep(KILL_EVERY_MS)
    const [killed] = workers.splice(Math.floor(random() * workers.length), 1)
    await killed?.[Symbol.asyncDispose]()
    kills++
    workers.push(await startWorker())
  }
}

async function crashServer(): Promise<void> {
  while (!isOver) {
    await sleep(CRASH_EVERY_MS)
    await durable.crash()
    crashes++
  }
}

/** Records events through crashes: an id that exists was committed although its answer was lost. */
async function recordEvents(): Promise<readonly string[]> {
  const ids: string[] = []
  while (ids.length < EVENTS) {
    const batch = Array.from({ length: EVENTS_PER_STATEMENT }, () => newId())
    await untilDone(() => database.transaction((tx) => appendEvents(tx, batch.map(eventOf))))
    ids.push(...batch)
    await sleep(EVENT_PAUSE_MS)
  }
  return ids
}

function eventOf(id: string) {
  return { id, environmentId, type: 'record:created', payload: { n: id } } as const
}

async function untilDone(work: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === UNIQUE_VIOLATION) return
      await sleep(EVENT_PAUSE_MS)
    }
  }
}

async function untilDrained(): Promise<void> {
  for (const end = Date.now() + DRAIN_MS_MAX; Date.now() < end; await sleep(1_000)) {
    const waiting = await countWaiting().catch(() => undefined)
    if (waiting === 0) return
  }
}

async function countWaiting(): Promise<number> {
  const [found] = await query<{ readonly waiting: number }>(
    database.pool,
    `select (select count(*) from event_dispatch) + (select count(*) from delivery_queue) + (select count(*) from delivery_lease) as waiting`,
  )
  return found?.waiting ?? Number.NaN
}

async function report(): Promise<void> {
  const wanted = [...paths.values()].flatMap((path) => eventIds.map((id) => `${path} ${id}`))
  const lost = wanted.filter((key) => !receiver.accepted.has(key)).length
  const known = new Set(eventIds)
  const unknown = [...receiver.accepted.keys()].filter((key) => !known.has(key.split(' ')[1] ?? '')).length
  const repeated = [...receiver.accepted.values()].filter((count) => count > 1).length
  const [stored] = await query<{ readonly rows: number; readonly pairs: number; readonly delivered: number }>(
    database.pool,
    `select count(*) as rows, count(distinct (event_id, webhook_id)) as pairs,
       count(*) filter (where state = 'delivered') as delivered from delivery`,
  )
  const { rows = 0, pairs = 0, delivered = 0 } = stored ?? {}
  reportBaseline('delivery-chaos/events', eventIds.length, 'events')
  reportBaseline('delivery-chaos/repeated', repeated, 'deliveries')
  reportAtLeast('delivery-chaos/kills', kills, 'kills', 5)
  reportAtLeast('delivery-chaos/crashes', crashes, 'crashes', 2)
  reportAtLeast('delivery-chaos/receiver-faults', receiver.faults / receiver.requests, 'of the requests', 0.25)
  reportAtMost('delivery-chaos/lost', lost, 'deliveries', 0)
  reportAtMost('delivery-chaos/unknown-ids', unknown, 'deliveries', 0)
  reportAtMost('delivery-chaos/forged', receiver.forged, 'requests', 0)
  reportAtMost('delivery-chaos/fanned-out-twice', rows - pairs, 'deliveries', 0)
  reportAtMost('delivery-chaos/not-delivered', wanted.length - delivered, 'deliveries', 0)
}
