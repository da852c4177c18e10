import { afterAll, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { AccountRemover } from '../../../../src/platform/accounts/account-remover.ts'
import {
  deleteIntegratedAccount,
  getIntegratedAccount,
  loadAccountForCall,
  refreshCredentials,
} from '../../../../src/platform/accounts/index.ts'
import { handleCallback, submitForm } from '../../../../src/platform/links/index.ts'
import { CLIENT_SECRET, startOpenIdProvider } from '../accounts/openid-customer.ts'
import { linksFixture } from './fixture.ts'

const { domain, database, links, scope, install, open, read, activate } = await linksFixture()
const provider = await startOpenIdProvider('https://patchbay.example.com/connect/callback')
afterAll(() => provider[Symbol.asyncDispose]())

const ME = { method: 'GET', path: '/me' }
const CONFIG: JsonObject = {
  base_url: provider.url,
  credentials: {
    oauth2: {
      config: {
        client: { id: 'header', secret: '{{env.CLIENT_SECRET}}' },
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
        verification: ME,
        identity: { request: ME, path: 'sub' },
      },
    },
  },
  authorization: { format: 'bearer' },
  resources: { me: { get: ME } },
}
const { name } = await install(CONFIG, { override: { environment_variables: { CLIENT_SECRET } } })

/** An account that a customer connects at the provider. */
async function connect(): Promise<string> {
  const ref = await open({ integrations: [name] })
  const submitted = await submitForm(links, ref, {})
  if (submitted.kind !== 'redirect') throw new Error(`no redirect: ${JSON.stringify(submitted)}`)
  const { params } = await provider.consent(submitted.url)
  await handleCallback(links, { params, browserKeyOf: () => ref.browserKey, sessionIds: [], canRepost: false })
  await activate()
  const session = await read(ref.id)
  expect(session).toMatchObject({ status: 'completed', error: null, missingScopes: [] })
  return session.integratedAccountId ?? ''
}

const load = (id: string) => loadAccountForCall(domain.accounts, scope.environmentId, id, 'call')

it('connects an account at an OpenID provider, calls through it, refreshes its token and revokes it', async () => {
  const id = await connect()
  const account = await getIntegratedAccount(domain.accounts, database.pool, scope, id)
  expect(account).toMatchObject({ status: 'active', authenticationMethod: 'oauth2' })

  const { plan, access, token } = await load(id)
  const called = await domain.proxy.call(plan, access, { target: { kind: 'method', resource: 'me', method: 'get' } })
  expect(called).toMatchObject({ kind: 'ok', result: { sub: 'ann' } })

  await refreshCredentials(domain.accounts, scope.environmentId, id)
  const refreshed = await load(id)
  expect(refreshed.token?.accessToken).not.toBe(token?.accessToken)
  expect(refreshed.token?.refreshToken).not.toBe(token?.refreshToken)
  const again = await domain.proxy.call(refreshed.plan, refreshed.access, {
    target: { kind: 'path', verb: 'GET', path: '/me' },
  })
  expect(again).toMatchObject({ kind: 'ok' })

  await database.transaction((tx) => deleteIntegratedAccount(domain.accounts, tx, scope, { id }))
  const failures: string[] = []
  const revoker = new AccountRemover({ ...domain.accounts, onFailure: ({ message }) => failures.push(message) })
  expect(await revoker.runOnce()).toBe(true)
  expect(failures).toEqual([])
  const headers = { authorization: `Bearer ${refreshed.token?.accessToken}` }
  expect((await fetch(`${provider.url}/me`, { headers })).status).toBe(401)
})

it('needs reauthorization when the grant was revoked at the provider', async () => {
  const id = await connect()
  const { token, account } = await load(id)
  const form = new URLSearchParams({ token: token?.refreshToken ?? '', client_id: 'header' })
  const authorization = `Basic ${Buffer.from(`header:${CLIENT_SECRET}`).toString('base64')}`
  const revoked = await fetch(`${provider.url}/token/revocation`, {
    method: 'POST',
    body: form,
    headers: { authorization },
  })
  expect(revoked.status).toBe(200)
  await expect(refreshCredentials(domain.accounts, scope.environmentId, account.id)).rejects.toMatchObject({
    reason: 'CREDENTIALS_INVALID',
    publicMessage: expect.stringContaining('invalid_grant'),
  })
  expect(await getIntegratedAccount(domain.accounts, database.pool, scope, id)).toMatchObject({
    status: 'needs_reauth',
  })
})
