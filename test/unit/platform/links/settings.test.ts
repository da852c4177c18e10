import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { query } from '../../../../src/foundation/database/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { updateIntegratedAccount } from '../../../../src/platform/accounts/account.ts'
import { deleteIntegratedAccount, getIntegratedAccount } from '../../../../src/platform/accounts/index.ts'
import {
  findLinkSession,
  findSettingsForm,
  type LinkSessionInput,
  type LinkSessionRef,
  loadSettingsOptions,
  submitForm,
  submitSettings,
} from '../../../../src/platform/links/index.ts'
import { startUpstream } from '../../../support/upstream.ts'
import { KEY_CONFIG, linksFixture } from './fixture.ts'

const { links, scope, install, open, causes, events, age, activate, read } = await linksFixture()
const upstream = await startUpstream()
afterEach(() => upstream.verify())
afterAll(() => upstream[Symbol.asyncDispose]())

const CHANNEL = {
  name: 'channel',
  type: 'single_select',
  required: true,
  data_source: { resource: 'channels', query: { team: '{{team}}' } },
  options: { value: 'id', label: 'name' },
}
const TEAM = { name: 'team', required: true }

/** A session of an account that works and whose form waits for the customer. */
async function settings(fields: readonly Json[] = [TEAM, CHANNEL], input: Partial<LinkSessionInput> = {}) {
  return await settingsOf([{ type: 'form', config: { fields } }], input)
}

async function settingsOf(steps: readonly Json[], input: Partial<LinkSessionInput> = {}) {
  const { name } = await install({
    ...KEY_CONFIG,
    base_url: upstream.url,
    resources: { channels: { list: { path: '/channels' } } },
    actions: { post_connect_user_form: { steps } },
  })
  const ref = await open({ integrations: [name], ...input })
  await submitForm(links, ref, { api_key: 'k-canary', subdomain: 'acme' })
  const session = await findLinkSession(links, ref)
  if (session === undefined) throw new Error('there is no session')
  return { ref, session, accountId: session.integratedAccountId ?? '' }
}

const contextOf = async (id: string) =>
  (await getIntegratedAccount(links.accounts, links.database.pool, scope, id)).context

async function submissions(id: string) {
  const sql = "select 1 from event where subject_id = :id and type = 'integrated_account:post_connect_form_submitted'"
  return (await query(links.database.pool, sql, { id })).length
}

const CHOSEN = { team: 't1', channel: { value: 'C1', label: 'general' } }

describe('the settings of an account', () => {
  it('are asked for once it works, and end the session with the event', async () => {
    const { ref, session, accountId } = await settings()
    expect(session).toMatchObject({ status: 'post_connect_form', step: 'settings' })
    expect(
      (await findSettingsForm(links, session))?.fields.map(({ name, remote }) => [name, remote?.dependsOn]),
    ).toEqual([
      ['team', undefined],
      ['channel', ['team']],
    ])
    upstream.script({
      request: 'GET /channels?team=t1',
      headers: { authorization: 'Bearer k-canary' },
      answer: { json: [{ id: 'C1', name: 'general' }] },
    })
    expect(await loadSettingsOptions(links, ref, { field: 'channel', values: { team: 't1' } })).toMatchObject({
      kind: 'page',
      options: [{ value: 'C1', label: 'general' }],
    })
    expect(await submitSettings(links, ref, CHOSEN)).toMatchObject({
      kind: 'progress',
      session: { status: 'completed', error: null },
    })
    expect(await contextOf(accountId)).toMatchObject({ team: 't1', channel: 'C1', channel_label: 'general' })
    expect(await causes(ref.id)).toEqual(expect.arrayContaining(['settings_required', 'settings_submitted']))
    expect((await events(ref.id)).map(({ type }) => type)).toEqual(['link_token:completed'])
    expect(await submissions(accountId)).toBe(1)
  })

  it('are stored once, however often and from however many tabs they are submitted', async () => {
    const { ref, accountId } = await settings()
    const results = await Promise.all(
      Array.from({ length: 8 }, (_item, index) => submitSettings(links, ref, { ...CHOSEN, team: `t${index}` })),
    )
    expect(results.map(({ kind }) => kind)).toEqual(Array.from({ length: 8 }, () => 'progress'))
    const context = await contextOf(accountId)
    expect(await submitSettings(links, ref, { ...CHOSEN, team: 'late' })).toMatchObject({
      session: { status: 'completed' },
    })
    expect(await contextOf(accountId)).toEqual(context)
    expect(await submissions(accountId)).toBe(1)
  })

  it.each<[string, JsonObject, string[]]>([
    ['required ones', {}, ['team']],
    ['one that depends on another', { team: 't' }, ['channel']],
    ['of a wrong type', { team: 't', channel: ['C1'] }, ['channel']],
    ['that are not asked for', { ...CHOSEN, extra: 1 }, ['extra']],
  ])('are rejected, and may be submitted again: %s', async (_what, values, fields) => {
    const { ref, accountId } = await settings()
    const before = await contextOf(accountId)
    const result = await submitSettings(links, ref, values)
    expect(result.kind === 'invalid' && result.violations.map(({ field }) => field)).toEqual(fields)
    expect(await contextOf(accountId)).toEqual(before)
    expect(await submitSettings(links, ref, CHOSEN)).toMatchObject({ session: { status: 'completed' } })
  })

  it('that the application supplied are hidden, and win over what a browser sends', async () => {
    const { ref, session, accountId } = await settings(undefined, { context: { team: 'theirs' } })
    const form = await findSettingsForm(links, session)
    expect(form?.fields.map(({ isHidden }) => isHidden)).toEqual([true, false])
    upstream.script({ request: 'GET /channels?team=theirs', answer: { json: [] } })
    await loadSettingsOptions(links, ref, { field: 'channel', values: { team: 'mine' } })
    await submitSettings(links, ref, { team: 'mine', channel: 'C1' })
    expect(await contextOf(accountId)).toMatchObject({ team: 'theirs', channel: 'C1', channel_label: 'C1' })
  })

  it.each<[string, readonly Json[], Partial<LinkSessionInput>]>([
    ['the application supplied them all', [TEAM], { context: { team: 't' } }],
    ['all of them are hidden', [{ name: 'x', type: 'hidden', default: 'y' }], {}],
    ['the application shows the form itself', [TEAM], { skipPostConnectForm: true }],
  ])('are not asked for when %s', async (_what, fields, input) => {
    const { session } = await settings(fields, input)
    expect(session.status).toBe('completed')
    expect(await findSettingsForm(links, session)).toBeUndefined()
  })

  it('that no condition asks for are skipped: the session is completed when its form is looked at', async () => {
    const hidden = { name: 'plan', type: 'hidden', default: 'free' }
    const steps = [
      { type: 'form', run_if: 'context.subdomain = "other"', config: { fields: [TEAM] } },
      { type: 'form', config: { fields: [hidden] } },
    ]
    const { ref, session, accountId } = await settingsOf(steps)
    expect(session.status).toBe('post_connect_form')
    expect(await findSettingsForm(links, session)).toBeUndefined()
    expect(await findLinkSession(links, ref)).toMatchObject({ status: 'completed', error: null })
    expect(await contextOf(accountId)).toMatchObject({ plan: 'free' })
  })

  it('may depend on a field of a step that is not asked for', async () => {
    const steps = [
      { type: 'form', run_if: 'context.subdomain = "other"', config: { fields: [TEAM] } },
      { type: 'form', config: { fields: [CHANNEL] } },
    ]
    const { ref } = await settingsOf(steps)
    upstream.script({ request: 'GET /channels', answer: { json: [{ id: 'C1' }] } })
    expect(await loadSettingsOptions(links, ref, { field: 'channel' })).toMatchObject({ options: [{ value: 'C1' }] })
    expect(await submitSettings(links, ref, { channel: 'C1' })).toMatchObject({ session: { status: 'completed' } })
  })

  it('are for the browser that opened the session, until the link expires', async () => {
    const { ref, accountId } = await settings()
    const otherBrowser: LinkSessionRef = { ...ref, browserKey: 'x'.repeat(43) }
    expect(await submitSettings(links, otherBrowser, CHOSEN)).toEqual({ kind: 'unknown' })
    expect(await loadSettingsOptions(links, otherBrowser, { field: 'channel' })).toEqual({ kind: 'unknown' })
    await age(ref.id, 8 * 86_400_000)
    expect(await submitSettings(links, ref, CHOSEN)).toMatchObject({ session: { status: 'expired' } })
    expect(await loadSettingsOptions(links, ref, { field: 'channel' })).toEqual({ kind: 'unknown' })
    expect(await submissions(accountId)).toBe(0)
  })

  it('of an account that was deleted meanwhile are gone with its session', async () => {
    const { ref, accountId } = await settings()
    await links.database.transaction((tx) => deleteIntegratedAccount(links.accounts, tx, scope, { id: accountId }))
    expect(await submitSettings(links, ref, CHOSEN)).toEqual({ kind: 'unknown' })
  })
})

describe('a grant over several organisations', () => {
  const POST_INSTALL = {
    steps: [
      { name: 'all', type: 'request', config: { path: '/organisations' } },
      {
        type: 'update_context',
        config:
          '($kept := $steps.all[id = $$.context.organisation][0]; $one := $exists($kept) ? $kept : $count($steps.all) = 1 ? $steps.all[0]; {"organisation": $exists($one) ? $one.id : null})',
      },
    ],
  }
  const FORM = {
    steps: [
      {
        type: 'form',
        config: {
          before_active: true,
          fields: [
            {
              name: 'organisation',
              label: 'Organisation',
              type: 'single_select',
              required: true,
              data_source: { resource: 'organisations' },
              options: { value: 'id', label: 'name' },
            },
          ],
        },
      },
    ],
  }
  const CONFIG = {
    ...KEY_CONFIG,
    base_url: upstream.url,
    credentials: {
      api_key: {
        config: {
          fields: [{ name: 'api_key', type: 'password', required: true }],
          identity: { context: 'organisation' },
        },
      },
    },
    resources: { organisations: { list: { path: '/organisations' } } },
    actions: { post_install: POST_INSTALL, post_connect_user_form: FORM },
  }
  const [A, B] = [
    { id: 'a', name: 'Acme' },
    { id: 'b', name: 'Beta' },
  ]
  const granted = (organisations: readonly Json[], times = 1) =>
    upstream.script({ request: 'GET /organisations', answer: { json: organisations }, times })
  const accountOf = (id: string) => getIntegratedAccount(links.accounts, links.database.pool, scope, id)

  /** Enters a key on the page, and lets the account be prepared. */
  async function connect(input: Partial<LinkSessionInput>) {
    const ref = await open(input)
    await submitForm(links, ref, { api_key: 'k-canary' })
    await activate()
    const session = await findLinkSession(links, ref)
    if (session === undefined) throw new Error('there is no session')
    return { ref, session, id: session.integratedAccountId ?? '' }
  }

  it('makes no active account before one is chosen; then the session ends without another form', async () => {
    const { name } = await install(CONFIG)
    granted([A, B], 2)
    const { ref, session, id } = await connect({ integrations: [name], skipPostConnectForm: true })
    expect(session).toMatchObject({ status: 'post_connect_form', step: 'settings' })
    expect(await accountOf(id)).toMatchObject({
      status: 'connecting',
      lastError: "waits for the customer's choice: Organisation (organisation)",
    })
    expect((await findSettingsForm(links, session))?.fields.map(({ name }) => name)).toEqual(['organisation'])
    expect(await loadSettingsOptions(links, ref, { field: 'organisation' })).toMatchObject({
      options: [{ value: 'a' }, { value: 'b' }],
    })
    await submitSettings(links, ref, { organisation: { value: 'b', label: 'Beta' } })
    expect(await read(ref.id)).toMatchObject({ status: 'validating' })
    await activate()
    expect(await read(ref.id)).toMatchObject({ status: 'completed' })
    expect(await accountOf(id)).toMatchObject({ status: 'active', externalId: 'b', context: { organisation: 'b' } })
  })

  it('is not waited for where the condition of its form does not hold', async () => {
    const steps = FORM.steps.map((step) => ({ ...step, run_if: '$exists(context.consent)' }))
    const { name } = await install({
      ...CONFIG,
      credentials: { api_key: { config: { fields: [{ name: 'api_key', type: 'password', required: true }] } } },
      actions: { post_connect_user_form: { steps } },
    })
    const { session, id } = await connect({ integrations: [name], skipPostConnectForm: true })
    expect(session.status).toBe('completed')
    expect((await accountOf(id)).status).toBe('active')
  })

  it('keeps the choice through a reconnection, and asks again only when it is gone', async () => {
    const { name } = await install(CONFIG)
    granted([B])
    const { id } = await connect({ integrations: [name] })
    expect(await accountOf(id)).toMatchObject({ status: 'active', externalId: 'b' })
    const again = { subject: { integratedAccountId: id }, persistPreviousContext: true }
    granted([A, B])
    expect((await connect(again)).session.status).toBe('completed')
    expect(await accountOf(id)).toMatchObject({ status: 'active', context: { organisation: 'b' } })
    granted([A])
    const other = await connect(again)
    expect(other.session).toMatchObject({ status: 'form', error: { code: 'identity_changed' } })
    expect(await accountOf(id)).toMatchObject({ status: 'validation_error', externalId: 'b' })
  })

  it('is chosen by the application too, which activates the account', async () => {
    const { name } = await install(CONFIG)
    granted([A, B])
    const { id } = await connect({ integrations: [name] })
    await links.database.transaction((tx) =>
      updateIntegratedAccount(links.accounts, tx, scope, { id, context: { organisation: 'a' } }),
    )
    await activate()
    expect(await accountOf(id)).toMatchObject({ status: 'active', externalId: 'a' })
  })

  it('that is not for the organisation that the application named ends the attempt with that reason', async () => {
    const { name } = await install(CONFIG)
    granted([A, B])
    const { session } = await connect({ integrations: [name], context: { organisation: 'c' } })
    expect(session).toMatchObject({ error: { code: 'validation_error' } })
  })
})
