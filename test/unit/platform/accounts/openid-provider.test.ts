import { afterAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { type Consent, consentFixture, grantOf, REDIRECT_URI, STATE } from './consent-fixture.ts'
import { CLIENT_KEY, CLIENT_SECRET, startOpenIdProvider } from './openid-customer.ts'

const fixture = await consentFixture(() => new Date())
const { begin, complete, refresh, revoke } = fixture
const provider = await startOpenIdProvider(REDIRECT_URI)
afterAll(() => provider[Symbol.asyncDispose]())

/** A definition for the provider. A refresh token needs the scope and the prompt. */
function consentWith(config: JsonObject = {}): Consent {
  return {
    config: {
      client: { id: 'header', secret: CLIENT_SECRET },
      auth: {
        tokenHost: provider.url,
        tokenPath: '/token',
        authorizePath: '/auth',
        revokePath: '/token/revocation',
        issuer: provider.url,
        issuerRequired: true,
      },
      scope: ['openid', 'offline_access'],
      authorizeParams: { prompt: 'consent', nonce: '{{random}}' },
      ...config,
    },
  }
}

/** Consent and exchange. */
async function connect(consent: Consent) {
  const { url, secrets } = await begin(consent)
  const { params } = await provider.consent(url)
  return { params, secrets, grant: grantOf(await complete(consent, params, secrets)) }
}

describe('the authorisation code grant', () => {
  it.each([
    ['HTTP Basic', {}],
    ['parameters', { client: { id: 'body', secret: CLIENT_SECRET }, options: { authorizationMethod: 'body' } }],
    [
      'a signed assertion',
      {
        client: { id: 'key', private_key: CLIENT_KEY.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() },
        options: { authorizationMethod: 'private_key_jwt' },
      },
    ],
  ])('obtains, refreshes and revokes a token with a client that identifies itself by %s', async (_how, config) => {
    const consent = consentWith(config)
    const { params, grant } = await connect(consent)
    expect(params).toMatchObject({ state: STATE, iss: provider.url })
    expect(grant).toMatchObject({ grantedScopes: ['openid', 'offline_access'], missingScopes: [] })
    expect(grant.token.expiresAt?.getTime()).toBeGreaterThan(Date.now())
    const second = await refresh(consent, grant.token)
    if (second.kind !== 'granted') throw new Error(second.message)
    expect(second.token.accessToken).not.toBe(grant.token.accessToken)
    expect(second.token.refreshToken).not.toBe(grant.token.refreshToken)
    expect(await revoke(consent, second.token)).toEqual({ kind: 'revoked' })
    expect(await refresh(consent, second.token)).toMatchObject({ kind: 'grant_refused' })
    expect(await revoke(consent, second.token)).toEqual({ kind: 'revoked' })
  })

  it('reads a form that the provider posts', async () => {
    const consent = consentWith({ authorizeParams: { prompt: 'consent', response_mode: 'form_post' } })
    const { url, secrets } = await begin(consent)
    const { method, params } = await provider.consent(url)
    expect(method).toBe('POST')
    expect(grantOf(await complete(consent, params, secrets)).token.refreshToken).toBeDefined()
  })

  it('reports that the customer declined, from the recorded issuer', async () => {
    const { url, secrets } = await begin(consentWith())
    const { params } = await provider.cancel(url)
    expect(params.iss).toBe(provider.url)
    expect(await complete(consentWith(), params, secrets)).toMatchObject({ kind: 'failed', code: 'consent_denied' })
  })

  it('exchanges nothing when the redirect names another issuer', async () => {
    const { url, secrets } = await begin(consentWith())
    const { params } = await provider.consent(url)
    const mixedUp = { ...params, iss: `${provider.url}/` }
    expect(await complete(consentWith(), mixedUp, secrets)).toMatchObject({ code: 'issuer_mismatch' })
    expect(grantOf(await complete(consentWith(), params, secrets)).token.accessToken).toBeDefined()
  })

  it('is rejected without PKCE by a provider that requires it', async () => {
    const consent = consentWith({ pkce: false })
    const { url, secrets } = await begin(consent)
    const { params } = await provider.consent(url)
    expect(await complete(consent, params, secrets)).toMatchObject({
      code: 'provider_error',
      providerError: 'invalid_request',
    })
  })

  it('is rejected with the verifier of another consent', async () => {
    const [first, second] = [await begin(consentWith()), await begin(consentWith())]
    const { params } = await provider.consent(first.url)
    expect(await complete(consentWith(), params, second.secrets)).toMatchObject({ code: 'token_exchange_failed' })
  })

  it('kills the tokens of a code that is exchanged twice: the reason why it is exchanged once', async () => {
    const consent = consentWith()
    const { params, secrets, grant } = await connect(consent)
    expect(await complete(consent, params, secrets)).toMatchObject({ code: 'token_exchange_failed' })
    expect(await refresh(consent, grant.token)).toMatchObject({ kind: 'grant_refused' })
  })

  it('never comes back from a provider that does not know the redirect address', async () => {
    const { url } = await begin(consentWith({ authorizeParams: { redirect_uri: 'https://other.example.com/' } }))
    expect(await provider.statusOf(url)).toBe(400)
  })
})

describe('a rotated refresh token', () => {
  it('that is used twice ends the grant', async () => {
    const consent = consentWith()
    const { grant } = await connect(consent)
    const second = await refresh(consent, grant.token)
    if (second.kind !== 'granted') throw new Error(second.message)
    expect(await refresh(consent, grant.token)).toMatchObject({ kind: 'grant_refused' })
    expect(await refresh(consent, second.token)).toMatchObject({ kind: 'grant_refused' })
  })
})
