import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../../src/foundation/base/index.ts'
import { execute, query, queryOne } from '../../../../src/foundation/database/index.ts'
import { createCredentialRefresher } from '../../../../src/platform/accounts/index.ts'
import { ACCOUNT_HISTORY_MAX, deleteSupersededHistory } from '../../../../src/platform/accounts/sql/account-history.ts'
import { changeAccountStatus } from '../../../../src/platform/accounts/status.ts'
import { caseCount } from '../../../support/case-count.ts'
import { errorResponse, tokensFixture } from './token-fixture.ts'

const { database, tx, own, server, clock, pass, process, addConsent, statusOf } = await tokensFixture()
const one = process()
const refresher = createCredentialRefresher({
  ...one,
  onReportError: (error) => {
    throw error
  },
})

/** An active account with a refresh token. */
async function connected() {
  const id = await addConsent({ access_token: 'first-token', refresh_token: 'first-refresh' })
  const ref = { environmentId: own.environmentId, id }
  const transition = (cause: 'reconnected' | 'steps_passed') =>
    database.transaction((each) => changeAccountStatus(each, ref, cause))
  const refresh = async () => one.tokens.refresh(await one.load(id), true).catch(() => undefined)
  return {
    id,
    /** A call that is answered with 401. */
    async unauthorized() {
      await refresher.report((await one.load(id)).access, { kind: 'unauthorized', message: 'HTTP 401' })
    },
    /** A call that succeeds: the engine reports it where the account was loaded as unauthorized. */
    async worked() {
      const { access } = await one.load(id)
      if (access.unauthorizedSince !== undefined) await refresher.report(access, { kind: 'worked' })
    },
    async refused() {
      server.answer(errorResponse(400, { error: 'invalid_grant' }))
      await refresh()
    },
    async granted() {
      server.answer({ access_token: 'next-token', refresh_token: 'next-refresh' })
      await refresh()
    },
    async reconnected() {
      await transition('reconnected')
      await transition('steps_passed')
    },
    status: async () => (await statusOf(id)).status,
    written: async () =>
      await queryOne<{ entries: number; events: number; version: number }>(
        tx,
        `select (select count(*)::int from integrated_account_history where integrated_account_id = :id) as entries,
           (select count(*)::int from event where subject_id = :id) as events, version
         from integrated_account where id = :id`,
        { id },
      ),
  }
}

describe('an account of which one endpoint answers 401 and the others 200', () => {
  it('changes its status once an hour at most, however often it is called', async () => {
    const account = await connected()
    const before = await account.written()
    for (let pair = 0; pair < 60; pair++) {
      await account.unauthorized()
      await account.worked()
      pass(SECOND_MS)
    }
    const after = await account.written()
    expect(after).toEqual({
      entries: (before?.entries ?? 0) + 2,
      events: (before?.events ?? 0) + 2,
      version: (before?.version ?? 0) + 2,
    })
    expect(await account.status()).toBe('active')
  })

  it('is needs_reauth when nothing succeeds for an hour', async () => {
    const account = await connected()
    await account.unauthorized()
    await account.worked()
    pass(2 * MINUTE_MS)
    await account.unauthorized()
    expect(await account.status(), 'contradicted a moment ago').toBe('active')
    pass(HOUR_MS)
    await account.unauthorized()
    expect(await account.status()).toBe('needs_reauth')
  })
})

describe('an account whose grant was refused', () => {
  it('stays needs_reauth while calls succeed on the old access token', async () => {
    const account = await connected()
    await account.refused()
    await account.worked()
    expect(await account.status()).toBe('needs_reauth')
  })

  it('stays needs_reauth also when it was unauthorized before', async () => {
    const account = await connected()
    await account.unauthorized()
    const { access } = await one.load(account.id)
    await account.refused()
    await refresher.report(access, { kind: 'worked' })
    expect(await statusOf(account.id)).toEqual({
      status: 'needs_reauth',
      lastError: expect.stringContaining('invalid_grant'),
    })
  })

  it('is active again with the next token', async () => {
    const account = await connected()
    await account.refused()
    await account.granted()
    expect(await statusOf(account.id)).toEqual({ status: 'active', lastError: '' })
  })
})

it('a success of a call that was loaded before new credentials says nothing about them', async () => {
  const account = await connected()
  await account.unauthorized()
  const { access } = await one.load(account.id)
  await account.reconnected()
  pass(SECOND_MS)
  await account.unauthorized()
  await refresher.report(access, { kind: 'worked' })
  expect(await account.status()).toBe('needs_reauth')
})

type Step = 'unauthorized' | 'worked' | 'refused' | 'granted' | 'reconnected' | number
const STEPS = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom<Step>('unauthorized', 'worked') },
    { weight: 2, arbitrary: fc.constantFrom<Step>('refused', 'granted', 'reconnected') },
    { weight: 4, arbitrary: fc.constantFrom<Step>(SECOND_MS, 2 * MINUTE_MS, HOUR_MS, 25 * HOUR_MS) },
  ),
  { minLength: 5, maxLength: 30 },
)

it('whatever calls and token requests are answered, a refusal stays, a revoked token is noticed, a success counts', async () => {
  const property = fc.asyncProperty(STEPS, async (steps) => {
    const account = await connected()
    const startedAt = clock.now().getTime()
    const entriesBefore = (await account.written())?.entries ?? 0
    let isRefused = false
    /** Of the first 401 that is written since the last success: none is in the minute after one. */
    let failingSince: number | undefined
    let workedAt = Number.NEGATIVE_INFINITY
    /** Whether a 401 was contradicted since the last credentials. */
    let isContradicted = false
    let others = 0
    for (const step of steps) {
      if (typeof step === 'number') {
        pass(step)
        continue
      }
      const before = await account.status()
      await account[step]()
      const now = clock.now().getTime()
      const status = await account.status()
      if (step === 'refused' || step === 'granted') others += 1
      if (step === 'reconnected') others += 2
      // What was answered before says nothing about the token that is granted next.
      if (step === 'refused') [isRefused, failingSince] = [true, undefined]
      if (step === 'granted' || step === 'reconnected') isRefused = false
      if (isRefused) expect(status, 'a refused grant').toBe('needs_reauth')
      if (step === 'unauthorized') {
        if (!isContradicted) expect(status, 'the first 401').toBe('needs_reauth')
        if (now - workedAt >= MINUTE_MS && !isRefused) failingSince ??= now
        if (failingSince !== undefined && now - failingSince > HOUR_MS)
          expect(status, '401 for an hour').toBe('needs_reauth')
      }
      if (step === 'worked' && !isRefused) {
        isContradicted ||= before === 'needs_reauth'
        failingSince = undefined
        workedAt = now
        expect(status, 'a success').toBe('active')
      }
      if (step === 'reconnected') [failingSince, isContradicted] = [undefined, false]
    }
    const hours = (clock.now().getTime() - startedAt) / HOUR_MS
    const entries = ((await account.written())?.entries ?? 0) - entriesBefore
    expect(entries).toBeLessThanOrEqual(2 * (1 + Math.floor(hours)) + 3 * others)
  })
  await fc.assert(property, { numRuns: caseCount(12, 300) })
})

describe('the history of an account', () => {
  it(`has its newest ${ACCOUNT_HISTORY_MAX} entries`, async () => {
    const account = await connected()
    await execute(
      tx,
      `insert into integrated_account_history (environment_id, integrated_account_id, id, to_status, cause)
       select :environmentId, :id, lpad(to_hex(n), 32, '0')::uuid, 'active', 'steps_passed' from generate_series(1000, 2000) n`,
      { environmentId: own.environmentId, id: account.id },
    )
    await execute(tx, 'update integrated_account set version = 2000 where id = :id', { id: account.id })
    await account.unauthorized()
    const kept = await query<{ cause: string }>(
      tx,
      'select cause from integrated_account_history where integrated_account_id = :id order by id desc',
      { id: account.id },
    )
    expect(kept).toHaveLength(ACCOUNT_HISTORY_MAX)
    expect(kept[0]).toEqual({ cause: 'unauthorized' })
  })

  it('forgets entries by the time of the next one, never the latest', async () => {
    const account = await connected()
    await account.unauthorized()
    await account.worked()
    await execute(
      tx,
      `update integrated_account_history set superseded_at = superseded_at - interval '90 days'
       where integrated_account_id = :id and cause <> 'unauthorized'`,
      { id: account.id },
    )
    await deleteSupersededHistory(tx, new Date(Date.now() - 89 * DAY_MS), 1_000)
    const kept = await query<{ cause: string }>(
      tx,
      'select cause from integrated_account_history where integrated_account_id = :id order by id',
      { id: account.id },
    )
    expect(kept).toEqual([{ cause: 'unauthorized' }, { cause: 'call_succeeded' }])
  })
})
