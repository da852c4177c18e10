import { expect, it } from 'vitest'
import { OAUTH2, tokensFixture } from './token-fixture.ts'

const { installed, connect, process } = await tokensFixture()

const URL = 'https://api.example.com'
const OAUTH1 = {
  ...OAUTH2,
  authorization: {
    format: 'oauth1',
    config: { consumer_key: 'app', consumer_secret: '{{env.CONSUMER_SECRET}}' },
  },
  credentials: {
    format: 'oauth1',
    config: { request_token_url: URL, authorize_url: URL, access_token_url: URL },
  },
}

it('imports a token of OAuth 1.0a with its secret, which placeholders read', async () => {
  const environmentIntegrationId = await installed(OAUTH1)
  const credentials = { access_token: 'the-token', token_secret: 'the-token-secret' }
  const { id, authenticationMethod } = await connect({ environmentIntegrationId, credentials })
  expect(authenticationMethod).toBe('vendor_oauth')
  const { access } = await process().load(id, 'activation')
  expect(access.credentials).toEqual({
    oauth: { token: { access_token: 'the-token', token_secret: 'the-token-secret' } },
  })
})

it('rejects an account of OAuth 1.0a without a token: it needs the consent of the customer', async () => {
  const environmentIntegrationId = await installed(OAUTH1)
  await expect(connect({ environmentIntegrationId, credentials: {} })).rejects.toMatchObject({
    reason: 'CREDENTIALS_INVALID',
    violations: [expect.objectContaining({ field: 'authentication_method', rule: 'method.not_headless' })],
  })
})
