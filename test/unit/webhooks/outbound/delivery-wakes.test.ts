import { describe, expect, it } from 'vitest'
import { type Clock, systemClock } from '../../../../src/foundation/base/index.ts'
import { DeliveryQueue } from '../../../../src/webhooks/outbound/delivery-queue.ts'
import { IN_FLIGHT_PER_WEBHOOK_MAX } from '../../../../src/webhooks/outbound/sql/queue.ts'
import { testDatabase } from '../../../support/database.ts'
import { seedEnvironment } from '../../../support/seed-rows.ts'
import { startReceiver } from '../../../support/webhook-receiver.ts'
import { DeliveryBench } from './delivery-bench.ts'

const { database } = await testDatabase()
const WEBHOOKS = 4

/** Its pauses end when they are interrupted, and never by themselves. */
const endlessPauses: Clock = {
  ...systemClock,
  sleep: (_ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) resolve()
      else signal?.addEventListener('abort', () => resolve(), { once: true })
    }),
}

/** Answers claims and settles results only while it is open. */
class GatedQueue extends DeliveryQueue {
  claims = Promise.resolve()
  /** Claims that the database has answered. */
  found = 0
  settlements = Promise.resolve()

  override async claim(...claim: Parameters<DeliveryQueue['claim']>) {
    const claimed = await super.claim(...claim)
    this.found++
    await this.claims
    return claimed
  }

  override async settleResults(...results: Parameters<DeliveryQueue['settleResults']>) {
    await this.settlements
    return await super.settleResults(...results)
  }
}

async function openBench(concurrency: number) {
  const queue = new GatedQueue({ database, random: () => 0 })
  const bench = new DeliveryBench(database, await seedEnvironment(database), concurrency, {
    clock: endlessPauses,
    queue,
  })
  return { bench, queue }
}

async function fanOut(bench: DeliveryBench, url: string, events: number): Promise<void> {
  for (let n = 0; n < WEBHOOKS; n++) await bench.webhook(url)
  for (let n = 0; n < events; n++) await bench.event()
}

describe('a delivery worker claims without waiting for its next poll', () => {
  it('when leases were settled that had been all that their webhooks may have', async () => {
    const { bench, queue } = await openBench(64)
    await using _ = bench
    await using receiver = await startReceiver()
    await fanOut(bench, receiver.url, 60)
    const gate = Promise.withResolvers<void>()
    queue.settlements = gate.promise
    bench.worker.start()
    await expect.poll(() => receiver.received.length).toBe(WEBHOOKS * IN_FLIGHT_PER_WEBHOOK_MAX)
    gate.resolve()
    await expect.poll(() => bench.worker.stats.outcomes.delivered).toBe(WEBHOOKS * 60)
  })

  it('when settlements that were late have caught up', async () => {
    const { bench, queue } = await openBench(8)
    await using _ = bench
    await using receiver = await startReceiver()
    await fanOut(bench, receiver.url, 40)
    const gate = Promise.withResolvers<void>()
    queue.settlements = gate.promise
    bench.worker.start()
    await expect.poll(() => receiver.received.length).toBeGreaterThan(32)
    gate.resolve()
    await expect.poll(() => bench.worker.stats.outcomes.delivered).toBe(WEBHOOKS * 40)
  })

  it('when deliveries were created during a claim that did not see them', async () => {
    const { bench, queue } = await openBench(8)
    await using _ = bench
    await using receiver = await startReceiver()
    await bench.webhook(receiver.url)
    const gate = Promise.withResolvers<void>()
    queue.claims = gate.promise
    bench.worker.start()
    await expect.poll(() => queue.found).toBe(1)
    await bench.event()
    bench.worker.wakeDispatch()
    await expect.poll(() => bench.worker.stats.deliveries).toBe(1)
    gate.resolve()
    await expect.poll(() => bench.worker.stats.outcomes.delivered).toBe(1)
  })
})

describe('the pause of a dispatcher that found nothing', () => {
  it('is a tenth of a second after events, and a second while there are none', async () => {
    const { bench } = await openBench(8)
    await using _ = bench
    await bench.webhook('https://app.example.com/hook')
    expect(await bench.worker.dispatchOnce()).toBe(1_000)
    await bench.event()
    await bench.worker.dispatchOnce()
    expect(await bench.worker.dispatchOnce()).toBe(100)
  })
})
