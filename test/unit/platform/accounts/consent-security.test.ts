import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { type Consent, consentFixture, grantOf, REDIRECT_URI, STATE } from './consent-fixture.ts'
import { form } from './rows/consent.ts'

const fixture = await consentFixture()
const { upstream, begin, tryBegin, complete, revoke, refresh } = fixture

const SECRET = 'canary-of-the-client-secret'
const CODE = 'canary-of-the-code'
const CONSENT: Consent = {
  config: {
    client: { id: 'app', secret: '{{env.SECRET}}' },
    auth: { tokenHost: '{{env.HOST}}', tokenPath: '/token', revokePath: '/revoke' },
    options: { authorizationMethod: 'body' },
    fields: [{ name: 'pin', type: 'password' }],
    tokenParams: { pin: '{{pin}}' },
    refreshParams: { pin: '{{pin}}' },
    context_from_redirect: { copy: 'copy', realm: 'realm' },
  },
  environmentVariables: { SECRET },
  fields: { pin: 'canary-of-the-pin' },
}
const RETURNED = { code: CODE, state: STATE }

/** The exchange with its verifier. */
function exchangeBody(secrets: JsonObject): string {
  return form({
    grant_type: 'authorization_code',
    code: CODE,
    redirect_uri: REDIRECT_URI,
    code_verifier: String(secrets.verifier),
    client_id: 'app',
    client_secret: SECRET,
    pin: 'canary-of-the-pin',
  })
}

describe('PKCE', () => {
  it('sends the verifier itself where the third party knows the method plain alone', async () => {
    const begun = await begin({ ...CONSENT, config: { ...CONSENT.config, pkce: 'plain' } })
    const params = new URL(begun.url).searchParams
    expect(params.get('code_challenge')).toBe(begun.secrets.verifier)
    expect(params.get('code_challenge_method')).toBe('plain')
  })

  it('sends the S256 challenge of a verifier that only the exchange carries, and another one each time', async () => {
    const [begun, again] = [await begin(CONSENT), await begin(CONSENT)]
    const params = new URL(begun.url).searchParams
    const verifier = String(begun.secrets.verifier)
    expect(verifier).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(again.secrets.verifier).not.toBe(verifier)
    expect(params.get('code_challenge')).toBe(createHash('sha256').update(verifier).digest('base64url'))
    expect(params.get('code_challenge_method')).toBe('S256')
    expect(begun.url).not.toContain(verifier)
    upstream.script({
      request: 'POST /token',
      body: exchangeBody(begun.secrets),
      answer: { json: { access_token: 'a' } },
    })
    expect(grantOf(await complete(CONSENT, RETURNED, begun.secrets)).token.accessToken).toBe('a')
  })
})

describe('a message of the third party', () => {
  it.each([
    ['in JSON', (text: string) => ({ status: 400, json: { error: 'invalid_grant', error_description: text } })],
    ['in a form', (text: string) => ({ status: 400, text: form({ error: 'invalid_grant', error_description: text }) })],
    ['in a code', (text: string) => ({ status: 400, json: { error: text } })],
  ])('%s never repeats code, verifier, secrets or state', async (_where, answer) => {
    const { secrets } = await begin(CONSENT)
    const sent = exchangeBody(secrets)
    const encoded = Buffer.from(`app:${SECRET}`).toString('base64')
    upstream.script({ request: 'POST /token', body: sent, answer: answer(`${sent} ${encoded} ${CODE}`) })
    const result = await complete(CONSENT, RETURNED, secrets)
    expect(result).toMatchObject({ kind: 'failed', code: 'token_exchange_failed' })
    const shown = JSON.stringify(result)
    for (const canary of [CODE, SECRET, STATE, String(secrets.verifier), 'canary', encoded])
      expect(shown).not.toContain(canary)
  })

  it('in the redirect repeats neither code nor state', async () => {
    const { secrets } = await begin(CONSENT)
    const error_description = `${CODE} for ${STATE} of ${SECRET} by ${secrets.verifier} with canary-of-the-pin`
    const returned = { ...RETURNED, error: 'server_error', error_description }
    const result = await complete(CONSENT, returned, secrets)
    expect(result).toMatchObject({
      code: 'provider_error',
      message: 'server_error: *** for *** of *** by *** with ***',
    })
  })

  it('about a refresh or a revocation repeats no token and no secret', async () => {
    const token = {
      accessToken: 'canary-access-token',
      refreshToken: 'canary-refresh-token',
      expiresAt: undefined,
      fields: { access_token: 'canary-access-token', refresh_token: 'canary-refresh-token' },
    }
    const error_description = `canary-refresh-token canary-access-token ${SECRET}`
    const answer = { status: 400, json: { error: 'unauthorized_client', error_description } } as const
    const consent = { ...CONSENT, config: { ...CONSENT.config, fields: [], refreshParams: {} }, fields: {} }
    const client = { client_id: 'app', client_secret: SECRET }
    upstream.script(
      {
        request: 'POST /token',
        body: form({ grant_type: 'refresh_token', refresh_token: 'canary-refresh-token', ...client }),
        answer,
      },
      {
        request: 'POST /revoke',
        body: form({ token: 'canary-refresh-token', token_type_hint: 'refresh_token', ...client }),
        answer,
      },
    )
    const results = [await refresh(consent, token), await revoke(consent, token)]
    for (const result of results) expect(result).toMatchObject({ message: 'unauthorized_client: *** *** ***' })
  })
})

describe('the context of a redirect', () => {
  it('takes values, but none that holds a code, a state or a secret', async () => {
    const { secrets } = await begin(CONSENT)
    upstream.script({ request: 'POST /token', answer: { json: { access_token: 'a' } } })
    const result = await complete(CONSENT, { ...RETURNED, realm: '42', copy: `x ${SECRET}` }, secrets)
    expect(grantOf(result).context).toEqual({ realm: '42' })
  })
})

describe('a third party that does not answer', () => {
  it('fails the exchange in bounded time, and is asked once', async () => {
    const { secrets } = await begin(CONSENT)
    fixture.hurry()
    upstream.script({ request: 'POST /token', answer: { hang: true } })
    expect(await complete(CONSENT, RETURNED, secrets)).toMatchObject({ code: 'provider_unreachable' })
  })

  it('fails the exchange when its body stalls', async () => {
    let requests = 0
    const server = createServer((_request, response) => {
      requests += 1
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
      response.write('{"access_token":')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const HOST = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const consent = { ...CONSENT, environmentVariables: { SECRET, HOST } }
    const { secrets } = await begin(consent)
    fixture.hurry()
    expect(await complete(consent, RETURNED, secrets)).toMatchObject({ code: 'provider_unreachable' })
    expect(requests).toBe(1)
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
})

describe('a definition that is not complete', () => {
  it.each([
    ['a client id', { ...CONSENT, config: { ...CONSENT.config, client: { id: '{{env.CLIENT_ID}}' } } }, 'CLIENT_ID'],
    [
      'a host',
      { ...CONSENT, config: { ...CONSENT.config, auth: { tokenHost: 'https://{{shop}}.example.com' } } },
      'shop',
    ],
  ])('names %s that is missing', async (_what, consent, name) => {
    expect(await tryBegin(consent)).toMatchObject({
      kind: 'failed',
      code: 'provider_error',
      message: expect.stringContaining(name),
    })
  })
})
