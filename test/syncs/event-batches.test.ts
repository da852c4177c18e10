import { expect, it } from 'vitest'
import type { Json } from '../../src/base/index.ts'
import { splitIntoEvents } from '../../src/syncs/webhook-sink.ts'

it('writes the records of a page batch by batch, as each is asked for', () => {
  let written = 0
  const record = { toJSON: () => ++written }
  const batches = splitIntoEvents(Array.from({ length: 1_200 }, () => record as unknown as Json))
  expect(written).toBe(0)
  expect(batches.next().value?.records).toHaveLength(500)
  // The record that no longer fits tells that the batch is full.
  expect(written).toBe(501)
  expect([...batches].map(({ records, isLast }) => [records.length, isLast])).toEqual([
    [500, false],
    [200, true],
  ])
})

it('an empty page is one empty batch', () => {
  expect([...splitIntoEvents([])]).toEqual([{ records: [], isLast: true }])
})
