import { describe, expect, it } from 'vitest'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { deleteAccountsByInstallation } from '../../../../src/platform/accounts/account.ts'
import { AccountRemover } from '../../../../src/platform/accounts/account-remover.ts'
import { deleteIntegratedAccount, type RemovalFailure } from '../../../../src/platform/accounts/index.ts'
import { deleteEnvironmentIntegration } from '../../../../src/platform/integrations/index.ts'
import { triggersOfTests } from './fixture.ts'
import { CLIENT_CREDENTIALS, errorResponse, OAUTH2, type TokenServerAnswer, tokensFixture } from './token-fixture.ts'

const fixture = await tokensFixture()
const { database, tx, own, secrets, accountDeps, tokenDeps, server, installed, addConsent, addClient } = fixture

const AUTH = { tokenHost: 'https://auth.example.com', tokenPath: '/token', revokePath: '/revoke' }
const CONSENT = { access_token: 'first-token', refresh_token: 'first-refresh', expires_in: 3600 }
/** `OAUTH2` with an address for revocations. */
const REVOCABLE = withRevocation(OAUTH2)
const NO_ACCOUNTS = { deleteByInstallation: async () => 0, stopByInstallations: async () => {} }
const DONE: TokenServerAnswer = { status: 200, text: '' }
const DOWN: TokenServerAnswer = { status: 503, text: '' }

function withRevocation(config: JsonObject): JsonObject {
  const { format, config: rest } = config.credentials as { format: string; config: JsonObject }
  return { ...config, credentials: { format, config: { ...rest, auth: AUTH } } }
}

const deleteDeps = { ...accountDeps, triggers: triggersOfTests }
const remove = (id: string) => database.transaction((each) => deleteIntegratedAccount(deleteDeps, each, own, { id }))
const failures: RemovalFailure[] = []
const revoker = (regions?: readonly string[]) =>
  new AccountRemover({ ...tokenDeps, regions, onFailure: (failure) => failures.push(failure) })
const waiting = () => query<{ id: string; attempts: number }>(tx, 'select * from account_removal')
/** Lets time pass for all that waits; times are rounded to milliseconds, so that now would be ahead for half of one. */
const pass = () => execute(tx, "update account_removal set due_at = now() - interval '1 second'", {})

/** Revokes until nothing is due. */
async function revokeAll(): Promise<void> {
  for (const one = revoker(); await one.runOnce(); );
}

describe('the grant of a deleted account', () => {
  it('is revoked by its refresh token after the deletion; nothing of it stays', async () => {
    const id = await addConsent(CONSENT, REVOCABLE)
    server.answer(DONE)
    await remove(id)
    expect(server.asked).toEqual([])
    const [{ id: waitingId } = { id: '' }] = await waiting()
    expect(JSON.stringify(await waiting())).not.toContain('first-refresh')
    await revokeAll()
    expect(server.asked).toMatchObject([{ token: 'first-refresh', token_type_hint: 'refresh_token' }])
    expect(await waiting()).toEqual([])
    expect(await query(tx, 'select 1 from data_key where owner_id = :waitingId', { waitingId })).toEqual([])
  })

  it('is revoked also when the installation and the keys of the environment are gone', async () => {
    const config = { ...REVOCABLE, label: 'Gone' }
    await addConsent(CONSENT, config)
    const id = await installed(config)
    server.answer(DONE)
    await database.transaction(async (each) => {
      await deleteAccountsByInstallation(deleteDeps, each, own.environmentId, id)
      await deleteEnvironmentIntegration({ secrets, accounts: NO_ACCOUNTS }, each, own, { id })
      await secrets.destroyKeys(each, own.environmentId)
    })
    await revokeAll()
    expect(server.asked).toMatchObject([{ token: 'first-refresh' }])
  })

  it('is tried again while the third party is down, for about a day', async () => {
    await remove(await addConsent(CONSENT, REVOCABLE))
    server.answer(DOWN, DOWN, DONE)
    await revokeAll()
    expect(server.asked).toHaveLength(1)
    for (let attempt = 2; attempt <= 3; attempt++) {
      await pass()
      await revokeAll()
    }
    expect(server.asked).toHaveLength(3)
    expect(await waiting()).toEqual([])
  })

  it.each<[string, TokenServerAnswer, number, RemovalFailure['cause'][]]>([
    ['never answers', DOWN, 8, ['transient']],
    ['rejects the client', errorResponse(401, { error: 'invalid_client' }), 1, ['client_refused']],
    ['knows the token no more', errorResponse(400, { error: 'invalid_token' }), 1, []],
  ])('is given up when the third party %s', async (_, answer, requests, causes) => {
    failures.length = 0
    const id = await addConsent(CONSENT, REVOCABLE)
    await remove(id)
    server.answer(answer)
    for (let attempt = 0; attempt < 10; attempt++) {
      await revokeAll()
      await pass()
    }
    expect(server.asked).toHaveLength(requests)
    expect(failures).toMatchObject(causes.map((cause) => ({ integratedAccountId: id, cause })))
    expect(await waiting()).toEqual([])
  })

  it.each<[string, () => Promise<string>]>([
    ['the definition has no address for it', () => addConsent(CONSENT)],
    ['the account has no token', () => addClient(CLIENT_CREDENTIALS)],
  ])('is not revoked when %s', async (_, add) => {
    await remove(await add())
    expect(await waiting()).toEqual([])
  })

  it('is not revoked when the deletion is rolled back', async () => {
    const id = await addConsent(CONSENT, REVOCABLE)
    const rolledBack = database.transaction(async (each) => {
      await deleteIntegratedAccount(deleteDeps, each, own, { id })
      throw new Error('rolled back')
    })
    await expect(rolledBack).rejects.toThrow('rolled back')
    expect(await waiting()).toEqual([])
  })

  it('does not keep an account whose credentials cannot be read from being deleted', async () => {
    const id = await addConsent(CONSENT, REVOCABLE)
    await execute(tx, `update secret set sealed = '\\x00' where subject_id = :id`, { id })
    await remove(id)
    expect(await waiting()).toEqual([])
  })

  it('is revoked by a worker of its region', async () => {
    await remove(await addConsent(CONSENT, REVOCABLE))
    server.answer(DONE)
    expect(await revoker(['eu']).runOnce()).toBe(false)
    expect(await revoker(['wnam']).runOnce()).toBe(true)
  })
})

describe('a grant that several accounts share', () => {
  const client = (id: string): JsonObject => {
    const { format, config } = REVOCABLE.credentials as { format: string; config: JsonObject }
    return { ...REVOCABLE, label: id, credentials: { format, config: { ...config, client: { id, secret: 's' } } } }
  }
  const identify = (ids: readonly string[], externalId: string) =>
    execute(tx, 'update integrated_account set external_id = :externalId where id = any(:ids)', {
      ids: [...ids],
      externalId,
    })

  it('is revoked with the last of them, also of another integration of the client', async () => {
    const first = await addConsent(CONSENT, client('shared'))
    const second = await addConsent(CONSENT, { ...client('shared'), label: 'calendar' })
    await identify([first, second], 'ada@example.com')
    server.answer()
    await remove(first)
    await revokeAll()
    expect(server.asked).toEqual([])
    expect(await waiting()).toEqual([])
    server.answer(DONE)
    await remove(second)
    await revokeAll()
    expect(server.asked).toHaveLength(1)
  })

  it.each([
    ['of another customer', client('one'), client('one'), 'bob@example.com'],
    ['of another client', client('two'), client('three'), 'ada@example.com'],
  ])('%s is another one', async (_what, config, other, externalId) => {
    const first = await addConsent(CONSENT, config)
    const second = await addConsent(CONSENT, other)
    await identify([first], 'ada@example.com')
    await identify([second], externalId)
    server.answer(DONE)
    await remove(first)
    await revokeAll()
    expect(server.asked).toHaveLength(1)
  })

  it('is not revoked when the deletion keeps it', async () => {
    const id = await addConsent(CONSENT, client('kept'))
    server.answer()
    await database.transaction((each) => deleteIntegratedAccount(deleteDeps, each, own, { id, keepsGrant: true }))
    await revokeAll()
    expect(await waiting()).toEqual([])
    expect(server.asked).toEqual([])
  })
})
