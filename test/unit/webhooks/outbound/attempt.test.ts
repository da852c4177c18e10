import { afterAll, expect, it } from 'vitest'
import { systemClock } from '../../../../src/foundation/base/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import { sendDeliveryRequest } from '../../../../src/webhooks/outbound/attempt.ts'
import { type ReceiverResponse, startReceiver } from '../../../support/webhook-receiver.ts'

const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
afterAll(() => http[Symbol.asyncDispose]())

async function exchangeWith(answer: ReceiverResponse) {
  await using receiver = await startReceiver(() => answer)
  const request = { headers: { 'accept-encoding': 'identity' }, body: Buffer.from('{}') }
  const target = { url: receiver.url, environmentId: 'one' }
  return await sendDeliveryRequest({ http, clock: systemClock }, target, request, new AbortController().signal)
}

it('keeps status, headers and the first 16 KiB of a response', async () => {
  const { response, totalMs, timings, errorClass } = await exchangeWith({
    status: 400,
    headers: { 'x-request': 'r-1', 'set-cookie': 'a=b' },
    body: 'y'.repeat(200_000),
  })
  expect(response).toMatchObject({ status: 400, headers: { 'x-request': 'r-1' }, text: 'y'.repeat(16 * 1024) })
  expect(response?.headers).not.toHaveProperty('set-cookie')
  expect(totalMs).toBeGreaterThanOrEqual(timings.firstByteMs ?? Number.NaN)
  expect({ errorClass, address: timings.remoteAddress }).toEqual({ errorClass: 'status_4xx', address: '127.0.0.1' })
})

it.each<[string | undefined, ReceiverResponse]>([
  [undefined, { status: 204 }],
  ['status_3xx', { status: 307, headers: { location: 'http://127.0.0.1:9/' } }],
  ['status_4xx', { status: 410 }],
  ['status_5xx', { status: 503 }],
  ['reset', 'hang-up'],
])('classifies an attempt as %s', async (expected, answer) => {
  const { errorClass, attempt } = await exchangeWith(answer)
  expect(errorClass).toBe(expected)
  expect(attempt.kind === 'accepted').toBe(expected === undefined)
})
