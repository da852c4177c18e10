import { describe, expect, it } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  createTokenProvider,
  listIntegratedAccountHistory,
  loadAccountForCall,
  refreshCredentials,
} from '../../../../src/platform/accounts/index.ts'
import { CLIENT_CREDENTIALS, errorResponse, tokensFixture } from './token-fixture.ts'

const fixture = await tokensFixture()
const { database, tx, own, server, pass, process, addClient, addConsent, connect, installed } = fixture
const { statusOf, contextOf, tokenRow, alterToken, secretsOf, sleeps } = fixture

const HOUR = 3_600_000
/** Longer than the requests for one token may take. */
const PAUSE = 30_000
/** Of the test's database. */
const CONNECTIONS_MAX = 16
const FIRST = { access_token: 'first-token', expires_in: 3600 }
const SECOND = { access_token: 'second-token', expires_in: 3600 }
const DOWN = new Failure('UPSTREAM_UNREACHABLE', 'auth.example.com is away')
const CONSENT = { access_token: 'first-token', refresh_token: 'first-refresh', expires_in: 3600 }

const tokenOf = async (loading: ReturnType<ReturnType<typeof process>['load']>) =>
  (await loading).access.credentials.oauth

/** Statements that run during the work. */
async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  const statements: string[] = []
  const note = ({ sql }: { sql: string }) => statements.push(sql)
  const knex = database.pool
  knex.on('query', note)
  await work().finally(() => knex.removeListener('query', note))
  return statements
}

describe('the token of an account', () => {
  it('is obtained before the first call and kept', async () => {
    const id = await addClient()
    server.answer(FIRST)
    const { load } = process()
    expect((await load(id)).access).toMatchObject({
      credentials: { client_secret: 'the-accounts-secret', oauth: { token: FIRST } },
      credentialVersion: 1,
    })
    await load(id)
    await process().load(id)
    expect(server.asked).toEqual([{ grant_type: 'client_credentials' }])
  })

  it('costs a call no statement of its own while it is fresh', async () => {
    const id = await addClient()
    server.answer(FIRST)
    const { load } = process()
    await load(id)
    const statements = await statementsOf(() => load(id))
    expect(statements).toEqual([expect.stringContaining('join integrated_account')])
  })

  it.each([
    ['as long as it lives for more than five minutes', HOUR - 5 * 60_000 - 1, 0],
    ['replaced five minutes before it ends', HOUR - 5 * 60_000, 1],
  ])('is %s', async (_, afterMs, requests) => {
    const id = await addClient()
    server.answer(FIRST)
    await process().load(id)
    server.answer(SECOND)
    pass(afterMs)
    await process().load(id)
    expect(server.asked).toHaveLength(requests)
  })

  it('is replaced a fifth of its life before it ends when that is shorter', async () => {
    const id = await addClient()
    server.answer({ ...FIRST, expires_in: 100 }, SECOND)
    await process().load(id)
    pass(79_000)
    await process().load(id)
    expect(server.asked).toHaveLength(1)
    pass(1_000)
    await process().load(id)
    expect(server.asked).toHaveLength(2)
  })

  it('is used until it expires while no newer one can be obtained, and none is requested during the back-off', async () => {
    const id = await addClient()
    server.answer(FIRST, DOWN)
    const { load } = process()
    await load(id)
    pass(HOUR - 1_000)
    expect(await tokenOf(load(id))).toMatchObject({ token: FIRST })
    expect(await tokenOf(load(id))).toMatchObject({ token: FIRST })
    expect(server.asked).toHaveLength(2)
    pass(1_000)
    await expect(load(id)).rejects.toMatchObject({ reason: 'TOKEN_REQUEST_FAILED', retryAfterSeconds: 3 })
    expect(server.asked).toHaveLength(2)
    expect(await statusOf(id)).toMatchObject({ status: 'active' })
  })

  it('is refreshed on request in spite of its age and of a back-off', async () => {
    const id = await addClient()
    server.answer(FIRST, DOWN, SECOND)
    const one = process()
    await one.load(id)
    await expect(refreshCredentials(one, own.environmentId, id)).rejects.toMatchObject({
      reason: 'TOKEN_REQUEST_FAILED',
    })
    expect(await refreshCredentials(one, own.environmentId, id)).toMatchObject({ id, status: 'active' })
    expect(await tokenOf(one.load(id))).toMatchObject({ token: SECOND })
  })

  it('is nothing that an account with a key has', async () => {
    const { id } = await connect()
    await expect(refreshCredentials(process(), own.environmentId, id)).rejects.toMatchObject({
      reason: 'METHOD_NOT_DEFINED',
    })
  })
})

describe('a token that was paid for', () => {
  /** A process whose database is away for some commits. */
  const failing = (times: number) => {
    let left = times
    const transaction: typeof database.transaction = async (work) => {
      if (left-- > 0) throw new Error('Connection terminated unexpectedly')
      return await database.transaction(work)
    }
    const one = process()
    return { ...one, tokens: createTokenProvider({ ...one, database: { pool: database.pool, transaction } }) }
  }

  it('is stored as soon as the database is back', async () => {
    const id = await addConsent({ ...CONSENT, expires_in: 0 })
    server.answer({ ...SECOND, refresh_token: 'second-refresh' })
    const { access } = await loadAccountForCall(failing(4), own.environmentId, id, 'call')
    expect(access.credentials.oauth).toMatchObject({ token: SECOND })
    expect(JSON.stringify(await secretsOf(id))).toContain('second-refresh')
  })

  it('is not used unless it is stored', async () => {
    const id = await addConsent({ ...CONSENT, expires_in: 0 })
    server.answer(SECOND)
    await expect(loadAccountForCall(failing(5), own.environmentId, id, 'call')).rejects.toThrow('Connection terminated')
    expect(await tokenRow(id)).toMatchObject({ version: 1 })
  })
})

describe('a token that was granted elsewhere', () => {
  it('is taken over and refreshed when its time comes; the context holds nothing of it', async () => {
    const id = await addConsent(CONSENT)
    const { load } = process()
    server.answer({ access_token: 'second-token', api_domain: 'eu.example.com', user: { id: 7, name: 'x' } })
    expect(await tokenOf(load(id))).toEqual({ token: { access_token: 'first-token', refresh_token: 'first-refresh' } })
    expect(await contextOf(id)).toEqual({ subdomain: 'acme' })
    pass(HOUR)
    const { access } = await load(id)
    expect(server.asked).toEqual([{ grant_type: 'refresh_token', refresh_token: 'first-refresh' }])
    expect(access.credentials.oauth).toMatchObject({
      token: { access_token: 'second-token', refresh_token: 'first-refresh' },
    })
    expect(access.context).toEqual({ subdomain: 'acme', api_domain: 'eu.example.com', user_id: 7 })
    expect(await contextOf(id)).toEqual(access.context)
  })

  it('is refreshed before its first use when it has ended already', async () => {
    const id = await addConsent({ ...CONSENT, expires_in: 0 })
    server.answer(SECOND)
    expect(await tokenOf(process().load(id))).toMatchObject({ token: SECOND })
  })

  it.each([
    ['without a refresh token', { access_token: 'first-token', expires_in: 60 }],
    ['without an expiry', { access_token: 'first-token', refresh_token: 'first-refresh' }],
  ])('%s is used until it is rejected', async (_, token) => {
    const id = await addConsent(token)
    server.answer()
    pass(HOUR)
    expect(await tokenOf(process().load(id))).toMatchObject({ token: { access_token: 'first-token' } })
    expect(server.asked).toEqual([])
  })

  it.each<[string, JsonObject, string, string]>([
    ['no token at all', {}, 'authentication_method', 'method.not_headless'],
    ['a refresh token alone', { refresh_token: 'r' }, 'credentials.access_token', 'required'],
    ['a lifetime that is none', { access_token: 'a', expires_in: 'soon' }, 'credentials.expires_in', 'string.number'],
  ])('is rejected with %s', async (_, token, field, rule) => {
    const attempt = addConsent(token)
    await expect(attempt).rejects.toMatchObject({ reason: 'CREDENTIALS_INVALID', violations: [{ field, rule }] })
  })

  it('keeps its names out of the context', async () => {
    const environmentIntegrationId = await installed(CLIENT_CREDENTIALS)
    const credentials = { client_id: 'i', client_secret: 's' }
    const attempt = connect({ environmentIntegrationId, credentials, context: { refresh_token: 'r' } })
    await expect(attempt).rejects.toMatchObject({ reason: 'CONTEXT_KEY_RESERVED' })
  })
})

describe('a response that was lost with its process', () => {
  /** An expired token whose refresh was interrupted a minute ago. */
  async function interrupted(): Promise<string> {
    const id = await addConsent({ ...CONSENT, expires_in: 0 })
    await alterToken(id, `lease_id = gen_random_uuid(), lease_expires_at = now() - interval '20 seconds'`)
    return id
  }
  const LOST = /invalid_grant.*request for a token of 20\S+Z was interrupted .* probably lost.*: connect it again/

  it('is what the account says when the third party rejects the replaced refresh token', async () => {
    const id = await interrupted()
    server.answer(errorResponse(400, { error: 'invalid_grant' }))
    await expect(process().load(id)).rejects.toMatchObject({ reason: 'CREDENTIALS_INVALID', publicMessage: LOST })
    expect(await statusOf(id)).toEqual({ status: 'needs_reauth', lastError: expect.stringMatching(LOST) })
    const [latest] = await listIntegratedAccountHistory(tx, own, id, { before: undefined, limit: 1 })
    expect(latest).toMatchObject({ cause: 'token_lost', lastError: expect.stringMatching(LOST) })
  })

  it('is remembered over errors that say nothing about the grant', async () => {
    const id = await interrupted()
    server.answer(errorResponse(503, {}), errorResponse(400, { error: 'invalid_grant' }))
    await expect(process().load(id)).rejects.toMatchObject({ reason: 'TOKEN_REQUEST_FAILED' })
    await alterToken(id, 'retry_at = null')
    await expect(process().load(id)).rejects.toMatchObject({ publicMessage: LOST })
  })

  it('is forgotten with the next token', async () => {
    const id = await interrupted()
    server.answer({ ...SECOND, expires_in: 1 }, errorResponse(400, { error: 'invalid_grant' }))
    await process().load(id)
    expect(await tokenRow(id)).toMatchObject({ version: 2, interruptedAt: null })
    pass(HOUR)
    await expect(process().load(id)).rejects.toMatchObject({ publicMessage: expect.not.stringMatching('interrupted') })
  })

  it('is no matter for tokens without a refresh token', async () => {
    const id = await addClient()
    server.answer({ ...FIRST, expires_in: 1 }, errorResponse(400, { error: 'invalid_grant' }))
    await process().load(id)
    await alterToken(id, `lease_id = gen_random_uuid(), lease_expires_at = now() - interval '1 second'`)
    pass(HOUR)
    await expect(process().load(id)).rejects.toMatchObject({ publicMessage: expect.not.stringMatching('interrupted') })
  })
})

describe('one request per account', () => {
  it('and few attempts at the lease, for a thousand calls of one process', async () => {
    const id = await addClient()
    server.answer(FIRST)
    const { load } = process()
    const statements = await statementsOf(async () => {
      const loaded = await Promise.all(Array.from({ length: 1_000 }, () => load(id)))
      for (const { access } of loaded) expect(access.credentials.oauth).toMatchObject({ token: FIRST })
    })
    expect(server.asked).toHaveLength(1)
    // Whoever read the account before the token was there, and asks after, tries again; a connection reads one at a time.
    const attempts = statements.filter((sql) => sql.includes('insert into account_token')).length
    expect(attempts).toBeGreaterThan(0)
    expect(attempts).toBeLessThanOrEqual(CONNECTIONS_MAX)
  })

  it('for several processes: a refresh token that is good once is used once', async () => {
    const id = await addConsent(CONSENT)
    server.answer({ ...SECOND, refresh_token: 'second-refresh' }, errorResponse(400, { error: 'invalid_grant' }))
    pass(HOUR)
    const processes = [process(), process(), process()]
    const loaded = await Promise.all(processes.flatMap(({ load }) => [load(id), load(id)]))
    expect(server.asked).toHaveLength(1)
    for (const { access } of loaded)
      expect(access.credentials.oauth).toMatchObject({
        token: { access_token: 'second-token', refresh_token: 'second-refresh' },
      })
    expect(await statusOf(id)).toMatchObject({ status: 'active' })
  })

  it('is taken over from a process that died, once its lease has expired', async () => {
    const id = await addClient()
    server.answer(FIRST)
    await process().load(id)
    await alterToken(id, `lease_id = gen_random_uuid(), lease_expires_at = now() + interval '1 minute'`)
    server.answer(SECOND)
    pass(HOUR)
    const loading = process().load(id)
    expect(server.asked).toEqual([])
    await alterToken(id, `lease_expires_at = now() - interval '1 second'`)
    expect(await tokenOf(loading)).toMatchObject({ token: SECOND })
  })

  it('is not sent by a process that was paused after it had taken the lease', async () => {
    const id = await addConsent(CONSENT)
    server.answer(SECOND)
    pass(HOUR)
    const pause = ({ sql }: { sql: string }) => {
      if (sql.includes('insert into account_token')) pass(PAUSE)
    }
    const knex = database.pool
    knex.on('query', pause)
    const paused = process().load(id)
    await expect(paused).rejects.toMatchObject({ reason: 'TOKEN_REQUEST_FAILED' })
    knex.removeListener('query', pause)
    expect(server.asked).toEqual([])
    expect(await statusOf(id)).toMatchObject({ status: 'active' })
  })

  it('leaves a process that comes back too late nothing to store', async () => {
    const id = await addClient()
    const open = server.hold()
    server.answer({ ...FIRST, access_token: 'too-late' }, SECOND)
    const late = process().load(id)
    await expect.poll(() => server.asked.length).toBe(1)
    await alterToken(id, `lease_expires_at = now() - interval '1 second'`)
    const next = process().load(id)
    await expect.poll(() => server.asked.length).toBe(2)
    open()
    expect(await tokenOf(next)).toMatchObject({ token: SECOND })
    expect(await tokenOf(late)).toMatchObject({ token: SECOND })
    expect(await tokenRow(id)).toMatchObject({ version: 1, leaseId: null })
    expect(JSON.stringify(await secretsOf(id))).not.toContain('too-late')
  })

  it('is waited for only so long', async () => {
    const id = await addClient()
    const { load } = process()
    server.answer(FIRST)
    const stuck = server.hold()
    const first = process().load(id)
    await expect.poll(() => server.asked.length).toBe(1)
    const before = sleeps()
    const second = load(id)
    await expect.poll(sleeps).toBeGreaterThan(before)
    pass(20_000)
    await expect(second).rejects.toMatchObject({ reason: 'TOKEN_REQUEST_FAILED', retryAfterSeconds: 5 })
    stuck()
    await first
  })
})
