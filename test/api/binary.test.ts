import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { CallResponseSchema, ListPagesResponseSchema } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import { encodeBinaryInSlices, holdsLargeJson } from '../../src/api/messages/binary.ts'
import { encodeBinary } from '../../src/api/messages/codec.ts'
import { valueFrom } from '../../src/api/messages/struct.ts'
import { type Json, parseJson } from '../../src/base/index.ts'
import { turnsDuring } from '../support/event-loop-turns.ts'

const records: Json[] = Array.from({ length: 4_000 }, (_, id) => ({ id, name: 'é', tags: ['x', null, true, {}] }))
const RESULTS: Readonly<Record<string, Json>> = {
  records,
  'a list in an object in a list': [{ a: records, ü: [] }, [records], 'x'.repeat(100_000)],
  'many members': Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`k${at}`, at])),
  'numbers beyond doubles': parseJson(`[${'12345678901234567890,1.10,'.repeat(5_000)}-0]`),
  'a text': 'x'.repeat(100_000),
}
type Answer = MessageInitShape<typeof CallResponseSchema>
const answerWith = (result: Json): Answer => ({ status: 200, headers: { a: 'b' }, result: valueFrom(result) })

describe.each(Object.entries(RESULTS))('a large answer in binary: %s', (_name, result) => {
  it('is the same message as when it is encoded at once', async () => {
    const init = { ...answerWith(result), raw: valueFrom([result, {}]), nextCursor: 'c' }
    expect(holdsLargeJson(CallResponseSchema, init)).toBe(true)
    const inSlices = fromBinary(CallResponseSchema, await encodeBinaryInSlices(CallResponseSchema, init))
    const atOnce = fromBinary(CallResponseSchema, encodeBinary(CallResponseSchema, init))
    expect(Buffer.compare(toBinary(CallResponseSchema, inSlices), toBinary(CallResponseSchema, atOnce))).toBe(0)
  })
})

it('lets other work run while a large answer is encoded', async () => {
  const init = answerWith(records)
  expect(await turnsDuring(() => encodeBinaryInSlices(CallResponseSchema, init))).toBeGreaterThan(4)
})

it('encodes the records of a page within the message that holds them', async () => {
  const page = { number: 1, stopReason: 'empty', records: records.map(valueFrom) }
  const init: MessageInitShape<typeof ListPagesResponseSchema> = { step: { case: 'page', value: page } }
  expect(holdsLargeJson(ListPagesResponseSchema, init)).toBe(true)
  const bytes = await encodeBinaryInSlices(ListPagesResponseSchema, init)
  expect(fromBinary(ListPagesResponseSchema, bytes)).toEqual(
    fromBinary(ListPagesResponseSchema, encodeBinary(ListPagesResponseSchema, init)),
  )
})

it('a small answer is encoded at once', () => {
  expect(holdsLargeJson(CallResponseSchema, answerWith({ a: [1] }))).toBe(false)
  expect(holdsLargeJson(CallResponseSchema, create(CallResponseSchema))).toBe(false)
})
