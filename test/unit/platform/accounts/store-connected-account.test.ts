import { describe, expect, it } from 'vitest'
import type { TokenSet } from '../../../../src/engine/formats/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  type ConnectedAccountInput,
  storeConnectedAccount,
  storeReconnectedAccount,
} from '../../../../src/platform/accounts/store-connected-account.ts'
import { CREDENTIALS } from './fixture.ts'
import { OAUTH2, tokensFixture } from './token-fixture.ts'

const { database, own, accountDeps, addInstallation, connect, installed, secretsOf, tokenRow } = await tokensFixture()

const connectByLink = (input: ConnectedAccountInput) =>
  database.transaction((tx) => storeConnectedAccount(accountDeps, tx, own, input))
const reconnectByLink = (input: Parameters<typeof storeReconnectedAccount>[3]) =>
  database.transaction((tx) => storeReconnectedAccount(accountDeps, tx, own, input))

/** A token as the code exchange returns it. */
const granted = (name: string, more = {}): TokenSet => ({
  accessToken: `${name}-token`,
  refreshToken: `${name}-refresh`,
  expiresAt: new Date(Date.now() + 3_600_000),
  fields: { access_token: `${name}-token`, refresh_token: `${name}-refresh`, ...more },
})

const apiKeyInput = async (): Promise<ConnectedAccountInput> => ({
  environmentIntegrationId: (await addInstallation()).id,
  tenantId: 'acme',
  credential: 'api_key',
  fields: CREDENTIALS,
  context: {},
})

const consentInput = async (more: Partial<ConnectedAccountInput> = {}): Promise<ConnectedAccountInput> => ({
  environmentIntegrationId: await installed(OAUTH2),
  tenantId: 'acme',
  credential: 'oauth2',
  fields: { subdomain: 'acme' },
  context: {},
  grant: { token: granted('first', { api_domain: 'eu' }), context: { realm: '77' } },
  ...more,
})

/** Two methods of connecting. */
const BOTH: JsonObject = {
  ...OAUTH2,
  credentials: {
    oauth2: OAUTH2.credentials ?? null,
    api_key: { format: 'api_key', config: { fields: [{ name: 'api_key', type: 'password', required: true }] } },
  },
}

describe('an account connected in a link session', () => {
  it('has the fields of the form, and the context of the session over them', async () => {
    const account = await connectByLink({ ...(await apiKeyInput()), context: { subdomain: 'fixed', plan: 'gold' } })
    expect(account).toMatchObject({ status: 'active', context: { subdomain: 'fixed', plan: 'gold' } })
    expect(await secretsOf(account.id)).toEqual({ api_key: '"the-accounts-secret"' })
  })

  it('has the token of the grant, and the keys of redirect and token over those of the session', async () => {
    const account = await connectByLink(await consentInput({ context: { realm: 'given', region: 'x' } }))
    expect(account).toMatchObject({
      status: 'connecting',
      context: { subdomain: 'acme', realm: '77', region: 'x', api_domain: 'eu' },
    })
    expect(JSON.stringify(await secretsOf(account.id))).toContain('first-refresh')
    expect(await tokenRow(account.id)).toMatchObject({ version: 1, dueAt: expect.any(Date) })
  })

  it.each([
    ['a key that the runtime owns', { context: { oauth: {} } }, 'CONTEXT_KEY_RESERVED'],
    ['a key that names a credential', { context: { access_token: 'x' } }, 'CONTEXT_KEY_RESERVED'],
    ['a method that is not offered', { credential: 'api_key' }, 'CREDENTIALS_INVALID'],
    ['a field that is missing', { fields: {} }, 'CREDENTIALS_INVALID'],
  ] as const)('is not created with %s', async (_, more, reason) => {
    await expect(consentInput(more).then(connectByLink)).rejects.toMatchObject({ reason })
  })

  it('takes no key of a redirect that the runtime owns or that names a credential', async () => {
    const context = { oauth: 'x', access_token: 'x', realm: '1' }
    const account = await connectByLink(await consentInput({ grant: { token: granted('first'), context } }))
    expect(account.context).toEqual({ subdomain: 'acme', realm: '1' })
  })
})

describe('an account connected again in a link session', () => {
  it('has the new token, keeps fields that were not given, and runs its steps again', async () => {
    const { id } = await connectByLink(await consentInput())
    const account = await reconnectByLink({
      id,
      credential: 'oauth2',
      fields: {},
      grant: { token: granted('second'), context: { realm: '78' } },
      context: { plan: null },
    })
    expect(account).toMatchObject({ status: 'connecting', context: { subdomain: 'acme', realm: '78' } })
    expect(JSON.stringify(await secretsOf(id))).toContain('second-refresh')
    expect(await tokenRow(id)).toMatchObject({ version: 2 })
  })

  it('keeps nothing of the credentials when the method changes', async () => {
    const environmentIntegrationId = await installed(BOTH)
    const { id } = await connectByLink(await consentInput({ environmentIntegrationId }))
    const input = { id, credential: 'api_key', fields: { api_key: 'the-key' }, context: {} } as const
    expect(await reconnectByLink(input)).toMatchObject({ credential: 'api_key', status: 'connecting' })
    expect(await secretsOf(id)).toEqual({ api_key: '"the-key"' })
    expect(await tokenRow(id)).toMatchObject({ dueAt: null, expiresAt: null })
  })

  it.each<[string, JsonObject, JsonObject, boolean]>([
    ['keeps a secret that is left out', { subdomain: 'acme' }, {}, true],
    ['loses it with another host', { subdomain: 'other' }, {}, false],
    ['loses it when the host is taken away', { subdomain: null }, {}, false],
    ['loses it with another host of the session', {}, { subdomain: 'other' }, false],
    ['loses it when the session removes the host', {}, { subdomain: null }, false],
  ])('%s', async (_what, fields, context, isKept) => {
    const secret = { name: 'signing_key', type: 'password', required: false }
    const apiKey = { name: 'api_key', type: 'password', required: true }
    const config = { fields: [apiKey, secret, { name: 'subdomain', required: false }] }
    const environmentIntegrationId = await installed({ ...OAUTH2, credentials: { format: 'api_key', config } })
    const first = { api_key: 'one', signing_key: 'signs', subdomain: 'acme' }
    const input = { ...(await apiKeyInput()), environmentIntegrationId, fields: first }
    const { id } = await connectByLink(input)
    await reconnectByLink({ id, credential: 'api_key', fields: { api_key: 'two', ...fields }, context })
    expect(await secretsOf(id)).toEqual({ api_key: '"two"', ...(isKept ? { signing_key: '"signs"' } : {}) })
  })

  it('keeps no required secret with another host: it is to be entered again', async () => {
    const { id } = await connectByLink(await apiKeyInput())
    const fields = { subdomain: 'other.example.com' }
    const again = reconnectByLink({ id, credential: 'api_key', fields, context: {} })
    await expect(again).rejects.toMatchObject({
      reason: 'CREDENTIALS_INVALID',
      violations: [{ field: 'credentials.api_key' }],
    })
    expect(await secretsOf(id)).toEqual({ api_key: '"the-accounts-secret"' })
  })

  it('is not found in another environment', async () => {
    const { id } = await connect()
    const input = { id, credential: 'api_key', fields: CREDENTIALS, context: {} } as const
    const elsewhere = { environmentId: crypto.randomUUID() }
    const again = database.transaction((tx) => storeReconnectedAccount(accountDeps, tx, elsewhere, input))
    await expect(again).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})
