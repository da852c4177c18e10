import { beforeEach, describe, expect, it } from 'vitest'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { getIntegratedAccount, loadAccountForCall } from '../../../../src/platform/accounts/index.ts'
import {
  chooseMethod,
  confirmIdentityChange,
  handleCallback,
  type LinkSessionRef,
  submitForm,
} from '../../../../src/platform/links/index.ts'
import { jsonReply } from '../../../lab/browser/peers/listen.ts'
import { linksFixture } from './fixture.ts'
import { startThirdParty } from './third-party.ts'

const fixture = await linksFixture()
const { links, database, scope, install, open, read, causes, events, activate, age } = fixture
const peer = await startThirdParty()
const { name } = await install(peer.oauth())
const grantAll = peer.answers.token

beforeEach(() => {
  peer.answers.token = grantAll
  peer.exchanges.length = 0
  peer.paths.length = 0
})

/** The address of the consent page of a new authorisation. */
async function begin(ref: LinkSessionRef): Promise<URL> {
  const result = await submitForm(links, ref, {})
  if (result.kind !== 'redirect') throw new Error(`no redirect: ${JSON.stringify(result)}`)
  return new URL(result.url)
}

const stateOf = (url: URL) => url.searchParams.get('state') ?? ''

/** The browser's return from the third party. */
async function comeBack(ref: LinkSessionRef, params: Readonly<Record<string, string>>, canRepost = false) {
  const browserKeyOf = (id: string) => (id === ref.id ? ref.browserKey : undefined)
  return await handleCallback(links, { params, browserKeyOf, sessionIds: [ref.id], canRepost })
}

/** A session that waits for the consent, and its state. */
async function redirected(input: Parameters<typeof open>[0] = {}) {
  const ref = await open({ integrations: [name], ...input })
  return { ref, state: stateOf(await begin(ref)) }
}

const accountsOf = async (tenantId: string) =>
  await query(database.pool, 'select id from integrated_account where tenant_id = :tenantId', { tenantId })

describe('a consent', () => {
  it('is that of the chosen one of two credentials of one format', async () => {
    const config = (id: string, tokenPath: string) => ({
      client: { id, secret: `${id}-secret-canary` },
      auth: { tokenHost: peer.url, tokenPath, authorizeHost: peer.url, authorizePath: '/authorize' },
    })
    const credentials = {
      eu: { format: 'oauth2', label: 'Europe', config: config('client-eu', '/token/eu') },
      us: { format: 'oauth2', label: 'America', config: config('client-us', '/token/us') },
    }
    const two = await install({ ...peer.oauth(), credentials })
    const ref = await open({ integrations: [two.name], subject: { tenantId: 'us-customer' } })
    await chooseMethod(links, ref, 'us')
    const url = await begin(ref)
    expect(url.searchParams.get('client_id')).toBe('client-us')
    await comeBack(ref, { code: 'the-code', state: stateOf(url) })
    await activate()
    const session = await read(ref.id)
    expect(session).toMatchObject({ status: 'completed', credential: 'us', authenticationMethod: 'oauth2' })
    expect(peer.paths).toEqual(['/token/us'])
    const account = await getIntegratedAccount(links.accounts, database.pool, scope, session.integratedAccountId ?? '')
    expect(account).toMatchObject({ credential: 'us', authenticationMethod: 'oauth2' })
  })

  it('connects an account with the token, and ends when its activation has passed', async () => {
    const ref = await open({ integrations: [name], subject: { tenantId: 'whole' } })
    const url = await begin(ref)
    expect(url.searchParams.get('redirect_uri')).toBe('https://patchbay.example.com/connect/callback')
    expect(url.searchParams.get('code_challenge_method')).toBe('S256')
    expect(await read(ref.id)).toMatchObject({ status: 'redirected', step: 'consent' })

    const back = await comeBack(ref, { code: 'the-code', state: stateOf(url) })
    expect(back).toEqual({ kind: 'session', id: ref.id, isPopup: false })
    await activate()
    const session = await read(ref.id)
    expect(session).toMatchObject({
      status: 'completed',
      error: null,
      grantedScopes: ['read', 'write'],
      missingScopes: [],
    })
    const account = await getIntegratedAccount(links.accounts, database.pool, scope, session.integratedAccountId ?? '')
    expect(account).toMatchObject({ status: 'active', tenantId: 'whole', authenticationMethod: 'oauth2' })
    expect((await causes(ref.id)).slice(3)).toEqual([
      'consent_requested',
      'callback_received',
      'account_connected',
      'account_active',
    ])
    expect(peer.exchanges.map((form) => form.get('code'))).toEqual(['the-code'])
    expect((await events(ref.id)).map(({ type }) => type)).toEqual(['link_token:completed'])
  })

  it('reports scopes that were not granted', async () => {
    peer.answers.token = () => jsonReply(200, { access_token: 'at', token_type: 'bearer', scope: 'read' })
    const { ref, state } = await redirected()
    await comeBack(ref, { code: 'c', state })
    expect(await read(ref.id)).toMatchObject({ grantedScopes: ['read'], missingScopes: ['write'] })
  })

  it('asks for the scopes of the session', async () => {
    const ref = await open({ integrations: [name], scopes: ['admin'] })
    expect((await begin(ref)).searchParams.get('scope')).toContain('admin')
  })

  it('lets calls of the account read the callback address', async () => {
    const { ref, state } = await redirected()
    await comeBack(ref, { code: 'c', state })
    await activate()
    const id = (await read(ref.id)).integratedAccountId ?? ''
    const { access } = await loadAccountForCall(links.accounts, scope.environmentId, id, 'call')
    expect(access.connection).toMatchObject({ redirect_uri: 'https://patchbay.example.com/connect/callback' })
  })

  it('leaves no secret in the session when the account is stored', async () => {
    const { ref, state } = await redirected()
    const sealed = 'select sealed_values is null as "isEmpty" from link_session where id = :id'
    expect(await query(database.pool, sealed, { id: ref.id })).toEqual([{ isEmpty: false }])
    await comeBack(ref, { code: 'c', state })
    expect(await query(database.pool, sealed, { id: ref.id })).toEqual([{ isEmpty: true }])
  })
})

describe('a callback', () => {
  it('that arrives twenty times exchanges the code once', async () => {
    let answer: () => void = () => {}
    const answered = new Promise<void>((resolve) => {
      answer = resolve
    })
    peer.answers.token = async (form) => {
      await answered
      return await grantAll(form)
    }
    const { ref, state } = await redirected({ subject: { tenantId: 'twenty' } })
    const all = Array.from({ length: 20 }, () => comeBack(ref, { code: 'c', state }))
    // All but the one that exchanges are answered at once.
    const others = await Promise.race([Promise.all(all).then(() => 'all'), countUntil(all, 19)])
    answer()
    expect(others).toBe(19)
    for (const result of await Promise.all(all)) expect(result).toEqual({ kind: 'session', id: ref.id, isPopup: false })
    expect(peer.exchanges).toHaveLength(1)
    expect(await accountsOf('twenty')).toHaveLength(1)
    expect((await causes(ref.id)).filter((cause) => cause === 'callback_received')).toHaveLength(1)
  })

  it('that is reloaded after the end shows the session', async () => {
    const { ref, state } = await redirected()
    await comeBack(ref, { code: 'c', state })
    await activate()
    expect(await comeBack(ref, { code: 'c', state })).toMatchObject({ kind: 'session', id: ref.id })
    expect(peer.exchanges).toHaveLength(1)
    expect(await read(ref.id)).toMatchObject({ status: 'completed' })
  })

  it('of another browser changes nothing', async () => {
    const { ref, state } = await redirected()
    const other = { ...ref, browserKey: 'x'.repeat(43) }
    const rejected = { kind: 'rejected', code: 'state_mismatch' }
    expect(await comeBack(other, { code: 'stolen', state })).toEqual(rejected)
    expect(
      await handleCallback(links, {
        params: { state },
        browserKeyOf: () => undefined,
        sessionIds: [],
        canRepost: false,
      }),
    ).toEqual(rejected)
    expect(peer.exchanges).toHaveLength(0)
    expect(await read(ref.id)).toMatchObject({ status: 'redirected' })
    await comeBack(ref, { code: 'c', state })
    expect(peer.exchanges).toHaveLength(1)
  })

  it('finds the session by a state that came back under another name', async () => {
    const { ref, state } = await redirected()
    expect(await comeBack(ref, { code: 'c', customField: state })).toMatchObject({ kind: 'session', id: ref.id })
    expect(peer.exchanges).toHaveLength(1)
  })

  it('by POST without a cookie is to be posted again', async () => {
    const { ref, state } = await redirected()
    const input = { params: { state, code: 'c' }, browserKeyOf: () => undefined, sessionIds: [], canRepost: true }
    expect(await handleCallback(links, input)).toEqual({ kind: 'needs_repost' })
    expect(await read(ref.id)).toMatchObject({ status: 'redirected' })
  })

  it.each(['', 'unknown', 'x'.repeat(5_000)])(
    'with the state "%s" shows the session that the browser has open, and exchanges nothing',
    async (state) => {
      const { ref } = await redirected()
      expect(await comeBack(ref, { code: 'c', state })).toEqual({ kind: 'session', id: ref.id, isPopup: false })
      expect(await read(ref.id)).toMatchObject({ status: 'redirected', error: null })
      expect(peer.exchanges).toEqual([])
    },
  )

  it.each([
    ['', 'begun_elsewhere'],
    ['unknown', 'rejected'],
  ])('with the state "%s" in a browser without a session is %s', async (state, kind) => {
    const input = { params: { code: 'c', state }, browserKeyOf: () => undefined, sessionIds: [], canRepost: false }
    expect(await handleCallback(links, input)).toMatchObject({ kind })
  })

  it('that denies without a state ends the attempt, which may be repeated', async () => {
    const { ref } = await redirected()
    await comeBack(ref, { error: 'access_denied', error_description: 'The user said no' })
    expect(await read(ref.id)).toMatchObject({ status: 'form', error: { code: 'consent_denied' } })
    await comeBack(ref, { code: 'c', state: stateOf(await begin(ref)) })
    await activate()
    expect(await read(ref.id)).toMatchObject({ status: 'completed' })
  })

  it('with an error but a state of another one ends nothing', async () => {
    const { ref } = await redirected()
    await comeBack(ref, { error: 'access_denied', state: 'unknown' })
    expect(await read(ref.id)).toMatchObject({ status: 'redirected' })
  })

  it('of an authorisation that was begun anew in another tab leads to the session, with its code unused', async () => {
    const { ref, state } = await redirected()
    const second = stateOf(await begin(ref))
    expect(await comeBack(ref, { code: 'old', state })).toEqual({ kind: 'session', id: ref.id, isPopup: false })
    await comeBack(ref, { code: 'new', state: second })
    expect(peer.exchanges.map((form) => form.get('code'))).toEqual(['new'])
  })

  it('after ten minutes leads back to the form', async () => {
    const { ref, state } = await redirected()
    await age(ref.id, 601_000)
    await comeBack(ref, { code: 'late', state })
    expect(peer.exchanges).toHaveLength(0)
    expect(await read(ref.id)).toMatchObject({ status: 'form', error: { code: 'state_mismatch' } })
  })

  it('with an error of the third party leads back to the form, and may be repeated', async () => {
    const { ref, state } = await redirected()
    await comeBack(ref, { error: 'access_denied', error_description: 'no', state })
    expect(await read(ref.id)).toMatchObject({ status: 'form', step: 'form', error: { code: 'consent_denied' } })
    expect(await events(ref.id)).toMatchObject([
      { type: 'link_token:connection_error', payload: { error_code: 'consent_denied' } },
    ])
    await comeBack(ref, { code: 'c', state: stateOf(await begin(ref)) })
    await activate()
    expect(await read(ref.id)).toMatchObject({ status: 'completed', error: null })
  })

  it('to an integration that was disabled meanwhile ends the session, without an exchange', async () => {
    const disabled = await install(peer.oauth())
    const ref = await open({ integrations: [disabled.name] })
    const state = stateOf(await begin(ref))
    const sql = 'update environment_integration set is_enabled = false where id = :id'
    await execute(database.pool, sql, { id: disabled.id })
    await comeBack(ref, { code: 'c', state })
    expect(await read(ref.id)).toMatchObject({ status: 'failed', error: { code: 'integration_disabled' } })
    expect(peer.exchanges).toHaveLength(0)
  })

  it('that waits for an administrator keeps the session, and a later one connects the account', async () => {
    const pending = await install(peer.oauth({ authorize: { pending_when: { setup_action: 'request' } } }))
    const ref = await open({ integrations: [pending.name] })
    const state = stateOf(await begin(ref))
    await comeBack(ref, { setup_action: 'request', state })
    expect(await read(ref.id)).toMatchObject({ status: 'pending', step: 'consent', error: null })
    expect(peer.exchanges).toHaveLength(0)
    await comeBack(ref, { code: 'c', state: stateOf(await begin(ref)) })
    await activate()
    expect(await read(ref.id)).toMatchObject({ status: 'completed' })
  })

  it('whose code is rejected tells it, without the code', async () => {
    peer.answers.token = (form) =>
      jsonReply(400, { error: 'invalid_grant', error_description: `bad ${form.get('code')}` })
    const { ref, state } = await redirected()
    await comeBack(ref, { code: 'code-canary-1234567890', state })
    const { status, error } = await read(ref.id)
    expect({ status, code: error?.code }).toEqual({ status: 'form', code: 'token_exchange_failed' })
    expect(error?.message).not.toContain('canary')
  })
})

describe('an exchange whose process died', () => {
  it('ends after a minute, and stores nothing afterwards', async () => {
    const { ref, state } = await redirected({ subject: { tenantId: 'slow' } })
    peer.answers.token = async (form) => {
      // Meanwhile another process looks at the session, a minute later.
      await age(ref.id, 61_000)
      expect(await read(ref.id)).toMatchObject({ status: 'form', error: { code: 'token_exchange_failed' } })
      return await grantAll(form)
    }
    await comeBack(ref, { code: 'c', state })
    expect(await read(ref.id)).toMatchObject({ status: 'form', integratedAccountId: null })
    expect(await accountsOf('slow')).toHaveLength(0)
    peer.answers.token = grantAll
    await comeBack(ref, { code: 'again', state: stateOf(await begin(ref)) })
    await activate()
    expect(await read(ref.id)).toMatchObject({ status: 'completed' })
  })
})

describe('an account that is reconnected', () => {
  it('gets the new token and keeps its id; its other context goes unless it is to persist', async () => {
    const { ref, state } = await redirected({ context: { a: 1, b: 2 } })
    await comeBack(ref, { code: 'c', state })
    await activate()
    const { integratedAccountId: id } = await read(ref.id)
    if (id === null) throw new Error('no account')
    const subject = { integratedAccountId: id }
    const again = async (input: Parameters<typeof open>[0]) => {
      const next = await open({ subject, ...input })
      await comeBack(next, { code: 'c', state: stateOf(await begin(next)) })
      await activate()
      expect(await read(next.id)).toMatchObject({ status: 'completed', integratedAccountId: id, isReconnect: true })
      return (await getIntegratedAccount(links.accounts, database.pool, scope, id)).context
    }
    expect(await again({ context: { b: 3 }, persistPreviousContext: true })).toEqual({ a: 1, b: 3 })
    expect(await again({ context: { c: 4 } })).toEqual({ c: 4 })
  })

  it('with another identity is active when the customer has confirmed it, without another consent', async () => {
    const identified = await install(peer.oauth({ identity: { path: 'team_id' } }))
    const tokenOf = (team_id: string) => () => jsonReply(200, { access_token: 'at', token_type: 'bearer', team_id })
    peer.answers.token = tokenOf('one')
    const first = await open({ integrations: [identified.name] })
    await comeBack(first, { code: 'c', state: stateOf(await begin(first)) })
    await activate()
    const { integratedAccountId } = await read(first.id)

    peer.answers.token = tokenOf('other')
    const ref = await open({ subject: { integratedAccountId: integratedAccountId ?? '' } })
    await comeBack(ref, { code: 'c', state: stateOf(await begin(ref)) })
    await activate()
    expect(await read(ref.id)).toMatchObject({ status: 'form', error: { code: 'identity_changed' } })
    await Promise.all([confirmIdentityChange(links, ref), confirmIdentityChange(links, ref)])
    expect(await read(ref.id)).toMatchObject({ status: 'post_install', error: null })
    await activate()
    expect(await read(ref.id)).toMatchObject({ status: 'completed', integratedAccountId })
    expect(peer.exchanges).toHaveLength(2)
  })
})

async function countUntil(promises: readonly Promise<unknown>[], wanted: number): Promise<number> {
  let settled = 0
  return await new Promise((resolve) => {
    for (const each of promises)
      void each.then(() => {
        settled++
        if (settled === wanted) resolve(settled)
      })
  })
}
