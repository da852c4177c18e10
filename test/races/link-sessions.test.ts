import { describe, expect, it } from 'vitest'
import { execute, query } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import {
  cancelByBrowser,
  cancelLinkSession,
  chooseIntegration,
  chooseMethod,
  type LinkSessionRef,
  openLinkSession,
  reopenChoice,
  submitForm,
} from '../../src/platform/links/index.ts'
import { freshName } from '../support/seeded-tenant.ts'
import { KEY_CONFIG, linksFixture } from '../unit/platform/links/fixture.ts'
import { startThirdParty } from '../unit/platform/links/third-party.ts'

const { links, database, scope, install, create, open, activate, read, causes, events } = await linksFixture()
const peer = await startThirdParty()
const keys = await install(KEY_CONFIG)
const consent = await install(peer.oauth())
const other = await install(peer.keys())
const several = await install({
  ...peer.oauth(),
  credentials: { ...(KEY_CONFIG.credentials as JsonObject), ...(peer.oauth().credentials as JsonObject) },
})
/** Its request token is not granted. */
const failing = await install({
  base_url: peer.url,
  retry: { max_attempts: 1 },
  credentials: {
    oauth1: {
      config: {
        request_token_url: `${peer.url}/request`,
        authorize_url: `${peer.url}/authorize`,
        access_token_url: `${peer.url}/access`,
        consumer_key: 'key',
        consumer_secret: 'consumer-canary',
      },
    },
  },
})
const VALUES = { api_key: 'k-canary', subdomain: 'acme' }

/** A session in which an integration is chosen, and the link token of another browser. */
async function chosen(id: string) {
  const { token, session } = await create()
  const opened = await openLinkSession(links, token)
  if (opened.kind !== 'opened') throw new Error(opened.code)
  const ref: LinkSessionRef = { id: session.id, browserKey: opened.browserKey }
  await chooseIntegration(links, ref, id)
  return { ref, token }
}

/**
 * Dependencies of a step during which another one is made: after the session was read, before it is changed.
 *
 * @param before which of its transactions: of a submit the first one begins the exchange, the second one stores the account
 */
function interruptedBy(step: () => Promise<unknown>, before = 1): typeof links {
  let transactions = 0
  return {
    ...links,
    database: {
      pool: links.database.pool,
      transaction: async (work) => {
        transactions++
        if (transactions === before) await step()
        return await links.database.transaction(work)
      },
    },
  }
}

const submit = (values: JsonObject) => (deps: typeof links, ref: LinkSessionRef) => submitForm(deps, ref, values)

it.each<[string, string, (deps: typeof links, ref: LinkSessionRef) => Promise<unknown>]>([
  ['a submit of values', keys.id, submit(VALUES)],
  ['a submit that asks for consent', consent.id, submit({})],
  ['a submit that the third party rejects', failing.id, submit({})],
  ['a choice of the method', several.id, (deps, ref) => chooseMethod(deps, ref, 'oauth2')],
  ['a choice of the integration', keys.id, (deps, ref) => chooseIntegration(deps, ref, consent.id)],
  ['a way back', keys.id, reopenChoice],
])('%s changes nothing when another integration is chosen meanwhile', async (_what, id, step) => {
  const { ref } = await chosen(id)
  const exchanges = peer.exchanges.length
  const deps = interruptedBy(() => chooseIntegration(links, ref, other.id))
  const present = { status: 'form', environmentIntegrationId: other.id, authenticationMethod: 'api_key', attempts: 0 }
  expect(await step(deps, ref)).toMatchObject({ kind: 'progress', session: present })
  expect(await read(ref.id)).toMatchObject({ ...present, formValues: {}, error: null, integratedAccountId: null })
  expect((await causes(ref.id)).at(-1)).toBe('method_chosen')
  expect(peer.exchanges).toHaveLength(exchanges)
})

it.each([
  ['values', keys.id, VALUES],
  ['a form that asks for consent', consent.id, {}],
])('a submit of %s changes nothing when another browser opens the link meanwhile', async (_what, id, values) => {
  const { ref, token } = await chosen(id)
  await submitForm(
    interruptedBy(() => openLinkSession(links, token).then(reselect)),
    ref,
    values,
  )
  expect(await read(ref.id)).toMatchObject({ status: 'form', attempts: 0, formValues: {}, integratedAccountId: null })

  async function reselect(opened: Awaited<ReturnType<typeof openLinkSession>>) {
    if (opened.kind !== 'opened') throw new Error(opened.code)
    await chooseIntegration(links, { id: ref.id, browserKey: opened.browserKey }, id)
  }
})

it('a submit makes no attempt when another one was the last meanwhile', async () => {
  const { ref } = await chosen(consent.id)
  await execute(database.pool, 'update link_session set attempts = 29 where id = :id', { id: ref.id })
  const deps = interruptedBy(() => submitForm(links, ref, {}))
  expect(await submitForm(deps, ref, {})).toMatchObject({ kind: 'progress', session: { status: 'redirected' } })
  expect(await read(ref.id)).toMatchObject({ attempts: 30 })
})

/** Accounts of the customer of a session. */
async function accountsOf({ id }: LinkSessionRef) {
  return await query<{ readonly id: string; readonly status: string }>(
    database.pool,
    `select a.id, a.status from integrated_account a join link_session s on s.tenant_id = a.tenant_id where s.id = :id`,
    { id },
  )
}

const cancel = {
  'in the browser': (ref: LinkSessionRef) => cancelByBrowser(links, ref),
  'by the application': (ref: LinkSessionRef) => cancelLinkSession(links, scope, ref.id),
}

describe.each(Object.entries(cancel))('a cancellation %s', (_who, cancelSession) => {
  it('before the account is stored wins: none is stored', async () => {
    const ref = await open({ integrations: [other.name], subject: { tenantId: freshName('tenant') } })
    const deps = interruptedBy(() => cancelSession(ref), 2)
    expect(await submitForm(deps, ref, VALUES)).toMatchObject({ session: { status: 'cancelled' } })
    expect(await read(ref.id)).toMatchObject({ status: 'cancelled', integratedAccountId: null })
    expect(await accountsOf(ref)).toEqual([])
  })

  it('while the account is activated loses: the link is completed, and the account active', async () => {
    const ref = await open({ integrations: [other.name], subject: { tenantId: freshName('tenant') } })
    await submitForm(links, ref, VALUES)
    expect(await read(ref.id)).toMatchObject({ status: 'post_install' })
    await cancelSession(ref)
    expect(await read(ref.id)).toMatchObject({ status: 'post_install', error: null })
    await activate()
    const session = await read(ref.id)
    expect(session).toMatchObject({ status: 'completed', error: null })
    expect(await accountsOf(ref)).toEqual([{ id: session.integratedAccountId, status: 'active' }])
    expect((await events(ref.id)).map(({ type }) => type)).toEqual(['link_token:completed'])
    await cancelSession(ref)
    expect(await read(ref.id)).toMatchObject({ status: 'completed' })
  })
})
