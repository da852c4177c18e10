import { createHash, createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { createKeySource, explainSignature, type WebhookRequest } from '../../../../src/engine/formats/index.ts'
import { signatureSchema } from '../../../../src/engine/formats/signature/registry.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { NOW, SECONDS } from './rows/delivery.ts'

const SECRET = 'whsec_Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ=='
const BODY = '{ "id": "evt_1", "note": "hä/b" }\n'
const ADDRESS = 'https://hooks.example.com/integrated-account-webhook/1?a=b'
const now = () => new Date(NOW)
const context = { now, keys: createKeySource({ now, fetchKey: async () => ({ status: 404, body: Buffer.alloc(0) }) }) }

const HMAC = { secret: '{{env.SECRET}}', parts: ['$body'], compare_with: '$header.x-signature' }
const TIMED = {
  ...HMAC,
  parts: ['$header.x-timestamp', '$body'],
  separator: '.',
  timestamp: { value: '$header.x-timestamp' },
}

function mac(content: string | Uint8Array, key: string | Uint8Array = SECRET, encoding: 'hex' | 'base64' = 'hex') {
  return createHmac('sha256', key).update(content).digest(encoding)
}

function deliver(headers: Readonly<Record<string, string>>, body: string | Uint8Array = BODY): WebhookRequest {
  return { method: 'POST', url: ADDRESS, headers, query: { a: 'b' }, body: Buffer.from(body), payload: null }
}

function explain(format: string, config: JsonObject, delivery: WebhookRequest) {
  const choice = signatureSchema.parse({ format, config })
  const scope = { account: { context: {}, credentials: {}, environmentVariables: { SECRET } }, call: {} }
  return explainSignature(choice, delivery, scope, context)
}

const prefixOf = (content: string) => createHash('sha256').update(content).digest('hex').slice(0, 12)

test('an accepted delivery has no explanation', async () => {
  expect(await explain('hmac', HMAC, deliver({ 'x-signature': mac(BODY) }))).toBeUndefined()
})

test('the signed parts are named with length and a prefix of their hash, missing ones with the reason', async () => {
  const delivery = deliver({ 'x-signature': mac('other') })
  expect(await explain('hmac', TIMED, delivery)).toEqual({
    format: 'hmac',
    reason: 'the header x-timestamp is missing',
    parts: [
      { source: '$header.x-timestamp', problem: 'the header x-timestamp is missing' },
      { source: '$body', bytes: Buffer.byteLength(BODY), sha256: prefixOf(BODY) },
    ],
    signatures: [{ source: '$header.x-signature' }],
    timestamp: { source: '$header.x-timestamp', toleranceSeconds: 300, problem: 'the header x-timestamp is missing' },
  })
})

test('an old delivery says by how much', async () => {
  const old = String(Number(SECONDS) - 4000)
  const delivery = deliver({ 'x-timestamp': old, 'x-signature': mac(`${old}.${BODY}`) })
  expect(await explain('hmac', TIMED, delivery)).toMatchObject({
    timestamp: { offBySeconds: 4000, toleranceSeconds: 300 },
  })
})

test.each([
  ['seconds', `${SECONDS}000`, 'looks like milliseconds, but is read as seconds: set the unit'],
  ['milliseconds', SECONDS, 'looks like seconds, but is read as milliseconds: set the unit'],
])('a time in another unit than %s is named', async (unit, sent, problem) => {
  const config = { ...TIMED, timestamp: { value: '$header.x-timestamp', unit } }
  const delivery = deliver({ 'x-timestamp': sent, 'x-signature': mac(`${sent}.${BODY}`) })
  expect(await explain('hmac', config, delivery)).toMatchObject({ timestamp: { problem } })
})

test('a missing signature is named', async () => {
  expect(await explain('hmac', HMAC, deliver({}))).toMatchObject({
    signatures: [{ source: '$header.x-signature', problem: 'the header x-signature is missing' }],
  })
})

test('members of a combination are explained one by one', async () => {
  const other = { format: 'compare', config: { secret: '{{env.SECRET}}', compare_with: '$header.x-token' } }
  const config = { verifications: [{ format: 'hmac', config: HMAC }, other] }
  const delivery = deliver({ 'x-signature': mac(BODY, SECRET, 'base64'), 'x-token': 'x' })
  expect(await explain('any_of', config, delivery)).toMatchObject({
    format: 'any_of',
    members: [
      { format: 'hmac', reason: 'the signature does not match' },
      { format: 'compare', reason: 'the secret does not match' },
    ],
  })
})

test('an explanation holds neither the secret, nor the expected signature, nor a hash of a part with placeholders', async () => {
  const config = { parts: ['{{env.SECRET}}', '$body'], compare_with: '$header.x-signature' }
  const expected = createHash('sha256')
    .update(SECRET + BODY)
    .digest('hex')
  const explanation = await explain('hash', config, deliver({ 'x-signature': 'x' }))
  expect(explanation?.parts?.[0]).toEqual({ source: '{{env.SECRET}}' })
  const text = JSON.stringify(explanation)
  for (const hidden of [SECRET, SECRET.slice('whsec_'.length), prefixOf(SECRET), expected.slice(0, 12)])
    expect(text).not.toContain(hidden)
})
