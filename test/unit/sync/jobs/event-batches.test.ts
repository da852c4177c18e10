import { expect, it } from 'vitest'
import type { Json } from '../../../../src/foundation/json/index.ts'
import { takeEvent } from '../../../../src/sync/jobs/webhook-sink.ts'

it('writes the records of a page batch by batch, as each is asked for', () => {
  let written = 0
  const record = { toJSON: () => ++written }
  const records = Array.from({ length: 1_200 }, () => record as unknown as Json)
  expect(takeEvent(records, 0, 10_000)).toMatchObject({ texts: { length: 500 }, isLast: false })
  expect(written).toBe(500)
  expect(takeEvent(records, 500, 10_000)).toMatchObject({ texts: { length: 500 }, isLast: false })
  expect(takeEvent(records, 1_000, 10_000)).toMatchObject({ texts: { length: 200 }, isLast: true })
})

it('an empty page is one empty batch', () => {
  expect(takeEvent([], 0, 100)).toEqual({ texts: [], bytes: 0, isLast: true })
})

it('a record that is larger than an event is a batch of its own', () => {
  expect(takeEvent(['x'.repeat(500), 'y'], 0, 100)).toMatchObject({ texts: { length: 1 }, bytes: 503, isLast: false })
})
