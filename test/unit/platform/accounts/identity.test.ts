import { describe, expect, it } from 'vitest'
import type { TokenSet } from '../../../../src/engine/formats/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { updateCredentials } from '../../../../src/platform/accounts/index.ts'
import {
  storeConnectedAccount,
  storeReconnectedAccount,
} from '../../../../src/platform/accounts/store-connected-account.ts'
import { CONFIG } from '../integrations/fixture.ts'
import { activationFixture } from './activation-fixture.ts'

const fixture = await activationFixture()
const { database, own, accountDeps, upstream, worker, read, repeat, reported, addInstallation } = fixture

/** A definition that tells accounts of the third party apart, by a request or by the response of the token endpoint. */
const definition = (identity: JsonObject, actions: JsonObject = {}): JsonObject => ({
  ...CONFIG,
  base_url: upstream.url,
  retry: { max_attempts: 1 },
  authorization: { format: 'bearer', config: { token: '{{oauth.token.access_token}}' } },
  actions,
  credentials: {
    format: 'oauth2',
    config: {
      client: { id: 'app', secret: 'client-canary' },
      auth: { tokenHost: 'https://auth.example.com', tokenPath: '/token' },
      identity,
    },
  },
})
const BY_REQUEST: JsonObject = { request: { path: '/me' }, path: 'company.id' }
const BY_TOKEN: JsonObject = { path: 'team.id' }

const token = (more: JsonObject = {}): TokenSet => ({
  accessToken: 'token-canary',
  refreshToken: undefined,
  expiresAt: undefined,
  fields: { access_token: 'token-canary', ...more },
})
const me = (status: number, json: JsonObject) => upstream.script({ request: 'GET /me', answer: { status, json } })
const isCompany = (id: string | number) => me(200, { company: { id } })

async function connect(identity: JsonObject, granted = token(), actions: JsonObject = {}): Promise<string> {
  const environmentIntegrationId = (await addInstallation(definition(identity, actions))).id
  const account = await database.transaction((tx) =>
    storeConnectedAccount(accountDeps, tx, own, {
      environmentIntegrationId,
      tenantId: 'acme',
      credential: 'oauth2',
      fields: {},
      context: {},
      grant: { token: granted, context: {} },
    }),
  )
  return account.id
}

const reconnect = (id: string, granted = token()) =>
  database.transaction((tx) =>
    storeReconnectedAccount(accountDeps, tx, own, {
      id,
      credential: 'oauth2',
      fields: {},
      context: {},
      grant: { token: granted, context: {} },
    }),
  )

/** An active account of company 7. */
async function connected(): Promise<string> {
  const id = await connect(BY_REQUEST)
  isCompany(7)
  await worker().runOnce()
  return id
}

const CHANGED = { status: 'validation_error', lastError: expect.stringContaining('another account of the third party') }

describe('the identity of an account', () => {
  it('is read when it is activated first', async () => {
    expect(await read(await connected())).toMatchObject({ status: 'active', externalId: '7' })
  })

  it('is read from the response of the token endpoint where it needs no request', async () => {
    const id = await connect(BY_TOKEN, token({ team: { id: 'T1' } }))
    await worker().runOnce()
    expect(await read(id)).toMatchObject({ status: 'active', externalId: 'T1' })
    await reconnect(id, token({ team: { id: 'T2' } }))
    await worker().runOnce()
    expect(await read(id)).toMatchObject({ ...CHANGED, externalId: 'T1' })
  })

  it('must be the same when it is connected again, a number or its text', async () => {
    const id = await connected()
    await reconnect(id)
    isCompany('7')
    await worker().runOnce()
    expect(await read(id)).toMatchObject({ status: 'active', externalId: '7' })
  })

  it('that changed is rejected before anything is prepared, and its link session gets the code', async () => {
    const post_install = { type: 'request', config: { method: 'POST', path: '/hooks' } }
    const id = await connect(BY_REQUEST, token(), { post_install })
    upstream.script(
      { request: 'GET /me', answer: { json: { company: { id: 7 } } } },
      { request: 'POST /hooks', answer: { json: {} } },
    )
    await worker().runOnce()
    await reconnect(id)
    isCompany(8)
    await worker().runOnce()
    expect(await read(id)).toMatchObject(CHANGED)
    expect(reported.at(-1)).toMatchObject({ kind: 'failed', code: 'identity_changed' })
    expect((await read(id)).lastActionResult).toMatchObject({ validation: [{ name: 'identity', ok: true }] })
  })

  it.each<[string, (id: string) => Promise<unknown>]>([
    ['with the repetition of the steps', (id) => repeat(id, true)],
    [
      'with new credentials',
      (id) =>
        database.transaction((tx) =>
          updateCredentials(accountDeps, tx, own, { id, credentials: {}, isIdentityChangeConfirmed: true }),
        ),
    ],
  ])('that changed is accepted when it is confirmed %s', async (_, confirm) => {
    const id = await connected()
    await reconnect(id)
    isCompany(8)
    await worker().runOnce()
    await confirm(id)
    isCompany(8)
    await worker().runOnce()
    expect(await read(id)).toMatchObject({ status: 'active', externalId: '8', lastError: '' })
  })

  it.each<[string, number, JsonObject, string, string | undefined]>([
    ['is missing', 200, { company: {} }, 'validation_error', 'validation_error'],
    ['is an object', 200, { company: { id: {} } }, 'validation_error', 'validation_error'],
    ['is not told because of the credentials', 401, {}, 'validation_error', 'credentials_rejected'],
    ['cannot be read at the moment', 503, {}, 'connecting', undefined],
  ])('that %s makes no account active', async (_, status, json, expected, code) => {
    const id = await connect(BY_REQUEST)
    me(status, json)
    await worker().runOnce()
    expect(await read(id)).toMatchObject({ status: expected, externalId: null })
    expect(reported).toMatchObject(code === undefined ? [] : [{ code }])
  })
})
