import { describe, expect, it } from 'vitest'
import { createCredentialRefresher } from '../../src/accounts/index.ts'
import { getResolvedAccount } from '../../src/accounts/load-account.ts'
import type { JsonObject } from '../../src/base/index.ts'
import { execute, queryOne } from '../../src/database/database.ts'
import { refusal, tokensFixture } from './token-fixture.ts'

const fixture = await tokensFixture()
const { tx, own, server, pass, process, addClient, addConsent, connect, statusOf, contextOf, secretsOf } = fixture

const FIRST = { access_token: 'first-token', expires_in: 3600 }
const SECOND = { access_token: 'second-token', expires_in: 3600 }
const THIRD = { access_token: 'third-token', expires_in: 3600 }

const notNoted: unknown[] = []
const keeperOf = (one: ReturnType<typeof process>) =>
  createCredentialRefresher({ ...one, onReportError: (error) => notNoted.push(error) })

/** An account with its first token, as a call has loaded it. */
async function called(one = process()) {
  const id = await addClient()
  server.answer(FIRST, SECOND, THIRD)
  return { id, one, keeper: keeperOf(one), access: (await one.load(id)).access }
}

const forbiddenOf = async (id: string) =>
  (
    await queryOne<{ error: JsonObject | null }>(
      tx,
      'select last_forbidden_error as error from integrated_account where id = ?',
      [id],
    )
  )?.error

describe('renewing credentials that were refused', () => {
  it('brings a new token at once, however long the old one would have lived', async () => {
    const { keeper, access } = await called()
    const renewed = await keeper.refresh(access)
    expect(renewed).toMatchObject({ credentials: { oauth: { token: SECOND } }, credentialVersion: 2 })
    expect(server.asked).toHaveLength(2)
  })

  it('takes what somebody else has renewed meanwhile', async () => {
    const { keeper, access } = await called()
    await keeperOf(process()).refresh(access)
    expect(await keeper.refresh(access)).toMatchObject({ credentials: { oauth: { token: SECOND } } })
    expect(server.asked).toHaveLength(2)
  })

  it('asks once for many calls that are refused at once', async () => {
    const { keeper, access } = await called()
    const renewed = await Promise.all(Array.from({ length: 50 }, () => keeper.refresh(access)))
    for (const each of renewed) expect(each?.credentialVersion).toBe(2)
    expect(server.asked).toHaveLength(2)
  })

  it('has nothing for an account with a key, or one without a refresh token', async () => {
    const one = process()
    const { id } = await connect()
    const { access } = await one.load(id)
    expect(await keeperOf(one).refresh(access)).toBeUndefined()
    const imported = await one.load(await addConsent({ access_token: 'first-token' }))
    expect(await keeperOf(one).refresh(imported.access)).toBeUndefined()
  })

  it('has nothing when the grant is refused, and the account needs reauthorisation', async () => {
    const { id, keeper, access } = await called()
    server.answer(refusal(400, { error: 'invalid_grant' }))
    expect(await keeper.refresh(access)).toBeUndefined()
    expect(await statusOf(id)).toMatchObject({ status: 'needs_reauth' })
  })

  it('fails while the server is down, and leaves the account as it is', async () => {
    const { id, keeper, access } = await called()
    server.answer(refusal(503, {}))
    await expect(keeper.refresh(access)).rejects.toMatchObject({ reason: 'TOKEN_REQUEST_FAILED' })
    expect(await statusOf(id)).toMatchObject({ status: 'active' })
  })

  it('is given up with the call, while the request goes on for others', async () => {
    const { id, one, keeper, access } = await called()
    const open = server.hold()
    const cancelled = new AbortController()
    const renewing = keeper.refresh(access, cancelled.signal)
    await expect.poll(() => server.asked.length).toBe(2)
    cancelled.abort()
    await expect(renewing).rejects.toMatchObject({ reason: 'CANCELLED' })
    const other = keeper.refresh(access)
    open()
    expect(await other).toMatchObject({ credentialVersion: 2 })
    expect((await one.load(id)).access.credentialVersion).toBe(2)
  })
})

describe('what a call says about its account', () => {
  it('makes it needs_reauth when it stays unauthorized', async () => {
    const { id, keeper, access } = await called()
    await keeper.report(access, { kind: 'unauthorized', message: 'Bad credentials' })
    expect(await statusOf(id)).toEqual({ status: 'needs_reauth', lastError: 'Bad credentials' })
  })

  it('counts for nothing once the credentials have been replaced', async () => {
    const { id, keeper, access } = await called()
    await keeper.refresh(access)
    await keeper.report(access, { kind: 'unauthorized', message: 'Bad credentials' })
    expect(await statusOf(id)).toMatchObject({ status: 'active' })
  })

  it('makes it active again when it works, and clears the error', async () => {
    const { id, one, keeper, access } = await called()
    await keeper.report(access, { kind: 'unauthorized', message: 'Bad credentials' })
    const again = (await one.load(id)).access
    expect(again.needsReauth).toBe(true)
    await keeper.report(again, { kind: 'worked' })
    expect(await statusOf(id)).toEqual({ status: 'active', lastError: '' })
  })

  it('is kept when it is forbidden; the status and the etag stay', async () => {
    const { id, one, keeper, access } = await called()
    const { version } = (await one.load(id)).account
    await keeper.report(access, { kind: 'forbidden', resource: 'issues', method: 'list' })
    const first = await forbiddenOf(id)
    expect(first).toMatchObject({ resource: 'issues', method: 'list' })
    expect((await one.load(id)).account).toMatchObject({ status: 'active', version, lastForbiddenError: first })
    pass(1_000)
    await keeper.report(access, { kind: 'forbidden', resource: 'issues', method: 'list' })
    expect(await forbiddenOf(id), 'the same again soon writes nothing').toEqual(first)
    await keeper.report(access, { kind: 'forbidden', resource: 'repos', method: 'list' })
    expect(await forbiddenOf(id)).toMatchObject({ resource: 'repos' })
    pass(61_000)
    const before = await forbiddenOf(id)
    await keeper.report(access, { kind: 'forbidden', resource: 'repos', method: 'list' })
    expect((await forbiddenOf(id))?.occurred_at).not.toBe(before?.occurred_at)
  })

  it('never fails the call, whatever becomes of the account', async () => {
    const { id, keeper, access } = await called()
    await execute(tx, 'delete from integrated_account where id = ?', [id])
    await keeper.report(access, { kind: 'unauthorized', message: 'x' })
    expect(notNoted).toHaveLength(1)
    await keeper.report({ ...access, environmentId: undefined }, { kind: 'worked' })
    expect(notNoted).toHaveLength(1)
  })
})

describe('what an action computes for the context', () => {
  it('is merged into it', async () => {
    const { id, keeper, access } = await called()
    await keeper.updateContext(access, { workspace: 7, gone: 1 })
    await keeper.updateContext(access, { gone: null })
    expect(await contextOf(id)).toEqual({ client_id: 'the-id', workspace: 7 })
  })

  it.each(['oauth', 'env', 'client_secret'])('is refused when it is called %s', async (key) => {
    const { id, one, keeper, access } = await called()
    const attempt = keeper.updateContext(access, { [key]: 'x' })
    await expect(attempt).rejects.toMatchObject({ reason: 'CONTEXT_KEY_RESERVED' })
    const { access: now } = await getResolvedAccount(one, tx, own.environmentId, id)
    expect(now.context).toEqual({ client_id: 'the-id' })
    expect(Object.keys(await secretsOf(id)).toSorted()).toEqual(['client_secret', 'oauth.token'])
  })
})
