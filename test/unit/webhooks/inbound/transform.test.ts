import { createHmac } from 'node:crypto'
import { afterAll, describe, expect, it, test } from 'vitest'
import { compilePlan, resolveConfig } from '../../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { type ParsedRequest, parseRequest } from '../../../../src/webhooks/inbound/parsed-request.ts'
import { transformRequest } from '../../../../src/webhooks/inbound/transform.ts'
import { receiveFixture, SECRET } from './receive-fixture.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

const BODY = { t: 'moved', wrapped: { body: 'inner', headers: { 'x-token': 'forged' }, path: '/forged' } }

async function received(): Promise<ParsedRequest> {
  const headers = [
    ['Content-Type', 'application/json'],
    ['X-Id', '7'],
  ] as const
  const body = Buffer.from(JSON.stringify(BODY))
  return await parseRequest(
    { method: 'POST', path: '/hook/1', query: 'a=%7E1&a=2&b=', headers, body },
    'https://app.example',
    { owner: 'one' },
    { bodyBytesMax: 1_048_576, formJsonField: undefined },
  )
}

async function transform(expression: string) {
  const config = { base_url: 'https://api.example.com', resources: {}, webhook: { payload_transform: expression } }
  const { webhook } = compilePlan(resolveConfig(config, {}).config)
  if (webhook === undefined) throw new Error('no webhook')
  const values = { context: {}, credentials: {}, environmentVariables: {} }
  return await transformRequest({ evaluator }, { webhook, environmentId: 'e', values }, await received(), false)
}

describe('payload_transform', () => {
  it.each<[string, string, Partial<ParsedRequest>, JsonObject]>([
    ['a body', '{"body": body.t}', { body: 'moved' }, { changed: ['body'] }],
    ['another result', 'body.t', { body: 'moved' }, { changed: ['body'] }],
    ['nothing', 'body.none', { body: null }, { changed: ['body'] }],
    [
      'headers',
      '{"body": body, "headers": {"X-Token": body.t, "n": 1, "gone": null}}',
      { headers: { 'x-token': 'moved', n: '1' } },
      { changed: ['headers'], headers: { set: ['x-token', 'n'], removed: ['content-type', 'x-id'] } },
    ],
    [
      'one more header',
      '$merge([$, {"headers": $merge([headers, {"x-token": body.t}])}])',
      { headers: { 'content-type': 'application/json', 'x-id': '7', 'x-token': 'moved' }, body: BODY },
      { changed: ['headers'], headers: { set: ['x-token'], removed: [] } },
    ],
    [
      'parameters',
      '{"body": body, "query": {"a": body.t, "c": true}}',
      { query: { a: 'moved', c: 'true' }, url: 'https://app.example/hook/1?a=moved&c=true' },
      { changed: ['query'], query: { set: ['a', 'c'], removed: ['b'] } },
    ],
    [
      'the same parameters, whose address stays as it was received',
      '{"body": body, "query": query}',
      { url: 'https://app.example/hook/1?a=%7E1&a=2&b=' },
      { changed: [] },
    ],
    ['a method', '{"body": body, "method": "put"}', { method: 'PUT' }, { changed: ['method'], method: 'PUT' }],
    [
      'a path',
      '{"body": body, "path": "/" & body.t}',
      { path: '/moved', url: 'https://app.example/moved?a=%7E1&a=2&b=' },
      { changed: ['path'], path: '/moved' },
    ],
    [
      'what only looks like a request, because the sender wrote it',
      'body.wrapped',
      { body: BODY.wrapped, path: '/hook/1' },
      { changed: ['body'] },
    ],
    [
      'a body beside members that the sender wrote',
      '$merge([body.wrapped, {"body": 1}])',
      { body: 1, path: '/hook/1', headers: { 'content-type': 'application/json', 'x-id': '7' } },
      { changed: ['body'] },
    ],
  ])('may return %s', async (_what, expression, expected, changes) => {
    const { request, changes: found } = await transform(expression)
    expect(request).toMatchObject(expected)
    if (expected.headers !== undefined) expect(request.headers).toEqual(expected.headers)
    expect(request.raw).toEqual((await received()).raw)
    expect(found).toEqual(changes)
  })

  it.each([
    ['{"body": 1, "headers": "x"}', 'payload_transform must return headers as an object of texts'],
    ['{"body": 1, "headers": {"a": {}}}', 'payload_transform must return headers as an object of texts'],
    ['{"body": 1, "query": [1]}', 'payload_transform must return query as an object of texts'],
    ['{"body": 1, "method": 7}', 'payload_transform must return method as'],
    ['{"body": 1, "path": "x?y"}', 'payload_transform must return path as'],
  ])('%s fails with the member that is wrong', async (expression, message) => {
    await expect(transform(expression)).rejects.toThrow(message)
  })
})

const { address, send, stored } = await receiveFixture()

/** How a transform moves the field `t` of the body into each member, and how a signature and an expression read it there. */
const MOVED: readonly (readonly [member: string, transform: string, signed: string, read: string])[] = [
  ['body', '{"body": {"at": body.t}}', '$payload.at', 'body.at'],
  ['headers', '{"body": body, "headers": $merge([headers, {"x-at": body.t}])}', '$header.x-at', 'headers."x-at"'],
  ['query', '{"body": body, "query": {"at": body.t}}', '$query.at', 'query.at'],
  ['method', '{"body": body, "method": body.t}', '$method', 'method'],
  ['path', '{"body": body, "path": body.t}', '$path', 'path'],
]
const BY_MEMBER: Readonly<Record<string, string>> = { method: 'PATCH', path: '/signed/path' }

describe.each(MOVED)('the %s that payload_transform returns', (member, payload_transform, signed, read) => {
  const value = BY_MEMBER[member] ?? 'a-signed-value'
  const body = JSON.stringify({ t: value })

  test('counts for the signature; what is stored is as it was received', async () => {
    const config = { secret: SECRET, parts: [signed, '.', '$body'], compare_with: '$header.x-signature' }
    const { path, accountId } = await address({
      payload_transform,
      signature_verification: { format: 'hmac', config },
    })
    const signatureOver = (text: string) => createHmac('sha256', SECRET).update(`${text}.${body}`).digest('hex')
    expect((await send(path, { body, headers: { 'x-signature': signatureOver(value) } })).status).toBe(200)
    expect((await send(path, { body, headers: { 'x-signature': signatureOver('POST') } })).status).toBe(401)
    const [accepted] = await stored(accountId)
    expect(accepted).toMatchObject({ method: 'POST', query: '', trace: { transform: { changed: [member] } } })
    expect(accepted?.body.toString()).toBe(body)
    expect(accepted?.headers.map(([name]) => name.toLowerCase())).not.toContain('x-at')
  })

  test('counts for the handshake', async () => {
    const handle_verification = `{"type": "verify", "verification_response": {"body": ${read}}}`
    const { path } = await address({ payload_transform, handle_verification })
    expect((await send(path, { body })).text).toBe(value)
  })

  test('is not signed by a request that is too large to be transformed', async () => {
    const config = { secret: SECRET, parts: [signed], compare_with: '$header.x-signature' }
    const { path, accountId } = await address({
      payload_transform,
      signature_verification: { format: 'hmac', config },
    })
    const large = JSON.stringify({ t: value, padding: 'x'.repeat(300_000) })
    const signature = createHmac('sha256', SECRET).update(value).digest('hex')
    expect((await send(path, { body: large, headers: { 'x-signature': signature } })).status).toBe(401)
    expect(await stored(accountId)).toMatchObject([
      { state: 'rejected', trace: { signature: { reason: expect.stringContaining('payload_transform') } } },
    ])
  })
})
