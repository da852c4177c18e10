import { describe, expect, it } from 'vitest'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { deleteIntegratedAccount } from '../../../../src/platform/accounts/index.ts'
import {
  cancelLinkSession,
  createHopTicket,
  findLinkOrigins,
  findLinkSession,
  linkSessionCleaner,
  listLinkSessions,
  openLinkSession,
  readLinkSummary,
  redeemHopTicket,
  submitForm,
} from '../../../../src/platform/links/index.ts'
import { createEnvironment, deleteEnvironment } from '../../../../src/platform/tenancy/index.ts'
import { linksFixture } from './fixture.ts'
import { startThirdParty } from './third-party.ts'

const fixture = await linksFixture()
const { links, database, scope, install, create, open, read, causes, age } = fixture
const peer = await startThirdParty()
const keys = await install()
const oauth = await install(peer.oauth())
const VALUES = { api_key: 'k-canary', subdomain: 'acme' }
const DAY_MS = 24 * 60 * 60_000

describe('a link token', () => {
  it('opens its session, again in the same browser', async () => {
    const { token, session, url } = await create({ integrations: [keys.name] })
    expect(token).toMatch(/^lnk_[0-9a-f]{32}_[0-9A-Za-z]{38}$/)
    expect(url).toBe(`https://patchbay.example.com/connect?link_token=${token}`)
    const first = await openLinkSession(links, token)
    if (first.kind !== 'opened') throw new Error(first.code)
    expect(first.session).toMatchObject({ id: session.id, status: 'form' })
    expect(await openLinkSession(links, token, first.browserKey)).toMatchObject({ browserKey: first.browserKey })
  })

  it('opens in another browser until something was submitted, with nothing that the first one chose', async () => {
    const { token } = await create({ integrations: [oauth.name] })
    const scanner = await openLinkSession(links, token)
    const customer = await openLinkSession(links, token)
    if (scanner.kind !== 'opened' || customer.kind !== 'opened') throw new Error('not opened')
    const ref = { id: customer.session.id, browserKey: customer.browserKey }
    expect(await findLinkSession(links, { ...ref, browserKey: scanner.browserKey })).toBeUndefined()
    expect(await submitForm(links, ref, {})).toMatchObject({ kind: 'redirect' })
    expect(await openLinkSession(links, token)).toEqual({ kind: 'rejected', code: 'used_token' })
  })

  it.each(['', 'lnk_', 'lnk_0', 'pbe_abc', `lnk_${'0'.repeat(32)}_${'A'.repeat(38)}`, 'x'.repeat(10_000)])(
    'that is none is invalid: %#',
    async (token) => {
      expect(await openLinkSession(links, token)).toEqual({ kind: 'rejected', code: 'invalid_token' })
      expect(await readLinkSummary(links, token)).toBeUndefined()
    },
  )

  it('with another secret is invalid, although it is well-formed', async () => {
    const [one, other] = [await create(), await create()]
    const secret = one.token.slice(-38)
    const forged = `${other.token.slice(0, -38)}${secret}`
    expect(await openLinkSession(links, forged)).toEqual({ kind: 'rejected', code: 'invalid_token' })
  })

  it('is not stored, nor is the key of a browser', async () => {
    const { token } = await create()
    const opened = await openLinkSession(links, token)
    const rows = JSON.stringify(await query(database.pool, 'select * from link_session'))
    expect(rows).not.toContain(token.slice(-38))
    expect(rows).not.toContain(opened.kind === 'opened' ? opened.browserKey : 'not opened')
  })

  it('that was cancelled opens nothing', async () => {
    const { token, session } = await create()
    await cancelLinkSession(links, scope, session.id)
    expect(await openLinkSession(links, token)).toEqual({ kind: 'rejected', code: 'cancelled' })
  })

  it('tells the page that has it how far it is, without opening anything', async () => {
    const origins = ['https://app.example.com']
    const { token, session } = await create({ integrations: [keys.name], origins })
    expect(await readLinkSummary(links, token)).toEqual({
      origins,
      summary: {
        status: 'created',
        error_code: null,
        integrated_account_id: null,
        integration: null,
      },
    })
    expect(await findLinkOrigins(links, session.id)).toEqual(origins)
    expect(await findLinkOrigins(links, 'no-id')).toEqual([])
    expect(await read(session.id)).toMatchObject({ status: 'created' })
  })

  it('of an environment that offers nothing fails', async () => {
    const lonely = await install(undefined, { showInCatalog: false })
    const { token } = await create({ integrations: [lonely.name] })
    await execute(database.pool, 'update environment_integration set is_enabled = false where id = :id', {
      id: lonely.id,
    })
    expect(await openLinkSession(links, token)).toMatchObject({
      session: { status: 'failed', error: { code: 'integration_disabled' } },
    })
  })
})

describe('time', () => {
  it('ends a session in which the customer has to act, for every reader', async () => {
    const { token, session } = await create({ expiresInSeconds: 60 })
    await age(session.id, 61_000)
    expect(await openLinkSession(links, token)).toEqual({ kind: 'rejected', code: 'expired_token' })
    expect(await read(session.id)).toMatchObject({ status: 'expired', error: { code: 'expired_token' } })
    expect(await causes(session.id)).toEqual(['token_created', 'time_expired'])
  })

  it('ends a session in lists, and by their filter', async () => {
    const { session } = await create({ subject: { tenantId: 'late' }, expiresInSeconds: 60 })
    await age(session.id, 61_000)
    const list = async (status?: 'created' | 'expired') =>
      (await listLinkSessions(links, scope, { tenantId: 'late', status }, { before: undefined, limit: 10 })).map(
        (listed) => [listed.session.status, ...listed.transitions.map(({ cause }) => cause)],
      )
    expect(await list('created')).toEqual([])
    const expired = [['expired', 'token_created', 'time_expired']]
    expect(await list('expired')).toEqual(expired)
    expect(await list()).toEqual(expired)
  })

  it('ends sessions that have no readers, and deletes them thirty days later with their history', async () => {
    const ref = await open({ integrations: [oauth.name], expiresInSeconds: 60 })
    await submitForm(links, ref, {})
    const cleaner = linkSessionCleaner(links)
    await age(ref.id, 61_000)
    await cleaner.runOnce()
    const sql = 'select status, sealed_values is null as "isEmpty" from link_session where id = :id'
    expect(await query(database.pool, sql, { id: ref.id })).toEqual([{ status: 'expired', isEmpty: true }])
    await age(ref.id, 29 * DAY_MS)
    await cleaner.runOnce()
    expect(await query(database.pool, sql, { id: ref.id })).toHaveLength(1)
    await age(ref.id, 2 * DAY_MS)
    await cleaner.runOnce()
    expect(await query(database.pool, sql, { id: ref.id })).toEqual([])
    const history = 'select from link_session_transition where link_session_id = :id'
    expect(await query(database.pool, history, { id: ref.id })).toEqual([])
  })

  it('does not end an activation under way', async () => {
    const verified = await install(peer.keys())
    const ref = await open({ integrations: [verified.name], expiresInSeconds: 60 })
    await submitForm(links, ref, VALUES)
    await age(ref.id, 61_000)
    await linkSessionCleaner(links).runOnce()
    expect(await read(ref.id)).toMatchObject({ status: 'post_install' })
    await fixture.activate()
    expect(await read(ref.id)).toMatchObject({ status: 'completed' })
  })
})

describe('a ticket', () => {
  it('leads a popup to the consent page, once', async () => {
    const ref = await open({ integrations: [oauth.name] })
    const result = await submitForm(links, ref, {})
    if (result.kind !== 'redirect') throw new Error(result.kind)
    const ticket = (await createHopTicket(links, ref, result.url)) ?? ''
    const redeemed = await Promise.all([redeemHopTicket(links, ticket), redeemHopTicket(links, ticket)])
    expect(redeemed.filter((hop) => hop !== undefined)).toMatchObject([{ ...ref, url: result.url }])
    expect(await redeemHopTicket(links, ticket)).toBeUndefined()
  })

  it('is valid for a minute', async () => {
    const ref = await open({ integrations: [oauth.name] })
    await submitForm(links, ref, {})
    const ticket = (await createHopTicket(links, ref, 'https://id.example.com')) ?? ''
    await age(ref.id, 61_000)
    expect(await redeemHopTicket(links, ticket)).toBeUndefined()
  })

  it('is not made for a session that does not wait for a consent, or for another browser', async () => {
    const ref = await open({ integrations: [keys.name] })
    expect(await createHopTicket(links, ref, 'https://id.example.com')).toBeUndefined()
    expect(await createHopTicket(links, { ...ref, browserKey: 'z'.repeat(43) }, 'https://x.example')).toBeUndefined()
  })
})

describe('deleting', () => {
  it('an environment deletes its sessions', async () => {
    const { teamId } = scope
    const environment = await database.transaction((tx) => createEnvironment(tx, teamId, { name: 'short-lived' }))
    const { session } = await create({}, { teamId, environmentId: environment.id })
    const remove = { id: environment.id, force: true }
    await database.transaction((tx) => deleteEnvironment(fixture.domain, tx, teamId, remove))
    expect(await query(database.pool, 'select from link_session where id = :id', { id: session.id })).toEqual([])
  })

  it('an account deletes its sessions', async () => {
    const ref = await open({ integrations: [keys.name] })
    await submitForm(links, ref, VALUES)
    const id = (await read(ref.id)).integratedAccountId ?? ''
    await database.transaction((tx) => deleteIntegratedAccount(links.accounts, tx, scope, { id }))
    expect(await findLinkSession(links, ref)).toBeUndefined()
  })
})
