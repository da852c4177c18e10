import { afterAll, describe, expect, it } from 'vitest'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { createProxy } from '../../../../src/engine/proxy/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { consentFixture, grantOf, REDIRECT_URI, STATE } from './consent-fixture.ts'
import { CONSUMER, startOAuth1Server } from './oauth1-server.ts'

const fixture = await consentFixture()
const server = await startOAuth1Server()
afterAll(() => server[Symbol.asyncDispose]())

/** As Tumblr and Trello have it. */
const CREDENTIALS = {
  request_token_url: `${server.url}/oauth/request_token`,
  authorize_url: `${server.url}/oauth/authorize`,
  access_token_url: `${server.url}/oauth/access_token`,
  consumer_key: CONSUMER.key,
  consumer_secret: '{{env.CONSUMER_SECRET}}',
  requestTokenParams: { 'scope list': 'read, write' },
  authorizeParams: { name: 'Patchbay & Co', expiration: 'never' },
  context_from_token: { user_id: 'user_id' },
}
const CONSENT = {
  format: 'oauth1',
  config: CREDENTIALS,
  environmentVariables: { CONSUMER_SECRET: CONSUMER.secret },
}

/** Consent of the customer, up to the redirect. */
async function consent(config: JsonObject = CREDENTIALS) {
  const begun = await fixture.begin({ ...CONSENT, config })
  return { begun, params: Object.fromEntries(server.consent(begun.url).searchParams) }
}

it.each(['HMAC-SHA1', 'HMAC-SHA256', 'PLAINTEXT'])('obtains a token with signatures by %s', async (method) => {
  const { begun, params } = await consent({ ...CREDENTIALS, signature_method: method })
  expect(begun.url).toBe(
    `${server.url}/oauth/authorize?oauth_token=request-token&name=Patchbay%20%26%20Co&expiration=never`,
  )
  expect(begun.url).not.toContain('request-secret')
  expect(params).toEqual({ state: STATE, oauth_token: 'request-token', oauth_verifier: 'the-verifier' })
  expect(server.consent(begun.url).href).toContain(REDIRECT_URI)
  const config = { ...CREDENTIALS, signature_method: method }
  const { token } = grantOf(await fixture.complete({ ...CONSENT, config }, params, begun.secrets))
  expect(token).toMatchObject({ accessToken: 'access-token', refreshToken: undefined, expiresAt: undefined })
  expect(token.fields).toMatchObject({ token_secret: 'access-secret', user_id: '42' })
  expect(server.log.slice(-2)).toEqual(['accepted /oauth/request_token', 'accepted /oauth/access_token'])
})

it('signs calls with the token that was granted', async () => {
  const { begun, params } = await consent()
  const { token } = grantOf(await fixture.complete(CONSENT, params, begun.secrets))
  await using http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
  await using evaluator = createEvaluator()
  const plan = compilePlan({
    base_url: server.url,
    credentials: { format: 'oauth1', config: CREDENTIALS },
    authorization: {
      format: 'oauth1',
      config: { consumer_key: CONSUMER.key, consumer_secret: '{{env.CONSUMER_SECRET}}' },
    },
    resources: { user: { get: { method: 'GET', path: '/v2/user/info', query: { 'a b': "it's" } } } },
  })
  const access = {
    id: '1',
    isSandbox: false,
    context: {},
    credentials: { oauth: { token: token.fields } },
    environmentVariables: CONSENT.environmentVariables,
  }
  const engine = createProxy({ http, evaluator, clock: fastClock(new Date()) })
  const outcome = await engine.call(plan, access, { target: { kind: 'method', resource: 'user', method: 'get' } })
  expect(outcome).toMatchObject({ kind: 'ok', result: { user: { name: 'ann' } } })
})

describe('a consent fails', () => {
  it.each([
    ['when the callback is not confirmed', 'oauth_token=a&oauth_token_secret=b', 'oauth_callback_confirmed'],
    ['when there is no request token', 'oauth_callback_confirmed=true', 'no request token'],
    ['when the third party reports a problem', 'oauth_problem=consumer_key_unknown', 'consumer_key_unknown'],
  ])('%s', async (_when, text, message) => {
    server.answer('/oauth/request_token', text)
    expect(await fixture.tryBegin(CONSENT)).toMatchObject({
      kind: 'failed',
      code: 'provider_error',
      message: expect.stringContaining(message),
    })
  })

  it('when the signature is wrong, without repeating a secret', async () => {
    server.answer('/oauth/request_token', 'never')
    const wrong = { ...CONSENT, environmentVariables: { CONSUMER_SECRET: 'another-secret' } }
    expect(await fixture.tryBegin(wrong)).toMatchObject({ code: 'provider_error', message: 'signature_invalid' })
  })

  it('when the third party is away', async () => {
    server.answer('/oauth/request_token', '<html>', 503)
    expect(await fixture.tryBegin(CONSENT)).toMatchObject({ code: 'provider_unreachable' })
  })

  it.each([
    ['the customer declines', { denied: 'request-token', state: STATE }, 'consent_denied'],
    ['there is no verifier', { oauth_token: 'request-token', state: STATE }, 'consent_denied'],
    ['it is about another token', { oauth_token: 'other', oauth_verifier: 'v', state: STATE }, 'provider_error'],
  ])('when %s: nothing is exchanged', async (_when, params, code) => {
    const { begun } = await consent()
    const requests = server.log.length
    const result = await fixture.complete(CONSENT, params as Record<string, string>, begun.secrets)
    expect(result).toMatchObject({ kind: 'failed', code })
    expect(server.log).toHaveLength(requests)
  })

  it('when the exchange is rejected, without repeating verifier or token', async () => {
    const { begun, params } = await consent()
    server.answer('/oauth/access_token', 'oauth_problem=the-verifier+of+request-token+and+request-secret', 401)
    const result = await fixture.complete(CONSENT, params, begun.secrets)
    expect(result).toMatchObject({ code: 'token_exchange_failed', message: '*** of *** and ***' })
  })
})
