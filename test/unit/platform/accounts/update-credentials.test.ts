import { describe, expect, it } from 'vitest'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { updateCredentials } from '../../../../src/platform/accounts/index.ts'
import { FIELDS_CONFIG } from './fixture.ts'
import { tokensFixture } from './token-fixture.ts'

const fixture = await tokensFixture()
const { database, tx, own, other, secrets, accountDeps, server, process, addClient, addConsent, connect, installed } =
  fixture
const { statusOf, contextOf, tokenRow, secretsOf } = fixture

const FIRST = { access_token: 'first-token', expires_in: 3600 }
const SECOND = { access_token: 'second-token', expires_in: 3600 }

const update = (id: string, credentials: JsonObject, version?: number, scope = own) =>
  database.transaction((each) =>
    updateCredentials({ ...accountDeps, secrets }, each, scope, { id, credentials, version }),
  )

describe('new credentials', () => {
  it('replace what is given, keep the rest, and have the account proved again', async () => {
    const { id } = await connect()
    const account = await update(id, { api_key: 'another-key' })
    expect(account).toMatchObject({ id, status: 'connecting', context: { subdomain: 'acme' } })
    expect(await secretsOf(id)).toEqual({ api_key: '"another-key"' })
    await update(id, { subdomain: 'OTHER', pin: '1234' })
    expect(await contextOf(id)).toEqual({ subdomain: 'other' })
    expect(await secretsOf(id)).toEqual({ api_key: '"another-key"', pin: '"1234"' })
    await update(id, { pin: null })
    expect(await secretsOf(id)).toEqual({ api_key: '"another-key"' })
  })

  it.each<[string, JsonObject, string, string]>([
    ['a required one taken away', { api_key: null }, 'credentials.api_key', 'CREDENTIALS_INVALID'],
    ['one that is not asked for', { api_kye: 'x' }, 'credentials.api_kye', 'CREDENTIALS_INVALID'],
    ['one that is not valid', { subdomain: 'a.b' }, 'credentials.subdomain', 'CREDENTIALS_INVALID'],
    ['the mask', { api_key: '***' }, 'credentials.api_key', 'SECRET_MASKED'],
  ])('are refused with %s, and nothing changes', async (_, credentials, field, reason) => {
    const { id } = await connect()
    await expect(update(id, { pin: '1', ...credentials })).rejects.toMatchObject({ reason, violations: [{ field }] })
    expect(await secretsOf(id)).toEqual({ api_key: '"the-accounts-secret"' })
    expect(await statusOf(id)).toMatchObject({ status: 'active' })
  })

  it('are refused for a version that is no longer there, and for accounts of others', async () => {
    const { id, version } = await connect()
    await expect(update(id, { api_key: 'x' }, version + 1)).rejects.toMatchObject({ reason: 'ETAG_MISMATCH' })
    await expect(update(id, { api_key: 'x' }, undefined, other)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    expect(await secretsOf(id)).toEqual({ api_key: '"the-accounts-secret"' })
    const changed = await update(id, { api_key: 'x' }, version)
    expect(changed.version).toBeGreaterThan(version)
  })

  it.each(['active', 'needs_reauth', 'post_install_error', 'validation_error', 'connecting'])(
    'lead an account that is %s to connecting',
    async (status) => {
      const { id } = await connect({ environmentIntegrationId: await installed(FIELDS_CONFIG) })
      await execute(tx, 'update integrated_account set status = :status where id = :id', { status, id })
      expect(await update(id, { api_key: 'x' })).toMatchObject({ status: 'connecting' })
    },
  )

  it('end the token of the old ones, and the back-off after an error', async () => {
    const id = await addClient()
    server.answer(FIRST, { status: 400, text: '{"error":"invalid_grant"}' }, SECOND)
    const { load } = process()
    await load(id)
    await update(id, { client_secret: 'another-secret' })
    expect(Object.keys(await secretsOf(id))).toEqual(['client_secret'])
    await expect(load(id, 'activation')).rejects.toMatchObject({ reason: 'CREDENTIALS_INVALID' })
    await update(id, { client_secret: 'the-right-secret' })
    expect((await load(id, 'activation')).access).toMatchObject({ credentials: { oauth: { token: SECOND } } })
  })

  it('bring to nothing what is being asked with the old ones', async () => {
    const id = await addClient()
    server.answer({ ...FIRST, access_token: 'of-the-old-secret' }, SECOND)
    const open = server.hold()
    const loading = process().load(id)
    await expect.poll(() => server.asked.length).toBe(1)
    await update(id, { client_secret: 'another-secret' })
    open()
    expect((await loading).access).toMatchObject({
      credentials: { client_secret: 'another-secret', oauth: { token: SECOND } },
    })
    expect(JSON.stringify(await secretsOf(id))).not.toContain('of-the-old-secret')
  })

  it('keep the consent of the customer unless another token is given', async () => {
    const id = await addConsent({ access_token: 'first-token', refresh_token: 'first-refresh' })
    await update(id, { subdomain: 'other' })
    const { load } = process()
    expect((await load(id, 'activation')).access).toMatchObject({
      context: { subdomain: 'other' },
      credentials: { oauth: { token: { access_token: 'first-token', refresh_token: 'first-refresh' } } },
    })
    await update(id, { access_token: 'second-token', expires_in: 3600 })
    expect((await load(id, 'activation')).access).toMatchObject({
      context: { subdomain: 'other' },
      credentials: { oauth: { token: { access_token: 'second-token' } } },
      credentialVersion: 2,
    })
    expect(await tokenRow(id)).toMatchObject({ version: 2, dueAt: null })
    expect(JSON.stringify(await secretsOf(id))).not.toContain('first-refresh')
  })
})
