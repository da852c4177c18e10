import { createHash, createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
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

function explain(format: string, config: JsonObject, delivery: WebhookRequest, otherStage?: Uint8Array) {
  const choice = signatureSchema.parse({ format, config })
  const scope = { account: { context: {}, credentials: {}, environmentVariables: { SECRET } }, call: {} }
  return explainSignature(choice, delivery, scope, context, otherStage === undefined ? {} : { otherStage })
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

test('an old delivery says by how much, and that its signature is right', async () => {
  const old = String(Number(SECONDS) - 4000)
  const delivery = deliver({ 'x-timestamp': old, 'x-signature': mac(`${old}.${BODY}`) })
  expect(await explain('hmac', TIMED, delivery)).toMatchObject({
    timestamp: { offBySeconds: 4000, toleranceSeconds: 300 },
    matches: ['with any time of sending'],
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
      { format: 'hmac', matches: ['with string_type base64'] },
      { format: 'compare', reason: 'the secret does not match' },
    ],
  })
})

const bareSecret = SECRET.slice('whsec_'.length)
const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const publicPem = String(publicKey.export({ type: 'spki', format: 'pem' }))

const MISTAKES: readonly (readonly [match: string, config: JsonObject, signature: string])[] = [
  ['with string_type base64', HMAC, mac(BODY, SECRET, 'base64')],
  ['with the algorithm sha1', HMAC, createHmac('sha1', SECRET).update(BODY).digest('hex')],
  ['with the secret without whsec_', HMAC, mac(BODY, bareSecret)],
  ['with the secret without whsec_, in base64', HMAC, mac(BODY, Buffer.from(bareSecret, 'base64'))],
  ['with the prefix as a part of the secret', { ...HMAC, secret_prefix: 'whsec_' }, mac(BODY)],
  ['with the signature_prefix sha256=', HMAC, `sha256=${mac(BODY)}`],
  ['without a signature_prefix', { ...HMAC, signature_prefix: 'v0=' }, mac(BODY)],
  ['with the separator colon', { ...HMAC, parts: ['v0', '$body'], separator: '.' }, mac(`v0:${BODY}`)],
  ['over the body without the white space around it', HMAC, mac(BODY.trim())],
  ['over the body with a line break at its end', HMAC, mac(`${BODY}\n`)],
  ['over the JSON written anew, compact', HMAC, mac('{"id":"evt_1","note":"hä/b"}')],
  ['over the JSON written anew, indented by 2', HMAC, mac('{\n  "id": "evt_1",\n  "note": "hä/b"\n}')],
  ['over the JSON written anew, with \\u escapes', HMAC, mac('{"id":"evt_1","note":"h\\u00e4/b"}')],
  ['over the JSON written anew, with \\u escapes and \\/', HMAC, mac('{"id":"evt_1","note":"h\\u00e4\\/b"}')],
  ['without the body', { ...HMAC, parts: ['v0', '$body'] }, mac('v0')],
  ['over the URL with the other scheme', { ...HMAC, parts: ['$url'] }, mac(ADDRESS.replace('https', 'http'))],
  ['over the URL with its port', { ...HMAC, parts: ['$url'] }, mac(ADDRESS.replace('.com', '.com:443'))],
  ['over the URL without its query', { ...HMAC, parts: ['$url'] }, mac(ADDRESS.split('?')[0] ?? '')],
  [
    'over the URL with a slash at the end of its path',
    { ...HMAC, parts: ['$url', '$body'] },
    mac(ADDRESS.replace('?', '/?') + BODY),
  ],
]

describe('a common mistake is named', () => {
  test.each(MISTAKES)('%s', async (match, config, signature) => {
    const explanation = await explain('hmac', config, deliver({ 'x-signature': signature }))
    expect(explanation?.matches).toContain(match)
  })

  test('over the body at the other body_stage', async () => {
    const delivery = deliver({ 'x-signature': mac(BODY) }, 'compressed')
    const explanation = await explain('hmac', HMAC, delivery, Buffer.from(BODY))
    expect(explanation?.matches).toEqual(['over the body at the other body_stage'])
  })

  test('of Standard Webhooks', async () => {
    const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': SECONDS }
    const signature = `v1,${mac(`msg_1.${SECONDS}.${BODY}`, SECRET, 'base64')}`
    const delivery = deliver({ ...headers, 'webhook-signature': signature })
    const explanation = await explain('standard_webhooks', { secret: '{{env.SECRET}}' }, delivery)
    expect(explanation?.matches).toEqual(['with the prefix as a part of the secret, as text'])
  })

  test('of a public key', async () => {
    const config = {
      algorithm: 'ed25519',
      public_key: publicPem,
      parts: ['$body'],
      compare_with: '$header.x-signature',
      string_type: 'hex',
    }
    const signature = sign(null, Buffer.from(BODY), privateKey).toString('base64')
    const explanation = await explain('asymmetric', config, deliver({ 'x-signature': signature }))
    expect(explanation?.matches).toContain('with string_type base64')
  })
})

test('a forged delivery matches no variation', async () => {
  const explanation = await explain('hmac', HMAC, deliver({ 'x-signature': mac(BODY, 'another secret') }))
  expect(explanation).not.toHaveProperty('matches')
})

test('an explanation holds neither the secret, nor the expected signature, nor a hash of a part with placeholders', async () => {
  const config = { parts: ['{{env.SECRET}}', '$body'], compare_with: '$header.x-signature' }
  const expected = createHash('sha256')
    .update(SECRET + BODY)
    .digest('hex')
  const explanation = await explain('hash', config, deliver({ 'x-signature': 'x' }))
  expect(explanation?.parts?.[0]).toEqual({ source: '{{env.SECRET}}' })
  const text = JSON.stringify(explanation)
  for (const hidden of [SECRET, bareSecret, prefixOf(SECRET), expected.slice(0, 12)]) expect(text).not.toContain(hidden)
})
