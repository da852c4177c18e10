import { describe, expect, it } from 'vitest'
import { execute, queryOne } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { createCredentialRefresher, getResolvedAccount } from '../../../../src/platform/accounts/index.ts'
import { errorResponse, tokensFixture } from './token-fixture.ts'

const fixture = await tokensFixture()
const { tx, own, server, pass, process, addClient, addConsent, connect, statusOf, contextOf, secretsOf } = fixture

const FIRST = { access_token: 'first-token', expires_in: 3600 }
const SECOND = { access_token: 'second-token', expires_in: 3600 }
const THIRD = { access_token: 'third-token', expires_in: 3600 }

const reportErrors: unknown[] = []
const refresherOf = (one: ReturnType<typeof process>) =>
  createCredentialRefresher({ ...one, onReportError: (error) => reportErrors.push(error) })

/** An account with its first token, as a call has loaded it. */
async function called(one = process()) {
  const id = await addClient()
  server.answer(FIRST, SECOND, THIRD)
  return { id, one, refresher: refresherOf(one), access: (await one.load(id)).access }
}

const forbiddenOf = async (id: string) =>
  (
    await queryOne<{ error: JsonObject | null }>(
      tx,
      'select last_forbidden_error as error from integrated_account where id = :id',
      { id },
    )
  )?.error

describe('refreshing rejected credentials', () => {
  it('brings a new token at once, however long the old one would have lived', async () => {
    const { refresher, access } = await called()
    const renewed = await refresher.refresh(access)
    expect(renewed).toMatchObject({ credentials: { oauth: { token: SECOND } }, credentialVersion: 2 })
    expect(server.asked).toHaveLength(2)
  })

  it('takes the token that another process has refreshed meanwhile', async () => {
    const { refresher, access } = await called()
    await refresherOf(process()).refresh(access)
    expect(await refresher.refresh(access)).toMatchObject({ credentials: { oauth: { token: SECOND } } })
    expect(server.asked).toHaveLength(2)
  })

  it('requests one token for many calls that are rejected at once', async () => {
    const { refresher, access } = await called()
    const renewed = await Promise.all(Array.from({ length: 50 }, () => refresher.refresh(access)))
    for (const each of renewed) expect(each?.credentialVersion).toBe(2)
    expect(server.asked).toHaveLength(2)
  })

  it('has nothing for an account with a key, or one without a refresh token', async () => {
    const one = process()
    const { id } = await connect()
    const { access } = await one.load(id)
    expect(await refresherOf(one).refresh(access)).toBeUndefined()
    const imported = await one.load(await addConsent({ access_token: 'first-token' }))
    expect(await refresherOf(one).refresh(imported.access)).toBeUndefined()
  })

  it('returns nothing when the grant is rejected, and the account needs reauthorisation', async () => {
    const { id, refresher, access } = await called()
    server.answer(errorResponse(400, { error: 'invalid_grant' }))
    expect(await refresher.refresh(access)).toBeUndefined()
    expect(await statusOf(id)).toMatchObject({ status: 'needs_reauth' })
  })

  it('fails while the server is down, and leaves the account as it is', async () => {
    const { id, refresher, access } = await called()
    server.answer(errorResponse(503, {}))
    await expect(refresher.refresh(access)).rejects.toMatchObject({ reason: 'TOKEN_REQUEST_FAILED' })
    expect(await statusOf(id)).toMatchObject({ status: 'active' })
  })

  it('is given up with the call, while the request goes on for others', async () => {
    const { id, one, refresher, access } = await called()
    const open = server.hold()
    const cancelled = new AbortController()
    const renewing = refresher.refresh(access, cancelled.signal)
    await expect.poll(() => server.asked.length).toBe(2)
    cancelled.abort()
    await expect(renewing).rejects.toMatchObject({ reason: 'CANCELLED' })
    const other = refresher.refresh(access)
    open()
    expect(await other).toMatchObject({ credentialVersion: 2 })
    expect((await one.load(id)).access.credentialVersion).toBe(2)
  })
})

describe('what a call says about its account', () => {
  it('makes it needs_reauth when it stays unauthorized', async () => {
    const { id, refresher, access } = await called()
    await refresher.report(access, { kind: 'unauthorized', message: 'Bad credentials' })
    expect(await statusOf(id)).toEqual({ status: 'needs_reauth', lastError: 'Bad credentials' })
  })

  it('counts for nothing once the credentials have been replaced', async () => {
    const { id, refresher, access } = await called()
    await refresher.refresh(access)
    await refresher.report(access, { kind: 'unauthorized', message: 'Bad credentials' })
    expect(await statusOf(id)).toMatchObject({ status: 'active' })
  })

  it('makes it active again when it works, and clears the error', async () => {
    const { id, one, refresher, access } = await called()
    await refresher.report(access, { kind: 'unauthorized', message: 'Bad credentials' })
    const again = (await one.load(id)).access
    expect(again.unauthorizedSince).toBeDefined()
    await refresher.report(again, { kind: 'worked' })
    expect(await statusOf(id)).toEqual({ status: 'active', lastError: '' })
  })

  it('is kept when it is forbidden; the status and the etag stay', async () => {
    const { id, one, refresher, access } = await called()
    const { version } = (await one.load(id)).account
    await refresher.report(access, { kind: 'forbidden', resource: 'issues', method: 'list' })
    const first = await forbiddenOf(id)
    expect(first).toMatchObject({ resource: 'issues', method: 'list' })
    expect((await one.load(id)).account).toMatchObject({ status: 'active', version, lastForbiddenError: first })
    pass(1_000)
    await refresher.report(access, { kind: 'forbidden', resource: 'issues', method: 'list' })
    expect(await forbiddenOf(id), 'the same again soon writes nothing').toEqual(first)
    await refresher.report(access, { kind: 'forbidden', resource: 'repos', method: 'list' })
    expect(await forbiddenOf(id)).toMatchObject({ resource: 'repos' })
    pass(61_000)
    const before = await forbiddenOf(id)
    await refresher.report(access, { kind: 'forbidden', resource: 'repos', method: 'list' })
    expect((await forbiddenOf(id))?.occurred_at).not.toBe(before?.occurred_at)
  })

  it('never fails the call when the report cannot be stored', async () => {
    const { id, refresher, access } = await called()
    await execute(tx, 'delete from integrated_account where id = :id', { id })
    await refresher.report(access, { kind: 'unauthorized', message: 'x' })
    expect(reportErrors).toHaveLength(1)
    await refresher.report({ ...access, environmentId: undefined }, { kind: 'worked' })
    expect(reportErrors).toHaveLength(1)
  })
})

describe('what an action computes for the context', () => {
  it('is merged into it', async () => {
    const { id, refresher, access } = await called()
    await refresher.updateContext(access, { workspace: 7, gone: 1 }, true)
    await refresher.updateContext(access, { gone: null }, true)
    expect(await contextOf(id)).toEqual({ client_id: 'the-id', workspace: 7 })
  })

  it.each(['oauth', 'env', 'client_secret'])('rejects the key %s', async (key) => {
    const { id, one, refresher, access } = await called()
    const attempt = refresher.updateContext(access, { [key]: 'x' }, true)
    await expect(attempt).rejects.toMatchObject({ reason: 'CONTEXT_KEY_RESERVED' })
    const { access: now } = await getResolvedAccount(one, tx, own.environmentId, id)
    expect(now.context).toEqual({ client_id: 'the-id' })
    expect(Object.keys(await secretsOf(id)).toSorted()).toEqual(['client_secret', 'oauth.token'])
  })
})
