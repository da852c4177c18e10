import { createHmac } from 'node:crypto'
import { describe, expect, it, test } from 'vitest'
import { findWebhookWarnings } from '../../../../src/engine/definitions/check-webhook.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { readHandshake } from '../../../../src/webhooks/inbound/handshake.ts'
import { receiveFixture, SECRET, SIGNED, signatureOf, type TestRequest } from './receive-fixture.ts'

const { app, address, send, sendSigned, stored, account } = await receiveFixture()

const ZOOM = `body.event = "endpoint.url_validation" ? {"type": "verify", "verification_response": {"status_code": 200, "body": {
  "plainToken": body.payload.plainToken, "encryptedToken": $hmac(body.payload.plainToken, environment_variables.TOKEN)}}}`
const ECHO_QUERY = 'query.challenge ? {"type": "verify", "verification_response": {"body": query.challenge}}'
const HOOK_SECRET = `$exists(headers."x-hook-secret") ? {"type": "verify", "update_context": {"hook_secret": headers."x-hook-secret"},
  "verification_response": {"status_code": 200, "headers": {"X-Hook-Secret": headers."x-hook-secret"}}}`

/** A third party asks for one thing, and gets one answer. */
interface Shape {
  readonly webhook: JsonObject
  /** Status of the account; absent: active. */
  readonly account?: string
  readonly request: TestRequest
  readonly status: number
  readonly text: string
  readonly headers?: Readonly<Record<string, string>>
}

const SHAPES: Readonly<Record<string, Shape>> = {
  'a field of the body as text (Slack)': {
    webhook: {
      ...SIGNED,
      handle_verification:
        'body.type = "url_verification" ? {"type": "verify", "verification_response": {"body": body.challenge}}',
    },
    request: { body: '{"type": "url_verification", "challenge": "abc"}' },
    status: 200,
    text: 'abc',
  },
  'a field of the body as JSON (Monday)': {
    webhook: {
      handle_verification:
        '$exists(body.challenge) ? {"type": "verify", "verification_response": {"body": {"challenge": body.challenge}}}',
    },
    request: { body: '{"challenge": "abc"}' },
    status: 200,
    text: '{"challenge":"abc"}',
  },
  'a parameter as text, not to be sniffed (Dropbox)': {
    webhook: { ...SIGNED, handle_verification: ECHO_QUERY },
    request: { method: 'GET', path: '?challenge=a%26b' },
    status: 200,
    text: 'a&b',
    headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
  },
  'a parameter after a check of a token (Meta)': {
    webhook: {
      ...SIGNED,
      handle_verification: `query."hub.mode" = "subscribe" ? (query."hub.verify_token" = environment_variables.TOKEN
        ? {"type": "verify", "verification_response": {"body": query."hub.challenge"}}
        : {"type": "verify", "verification_response": {"status_code": 403, "body": ""}})`,
    },
    request: { method: 'GET', path: `?hub.mode=subscribe&hub.verify_token=${SECRET}&hub.challenge=12` },
    status: 200,
    text: '12',
  },
  'a wrong token (Meta)': {
    webhook: {
      handle_verification:
        'query.token = environment_variables.TOKEN ? {"type": "verify"} : {"type": "verify", "verification_response": {"status_code": 403, "body": ""}}',
    },
    request: { method: 'GET', path: '?token=wrong' },
    status: 403,
    text: '',
  },
  'a parameter of a POST without a body (Microsoft Graph)': {
    webhook: {
      ...SIGNED,
      handle_verification:
        'query.validationToken ? {"type": "verify", "verification_response": {"body": query.validationToken}}',
    },
    request: { body: '', path: '?validationToken=Validation%3A%20Testing%20%3Cx%3E' },
    status: 200,
    text: 'Validation: Testing <x>',
  },
  'an HMAC of a token (Zoom)': {
    webhook: { ...SIGNED, handle_verification: ZOOM },
    request: { body: '{"event": "endpoint.url_validation", "payload": {"plainToken": "p"}}' },
    status: 200,
    text: JSON.stringify({ plainToken: 'p', encryptedToken: createHmac('sha256', SECRET).update('p').digest('hex') }),
  },
  'a header of the request in the response (Asana)': {
    webhook: { handle_verification: HOOK_SECRET, secret_context: ['hook_secret'] },
    account: 'connecting',
    request: { body: '', headers: { 'x-hook-secret': 's-1' } },
    status: 200,
    text: '{}',
    headers: { 'x-hook-secret': 's-1' },
  },
  'a HEAD probe (Trello)': { webhook: SIGNED, request: { method: 'HEAD' }, status: 200, text: '' },
  'a badly signed probe (Xero)': {
    webhook: SIGNED,
    request: { body: '{}', headers: { 'x-signature': signatureOf('{ }') } },
    status: 401,
    text: '',
  },
  'a signed ping (Discord)': {
    webhook: {
      ...SIGNED,
      handle_verification: 'body.type = 1 ? {"type": "meta", "verification_response": {"body": {"type": 1}}}',
    },
    request: { body: '{"type":1}', headers: { 'x-signature': signatureOf('{"type":1}') } },
    status: 200,
    text: '{"type":1}',
  },
  'a ping with a bad signature (Discord)': {
    webhook: {
      ...SIGNED,
      handle_verification: 'body.type = 1 ? {"type": "meta", "verification_response": {"body": {"type": 1}}}',
    },
    request: { body: '{"type":1}', headers: { 'x-signature': signatureOf('') } },
    status: 401,
    text: '',
  },
}

describe('a handshake', () => {
  test.each(Object.entries(SHAPES))(
    '%s is answered',
    async (_shape, { webhook, account = 'active', request, status, text, headers = {} }) => {
      const { path } = await address(webhook, { status: account, variables: { TOKEN: SECRET } })
      const answer = await send(path, request)
      expect([answer.status, answer.text]).toEqual([status, text])
      for (const [name, value] of Object.entries(headers)) expect(answer.headers.get(name)).toBe(value)
    },
  )

  it('is no event, and kept for a day', async () => {
    const { path, accountId } = await address({ handle_verification: ECHO_QUERY })
    await send(path, { method: 'GET', path: '?challenge=a' })
    expect(await stored(accountId)).toEqual([
      expect.objectContaining({ state: 'handshake', isQueued: false, key: null }),
    ])
  })

  it('whose expression fails leaves genuine deliveries accepted, and forged ones rejected', async () => {
    const { path, accountId } = await address({ ...SIGNED, handle_verification: '$error("no")' })
    expect((await sendSigned(path, '{}')).status).toBe(200)
    expect((await send(path, { body: '{}' })).status).toBe(401)
    const [accepted] = await stored(accountId)
    expect(accepted).toMatchObject({ state: 'received', trace: { handshake: { reason: 'EXPRESSION_FAILED' } } })
  })

  it('reads of the secrets those that it names', async () => {
    const seen =
      '{"type": "verify", "verification_response": {"body": {"named": env.TOKEN, "all": $keys(environment_variables)}}}'
    const { path } = await address(
      { handle_verification: seen },
      {
        variables: { TOKEN: 't', OTHER_SECRET: 'o', REGION: 'eu' },
      },
    )
    expect((await send(path, { body: '{}' })).text).toBe('{"named":"t","all":["TOKEN","REGION"]}')
  })
})

describe('a secret that a handshake brings', () => {
  const webhook = {
    signature_verification: {
      format: 'hmac',
      config: { secret: '{{connection.webhook.hook_secret}}', parts: ['$body'], compare_with: '$header.x-signature' },
    },
    handle_verification: HOOK_SECRET,
    secret_context: ['hook_secret'],
  }
  const signedBy = (secret: string) => ({ body: '{}', headers: { 'x-signature': signatureOf('{}', secret) } })
  const bring = (path: string, secret: string) => send(path, { body: '', headers: { 'x-hook-secret': secret } })

  /** An account that was being connected until its handshake brought `SECRET`. */
  async function agreed() {
    const found = await address(webhook, { status: 'connecting' })
    expect((await sendSigned(found.path, '{}')).status).toBe(401)
    expect((await bring(found.path, SECRET)).status).toBe(200)
    await execute(app.database.pool, "update integrated_account set status = 'active' where id = :id", {
      id: found.accountId,
    })
    return found
  }

  it('verifies the deliveries after it, and is neither shown nor stored as text', async () => {
    const { path, accountId } = await agreed()
    expect((await sendSigned(path, '{}')).status).toBe(200)
    expect(JSON.stringify(await account(accountId))).not.toContain(SECRET)
    expect(JSON.stringify(await stored(accountId))).not.toContain(SECRET)
  })

  it('is not replaced by a sender that does not know it', async () => {
    const { path } = await agreed()
    expect((await bring(path, 'the secret of a forger')).status).toBe(401)
    expect((await bring(path, SECRET)).status).toBe(200)
    expect((await sendSigned(path, '{}')).status).toBe(200)
  })

  it('is not taken while the account is neither being connected nor subscribed', async () => {
    const { path, accountId } = await address(webhook)
    expect((await bring(path, 'the secret of a forger')).status).toBe(401)
    expect((await account(accountId)).status).toBe('active')
    expect((await send(path, signedBy('the secret of a forger'))).status).toBe(401)
  })

  it.each([
    ['one that wins', '{{environment_variables.CONFIGURED|connection.webhook.hook_secret}}'],
    ['one that the handshake would replace', '{{connection.webhook.hook_secret|environment_variables.CONFIGURED}}'],
  ])('is not planted beside a configured secret: %s', async (_what, secret) => {
    const config = { ...webhook.signature_verification.config, secret }
    const { path, installationId } = await address(
      { ...webhook, signature_verification: { format: 'hmac', config } },
      { status: 'connecting', variables: { CONFIGURED: SECRET } },
    )
    for (const each of [path, `/environment-integration-webhook/${installationId}`]) {
      expect((await bring(each, 'the secret of a forger')).status).toBe(401)
      expect((await send(each, signedBy('the secret of a forger'))).status).toBe(401)
      expect((await sendSigned(each, '{}')).status).toBe(200)
    }
  })

  it('is replaced while the account is being connected', async () => {
    const { path } = await address(webhook, { status: 'connecting' })
    await bring(path, 'the first secret')
    expect((await bring(path, SECRET)).status).toBe(200)
    expect((await sendSigned(path, '{}')).status).toBe(200)
  })

  it('of an installation verifies what comes to its address', async () => {
    const { installationId } = await address(webhook)
    const path = `/environment-integration-webhook/${installationId}`
    expect((await bring(path, SECRET)).status).toBe(200)
    expect((await bring(path, 'the secret of a forger')).status).toBe(401)
    expect((await sendSigned(path, '{}')).status).toBe(200)
  })
})

describe('an address that is to be visited', () => {
  const visit = 'body.SubscribeURL ? {"type": "verify", "verification_request": {"url": body.SubscribeURL}}'

  test.each([
    ['of another host', 'https://evil.example.com/?a'],
    ['that only looks like the host', 'https://sns.eu-1.amazonaws.com.evil.example.com/'],
    ['without TLS', 'http://sns.eu-1.amazonaws.com/'],
    ['at another port', 'https://sns.eu-1.amazonaws.com:8443/'],
    ['that is none', 'x'],
  ])('%s is not visited', async (_what, url) => {
    const { path, accountId } = await address({
      handle_verification: visit,
      verification_hosts: ['sns.*.amazonaws.com'],
    })
    await send(path, { body: JSON.stringify({ SubscribeURL: url }) })
    expect((await stored(accountId))[0]?.trace).toHaveProperty('visit.problem')
  })

  it('that does not answer makes the third party ask again', async () => {
    const { path } = await address({ handle_verification: visit, verification_hosts: ['*.invalid.test'] })
    const answer = await send(path, { body: '{"SubscribeURL": "https://sns.invalid.test/"}' })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '30'])
  })

  it('is not visited for a request with a bad signature', async () => {
    const { path, accountId } = await address({
      ...SIGNED,
      handle_verification: visit,
      verification_hosts: ['*.invalid.test'],
    })
    expect((await send(path, { body: '{"SubscribeURL": "https://sns.invalid.test/"}' })).status).toBe(401)
    expect((await stored(accountId))[0]).toMatchObject({ state: 'rejected' })
  })
})

test.each([
  ['a status below 200', { status_code: 101 }, 'status_code'],
  ['no status of HTTP', { status_code: 600 }, 'status_code'],
  ['a line break in a header', { headers: { 'X-Hook-Secret': 'a\r\nset-cookie: x=1' } }, 'X-Hook-Secret'],
  ['a long body', { body: 'x'.repeat(65_537) }, '65536 bytes'],
  ['headers that are a list', { headers: [] }, 'headers'],
])('an answer with %s is not sent', (_what, response: JsonObject, message) => {
  expect(() => readHandshake({ type: 'verify', verification_response: response })).toThrow(message)
})

test.each([200, 204, 302, 304, 410, 500, 599])('the status %d of an answer is sent', async (status_code) => {
  const handle_verification = `{"type": "verify", "verification_response": {"status_code": ${status_code}, "headers": {"location": "/x"}}}`
  const { path } = await address({ handle_verification })
  const answer = await fetch(`${app.url}${path}`, { method: 'POST', redirect: 'manual' })
  expect(answer.status).toBe(status_code)
})

test('a body of 64 KiB is sent', async () => {
  const { path } = await address({ handle_verification: '{"type": "verify", "verification_response": {"body": body}}' })
  const body = 'x'.repeat(65_536)
  expect((await send(path, { body, headers: { 'content-type': 'text/plain' } })).text).toBe(body)
})

/** Each header, and whether an answer may set it. */
const ANSWER_HEADERS: readonly (readonly [name: string, isSent: boolean])[] = [
  ['Content-Type', true],
  ['Content-Language', true],
  ['X-Hook-Secret', true],
  ['X-Anything', true],
  ['WebHook-Allowed-Origin', true],
  ['WWW-Authenticate', true],
  ['Cache-Control', true],
  ['ETag', true],
  ['Location', true],
  ['Retry-After', true],
  ['Access-Control-Allow-Origin', true],
  ['X-Accel-Redirect', false],
  ['X-Sendfile', false],
  ['Connection', false],
  ['Keep-Alive', false],
  ['Proxy-Authenticate', false],
  ['Proxy-Authorization', false],
  ['Proxy-Connection', false],
  ['TE', false],
  ['Trailer', false],
  ['Transfer-Encoding', false],
  ['Upgrade', false],
  ['Content-Length', false],
  ['Content-Encoding', false],
  ['Content-Range', false],
  ['Content-Security-Policy', false],
  ['Set-Cookie', false],
  ['Set-Cookie2', false],
  ['Cookie', false],
  ['Strict-Transport-Security', false],
  ['Clear-Site-Data', false],
  ['Alt-Svc', false],
  ['not a name', false],
]

test('each header of an answer is sent, or named in the trace and by check', async () => {
  const headers = Object.fromEntries(ANSWER_HEADERS.map(([name], index) => [name, `v${index}`]))
  const verification_response = { body: 'x', headers }
  const { path, accountId } = await address({
    handle_verification: `{"type": "verify", "verification_response": ${JSON.stringify(verification_response)}}`,
  })
  const answer = await send(path)
  const [event] = await stored(accountId)
  const { left_out } = (event?.trace.handshake ?? { left_out: [] }) as { readonly left_out: readonly string[] }
  const { webhook } = {
    webhook: { handle_verification: `{"verification_response": ${JSON.stringify(verification_response)}}` },
  }
  const warnings = findWebhookWarnings({ webhook }, 'config').filter(({ rule }) => rule === 'webhook.answer')
  for (const [index, [name, isSent]] of ANSWER_HEADERS.entries()) {
    if (/^\S+$/.test(name)) expect(answer.headers.get(name) === `v${index}`, name).toBe(isSent)
    expect(
      left_out.some((text) => text.startsWith(`${name} is left out: `)),
      name,
    ).toBe(!isSent)
    expect(
      warnings.some(({ description }) => description.includes(`the header ${name}, which is left out`)),
      name,
    ).toBe(!isSent)
  }
  expect(answer.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
})

test.each([
  ['{"status_code": 101}', 'answers with the status 101, which is not sent: it must be one from 200 to 599'],
  ['{"status": 204, "body": ""}', 'answers with status, which is not read; there are body, headers, status_code'],
])('check names what the answer %s loses', (answer, description) => {
  const handle_verification = `{"type": "verify", "verification_response": ${answer}}`
  expect(findWebhookWarnings({ webhook: { handle_verification } }, 'config')).toContainEqual({
    field: 'config.webhook.handle_verification',
    description,
    rule: 'webhook.answer',
  })
})

test('the address of a signature is that of this service, whatever Host says', async () => {
  const { path } = await address({
    signature_verification: {
      format: 'hmac',
      config: { secret: SECRET, parts: ['$url'], compare_with: '$header.x-signature' },
    },
  })
  const signature = signatureOf(`${app.url}${path}?a=1`)
  const headers = { 'x-signature': signature, 'x-forwarded-host': 'evil.example.com' }
  expect((await send(path, { body: '{}', path: '?a=1', headers })).status).toBe(200)
  expect((await send(path, { body: '{}', path: '?a=2', headers })).status).toBe(401)
})
