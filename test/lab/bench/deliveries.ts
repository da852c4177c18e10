import { setTimeout as sleep } from 'node:timers/promises'
import { DeliveryFleet } from './support/delivery-fleet.ts'
import { Peer } from './support/peer.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from './support/report.ts'

const ENDPOINTS = 10
/** `BENCH_DELIVERIES` for a short form. */
const DELIVERIES = Number(process.env.BENCH_DELIVERIES ?? 30_000)
const CONCURRENCY = 128
const ROUNDS = 3
const RATIO_MIN = 0.3

const FAIRNESS_ENDPOINTS = 100
const FAIRNESS_ROUNDS = 100
const FAIRNESS_INTERVAL_MS = 200
const FAIRNESS_RATIO_MAX = 1.5

/** `BENCH_BACKLOG` for a short form. */
const BACKLOG = Number(process.env.BENCH_BACKLOG ?? 1_000_000)
const DRAIN_MS = 20_000
const FRESH_SHARE_MIN = 0.4

/** Webhook deliveries: speed against a bare loop, one receiver that hangs among 100, and the drain of a long backlog. */
export async function run(): Promise<void> {
  await measureSpeed()
  await measureFairness()
  await measureDrain()
}

/** From events in the outbox to the last receipt, against posting the same number of bodies. */
async function measureSpeed(): Promise<void> {
  await using fleet = await DeliveryFleet.start()
  for (let n = 0; n < ENDPOINTS; n++) await fleet.addWebhook(`own/${n}`)
  const args = [fleet.receiverUrl, String(DELIVERIES), String(CONCURRENCY)]
  await using floor = new Peer<number>('delivery-baseline-main.ts', args)
  await floor.next()
  const seconds = { floor: [] as number[], product: [] as number[] }
  for (let round = 0; round <= ROUNDS; round++) {
    const taken = floor.next()
    floor.go()
    const floorSeconds = await taken
    await fleet.received()
    await fleet.addEvents(DELIVERIES / ENDPOINTS)
    await fleet.addWorker(CONCURRENCY)
    await fleet.untilDelivered()
    await fleet.killWorkers()
    const { count, firstAt, lastAt } = await fleet.received()
    if (count !== DELIVERIES) throw new Error(`${count} of ${DELIVERIES} deliveries arrived`)
    if (round === 0) continue
    seconds.floor.push(floorSeconds)
    seconds.product.push((lastAt - firstAt) / 1_000)
  }
  const [bare, own] = [DELIVERIES / medianOf(seconds.floor), DELIVERIES / medianOf(seconds.product)]
  reportBaseline('deliveries/floor', bare, 'posts/s')
  reportBaseline('deliveries/per-second', own, 'deliveries/s')
  reportAtLeast('deliveries/ratio', own / bare, 'x floor', RATIO_MIN)
}

/** The time from an event to its receipt by 99 receivers, with the hundredth answering and hanging. */
async function measureFairness(): Promise<void> {
  const healthy = await latencyBeside('own/99')
  const hanging = await latencyBeside('hang')
  reportBaseline('deliveries/latency-p50', healthy.p50, 'ms')
  reportBaseline('deliveries/latency-p99', healthy.p99, 'ms')
  reportBaseline('deliveries/latency-p99-one-hangs', hanging.p99, 'ms')
  reportAtMost('deliveries/one-hangs', hanging.p99 / healthy.p99, 'x p99', FAIRNESS_RATIO_MAX)
}

async function latencyBeside(path: string) {
  await using fleet = await DeliveryFleet.start()
  for (let n = 0; n < FAIRNESS_ENDPOINTS - 1; n++) await fleet.addWebhook(`measured/${n}`)
  await fleet.addWebhook(path)
  await fleet.addWorker(CONCURRENCY)
  await fleet.addEvents(1)
  await sleep(2_000)
  await fleet.received()
  for (let round = 0; round < FAIRNESS_ROUNDS; round++) {
    await Promise.all([fleet.addEvents(1), sleep(FAIRNESS_INTERVAL_MS)])
  }
  // What waits at last is for the receiver that hangs.
  await fleet.untilDelivered(path === 'hang' ? FAIRNESS_ROUNDS + 1 : 0)
  const { latencies } = await fleet.received()
  const measured = latencies.measured
  const expected = FAIRNESS_ROUNDS * (FAIRNESS_ENDPOINTS - 1)
  if (measured?.count !== expected) throw new Error(`${measured?.count} of ${expected} deliveries arrived`)
  return measured
}

/** A million deliveries that are due after an outage of the receivers, while events come in faster than they are sent. */
async function measureDrain(): Promise<void> {
  await using fleet = await DeliveryFleet.start()
  const webhookIds = await Promise.all(Array.from({ length: ENDPOINTS }, (_, n) => fleet.addWebhook(`own/${n}`)))
  await fleet.addEvents(1)
  await fleet.addWorker(CONCURRENCY)
  await fleet.untilDelivered()
  await fleet.killWorkers()
  await fleet.addBacklog(webhookIds, BACKLOG)
  await fleet.addWorker(CONCURRENCY)
  await sleep(DRAIN_MS / 4)
  await fleet.received()
  await sleep(DRAIN_MS)
  const { count: drained } = await fleet.received()
  reportBaseline('deliveries/backlog', BACKLOG, 'deliveries')
  reportBaseline('deliveries/drain', (drained / DRAIN_MS) * 1_000, 'deliveries/s')
  // One event in a while, beside the backlog.
  for (let round = 0; round < FAIRNESS_ROUNDS / 2; round++)
    await Promise.all([fleet.addEvents(1), sleep(FAIRNESS_INTERVAL_MS)])
  const shares = await measureShares(fleet)
  reportAtLeast('deliveries/drain-fresh-share', shares, 'of the deliveries', FRESH_SHARE_MIN)
}

/** What part of the deliveries are fresh, while enough of both wait. */
async function measureShares(fleet: DeliveryFleet): Promise<number> {
  await fleet.addEvents(BACKLOG / 20)
  await sleep(DRAIN_MS / 4)
  const before = await fleet.countDelivered()
  await sleep(DRAIN_MS / 2)
  const after = await fleet.countDelivered()
  const [fresh, backlog] = [after.fresh - before.fresh, after.backlog - before.backlog]
  return fresh / (fresh + backlog)
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}
