import { describe, expect, it } from 'vitest'
import type { Lease } from '../../../../src/foundation/queue/index.ts'
import type { QueuedDelivery } from '../../../../src/webhooks/outbound/delivery-queue.ts'
import { InFlight } from '../../../../src/webhooks/outbound/in-flight.ts'

const SLOTS = 8
let leases = 0

/** A claimed delivery, as far as slots are concerned. */
function delivery(webhook = 'a'): Lease<QueuedDelivery> {
  return { leaseId: String(leases++), concurrencyKey: webhook } as Lease<QueuedDelivery>
}

function begun(inFlight: InFlight, webhook: string, nowMs: number, count = 1): Lease<QueuedDelivery>[] {
  return Array.from({ length: count }, () => {
    const each = delivery(webhook)
    inFlight.begin(each, 'first', nowMs)
    return each
  })
}

function limitOf(inFlight: InFlight, nowMs: number, key = 'a'): number | undefined {
  return inFlight.limits(nowMs).find((limit) => limit.key === key)?.leases
}

describe('slots', () => {
  it('are left by attempts that take longer than two seconds, of which there are four times as many at most', () => {
    const inFlight = new InFlight(SLOTS)
    for (let round = 0; round < 4; round++) {
      expect(inFlight.free).toBe(SLOTS)
      begun(inFlight, `w${round}`, round * 3_000, SLOTS)
      expect(inFlight.free).toBe(0)
      inFlight.updateSlow(round * 3_000 + 1_999)
      expect(inFlight.usedBy('first')).toBe(SLOTS)
      inFlight.updateSlow(round * 3_000 + 2_000)
      expect(inFlight.usedBy('first')).toBe(0)
    }
    expect({ free: inFlight.free, count: inFlight.count }).toEqual({ free: 0, count: 4 * SLOTS })
  })
})

describe('a webhook', () => {
  it('has the usual limit while nothing is known of it', () => {
    const inFlight = new InFlight(SLOTS)
    const [one] = begun(inFlight, 'a', 0)
    if (one) inFlight.end(one, true)
    expect(inFlight.limits(0)).toEqual([])
  })

  it('gets half for every attempt that hangs, down to one, and all again when they have ended', () => {
    const inFlight = new InFlight(SLOTS)
    const hanging = begun(inFlight, 'a', 0, 7)
    const limits = []
    for (const nowMs of [1_000, 2_000]) {
      inFlight.updateSlow(nowMs)
      limits.push(limitOf(inFlight, nowMs))
    }
    expect(limits).toEqual([undefined, 1])
    for (const each of hanging) inFlight.end(each, undefined)
    expect(limitOf(inFlight, 2_000)).toBeUndefined()
  })

  it('gets half for every timeout, and one more for every delivery that it accepts', () => {
    const inFlight = new InFlight(SLOTS)
    const limits = [false, false, true, undefined, true].map((hasKeptUp) => {
      const [one] = begun(inFlight, 'a', 0)
      if (one) inFlight.end(one, hasKeptUp)
      return limitOf(inFlight, 0)
    })
    expect(limits).toEqual([16, 8, 9, 9, 10])
  })

  it('that is probed has one until it accepts a delivery', () => {
    const inFlight = new InFlight(SLOTS)
    inFlight.probe('a')
    expect(limitOf(inFlight, 0)).toBe(1)
    const [one] = begun(inFlight, 'a', 0)
    if (one) inFlight.end(one, true)
    expect(limitOf(inFlight, 0)).toBe(2)
  })

  it('that asks to wait gets nothing until then, for a minute at most', () => {
    const inFlight = new InFlight(SLOTS)
    inFlight.pause('a', 5_000, 0)
    inFlight.pause('b', 3_600_000, 0)
    expect([4_999, 5_000].map((nowMs) => limitOf(inFlight, nowMs))).toEqual([0, undefined])
    expect([59_999, 60_000].map((nowMs) => limitOf(inFlight, nowMs, 'b'))).toEqual([0, undefined])
  })

  it('of which no attempt began for an hour is forgotten, whatever became of the last one', () => {
    const inFlight = new InFlight(SLOTS)
    for (let n = 0; n < 1_000; n++) {
      const [one] = begun(inFlight, `w${n}`, n)
      if (one === undefined) throw new Error('nothing began')
      inFlight.end(one, false)
      inFlight.endLease(one, 'first')
    }
    const [hanging] = begun(inFlight, 'hanging', 1_000)
    inFlight.updateSlow(10_000)
    expect(inFlight.limits(60_000)).toHaveLength(1_001)
    expect(inFlight.limits(3_600_500)).toHaveLength(500)
    expect(inFlight.limits(7_200_000)).toEqual([{ key: 'hanging', leases: 16 }])
    if (hanging) inFlight.end(hanging, undefined)
    expect(inFlight.limits(7_200_000)).toEqual([])
  })

  it('that had all leases it may says so when half of them have ended', () => {
    const inFlight = new InFlight(64)
    const all = begun(inFlight, 'a', 0, 16)
    for (const each of all) inFlight.end(each, true)
    all.push(...begun(inFlight, 'a', 0, 16))
    const said = all.map((each) => inFlight.endLease(each, 'first'))
    expect(said.indexOf(true)).toBe(15)
    expect(said.filter(Boolean)).toHaveLength(1)
  })
})
