import { afterAll, expect, it } from 'vitest'
import { getIntegratedAccount } from '../../../../src/platform/accounts/index.ts'
import { handleCallback, submitForm } from '../../../../src/platform/links/index.ts'
import { listen, send } from '../../../lab/browser/peers/listen.ts'
import { linksFixture } from './fixture.ts'

const { links, database, scope, install, open, read, activate } = await linksFixture()

/** The server of OAuth 1.0a: a request token for a callback, an access token for its verifier. */
const requests: string[] = []
let callback = ''
const peer = await listen((request, response) => {
  const { pathname } = new URL(request.url ?? '', 'http://peer')
  requests.push(pathname)
  const [, given] = /oauth_callback="([^"]*)"/.exec(request.headers.authorization ?? '') ?? []
  if (given !== undefined) callback = decodeURIComponent(given)
  const answers: Readonly<Record<string, string>> = {
    '/request': 'oauth_token=request-token&oauth_token_secret=request-secret-canary&oauth_callback_confirmed=true',
    '/access': 'oauth_token=access-canary&oauth_token_secret=access-secret-canary',
  }
  send(response, {
    status: 200,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: answers[pathname] ?? '',
  })
}, '127.0.0.1')
afterAll(() => peer[Symbol.asyncDispose]())

it('a consent of OAuth 1.0a connects an account; the secret of the request token does not outlive it', async () => {
  const { name } = await install({
    base_url: peer.url,
    credentials: {
      oauth1: {
        config: {
          request_token_url: `${peer.url}/request`,
          authorize_url: `${peer.url}/authorize`,
          access_token_url: `${peer.url}/access`,
          consumer_key: 'key',
          consumer_secret: 'consumer-canary',
        },
      },
    },
  })
  const ref = await open({ integrations: [name] })
  const begun = await submitForm(links, ref, {})
  if (begun.kind !== 'redirect') throw new Error(JSON.stringify(begun))
  const url = new URL(begun.url)
  expect(`${url.origin}${url.pathname}`).toBe(`${peer.url}/authorize`)
  expect(url.searchParams.get('oauth_token')).toBe('request-token')

  // The third party sends the browser to the address with which the request token was asked for.
  const state = new URL(callback).searchParams.get('state') ?? ''
  const params = { oauth_token: 'request-token', oauth_verifier: 'verifier', state }
  const browserKeyOf = () => ref.browserKey
  await handleCallback(links, { params, browserKeyOf, sessionIds: [], canRepost: false })
  await handleCallback(links, { params, browserKeyOf, sessionIds: [], canRepost: false })
  await activate()
  expect(requests).toEqual(['/request', '/access'])
  const session = await read(ref.id)
  expect(session).toMatchObject({ status: 'completed', authenticationMethod: 'vendor_oauth' })
  const account = await getIntegratedAccount(links.accounts, database.pool, scope, session.integratedAccountId ?? '')
  expect(JSON.stringify([session, account])).not.toContain('canary')
})
