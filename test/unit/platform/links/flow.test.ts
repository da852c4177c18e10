import { beforeEach, describe, expect, it } from 'vitest'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { getIntegratedAccount } from '../../../../src/platform/accounts/index.ts'
import {
  cancelByBrowser,
  chooseIntegration,
  chooseMethod,
  confirmIdentityChange,
  createConnectForm,
  type LinkSessionRef,
  listChoices,
  reopenChoice,
  submitForm,
} from '../../../../src/platform/links/index.ts'
import { jsonReply } from '../../../lab/browser/peers/listen.ts'
import { KEY_CONFIG, linksFixture } from './fixture.ts'
import { startThirdParty } from './third-party.ts'

const fixture = await linksFixture()
const { links, database, scope, install, open, read, causes, events, activate } = fixture
const peer = await startThirdParty()
const keys = await install(KEY_CONFIG)
const verified = await install(peer.keys())
const several = await install({
  ...peer.oauth(),
  credentials: { ...(KEY_CONFIG.credentials as JsonObject), ...(peer.oauth().credentials as JsonObject) },
})
const VALUES = { api_key: 'k-canary', subdomain: 'acme' }
const grantAll = peer.answers.me

beforeEach(() => {
  peer.answers.me = grantAll
})

const account = async (id: string | null) =>
  await getIntegratedAccount(links.accounts, database.pool, scope, id ?? 'none')
const form = async (ref: LinkSessionRef) => await createConnectForm(links, await read(ref.id))

describe('a form', () => {
  it('connects an account with its values, and ends the session', async () => {
    const ref = await open({ integrations: [keys.name] })
    const result = await submitForm(links, ref, VALUES)
    expect(result).toMatchObject({ kind: 'progress', session: { status: 'completed', error: null } })
    const session = await read(ref.id)
    expect(session).toMatchObject({ formValues: { subdomain: 'acme' }, integrationName: keys.name })
    expect(await account(session.integratedAccountId)).toMatchObject({
      status: 'active',
      context: { subdomain: 'acme' },
      tenantId: 'acme',
    })
    expect(await causes(ref.id)).toEqual([
      'token_created',
      'token_opened',
      'method_chosen',
      'form_submitted',
      'account_active',
    ])
    expect(await events(ref.id)).toMatchObject([
      {
        type: 'link_token:completed',
        payload: { status: 'completed', integrated_account_id: session.integratedAccountId },
      },
    ])
  })

  it('names every wrong value, and stores nothing', async () => {
    const ref = await open({ integrations: [keys.name] })
    const result = await submitForm(links, ref, { subdomain: '-', more: 1 })
    expect(result.kind === 'invalid' && result.violations.map(({ field }) => field).toSorted()).toEqual([
      'api_key',
      'more',
      'subdomain',
    ])
    expect(await read(ref.id)).toMatchObject({ status: 'form', attempts: 0, formValues: {} })
  })

  it('connects one account when it is submitted ten times at once', async () => {
    const ref = await open({ integrations: [keys.name], subject: { tenantId: 'ten' } })
    await Promise.all(Array.from({ length: 10 }, () => submitForm(links, ref, VALUES)))
    const sql = 'select id from integrated_account where tenant_id = :tenantId'
    expect(await query(database.pool, sql, { tenantId: 'ten' })).toHaveLength(1)
    expect(await read(ref.id)).toMatchObject({ status: 'completed', attempts: 1 })
  })

  it('does not show what the context fills, and the context wins', async () => {
    const ref = await open({ integrations: [keys.name], context: { subdomain: 'given', plan: 'gold' } })
    const shown = await form(ref)
    expect(shown?.fields.filter(({ isHidden }) => !isHidden).map(({ name }) => name)).toEqual(['api_key'])
    await submitForm(links, ref, { api_key: 'k', subdomain: 'forged' })
    const { integratedAccountId } = await read(ref.id)
    expect((await account(integratedAccountId)).context).toEqual({ subdomain: 'given', plan: 'gold' })
  })

  it('with rejected credentials is shown again, with the values but passwords; then the same account gets new ones', async () => {
    const ref = await open({ integrations: [verified.name] })
    peer.answers.me = () => jsonReply(401, {})
    expect(await submitForm(links, ref, { ...VALUES, api_key: 'wrong-canary' })).toMatchObject({
      session: { status: 'post_install', step: 'progress' },
    })
    await activate()
    const failed = await read(ref.id)
    expect(failed).toMatchObject({ status: 'form', error: { code: 'credentials_rejected' } })
    expect((await form(ref))?.values).toEqual({ subdomain: 'acme' })
    expect(JSON.stringify(failed)).not.toContain('canary')
    expect((await events(ref.id)).map(({ payload }) => payload.error_code)).toEqual(['credentials_rejected'])

    peer.answers.me = grantAll
    await submitForm(links, ref, VALUES)
    await activate()
    expect(await read(ref.id)).toMatchObject({
      status: 'completed',
      error: null,
      integratedAccountId: failed.integratedAccountId,
      attempts: 2,
    })
    expect((await account(failed.integratedAccountId)).status).toBe('active')
  })

  it('ends the session after thirty attempts', async () => {
    const ref = await open({ integrations: [verified.name] })
    await execute(database.pool, 'update link_session set attempts = 30 where id = :id', { id: ref.id })
    await submitForm(links, ref, VALUES)
    expect(await read(ref.id)).toMatchObject({
      status: 'failed',
      error: { code: 'too_many_attempts', message: expect.stringContaining('too often') },
    })
  })

  it('of an integration that was disabled meanwhile ends the session', async () => {
    const { id, name } = await install(KEY_CONFIG)
    const ref = await open({ integrations: [name] })
    await execute(database.pool, 'update environment_integration set is_enabled = false where id = :id', { id })
    await submitForm(links, ref, VALUES)
    expect(await read(ref.id)).toMatchObject({ status: 'failed', error: { code: 'integration_disabled' } })
  })
})

describe('the choice', () => {
  it('offers what is enabled and shown in the catalogue, by label', async () => {
    await install(KEY_CONFIG, { isEnabled: false })
    const hidden = await install(KEY_CONFIG, { showInCatalog: false })
    const ref = await open()
    const choices = await listChoices(links, await read(ref.id))
    expect(choices.map(({ name }) => name)).toEqual(expect.arrayContaining([keys.name, several.name, verified.name]))
    expect(choices.map(({ name }) => name)).not.toContain(hidden.name)
    expect(choices.find(({ name }) => name === several.name)).toMatchObject({
      description: { label: 'Third party' },
      methods: expect.arrayContaining([
        { credential: 'api_key', authenticationMethod: 'api_key', label: undefined, hasConsent: false },
        { credential: 'oauth2', authenticationMethod: 'oauth2', label: undefined, hasConsent: true },
      ]),
    })
  })

  it.each([
    ['has no value', {}, []],
    ['is empty', { CLIENT_ID: '', CLIENT_SECRET: 's' }, []],
    ['has its values', { CLIENT_ID: 'c', CLIENT_SECRET: 's' }, ['oauth2']],
  ])('offers a consent only where its client is set up: it %s', async (_, environment_variables, methods) => {
    const client = { id: '{{env.CLIENT_ID}}', secret: '{{environment_variables.CLIENT_SECRET}}' }
    const { name } = await install(peer.oauth({ client }), { override: { environment_variables } })
    const ref = await open()
    const choice = (await listChoices(links, await read(ref.id))).find((each) => each.name === name)
    expect(choice?.methods.map(({ authenticationMethod }) => authenticationMethod) ?? []).toEqual(methods)
  })

  it('leads from the integration over the method to the form, and back', async () => {
    const ref = await open()
    expect(await read(ref.id)).toMatchObject({ status: 'opened', step: 'integration' })
    await chooseIntegration(links, ref, several.id)
    expect(await read(ref.id)).toMatchObject({ status: 'opened', step: 'method' })
    await chooseMethod(links, ref, 'api_key')
    expect(await read(ref.id)).toMatchObject({ status: 'form', authenticationMethod: 'api_key' })
    await reopenChoice(links, ref)
    expect(await read(ref.id)).toMatchObject({ status: 'opened', step: 'integration' })
    await chooseIntegration(links, ref, keys.id)
    expect(await read(ref.id)).toMatchObject({ status: 'form', environmentIntegrationId: keys.id })
  })

  it('tells credentials with one authentication method apart', async () => {
    const fields = [{ name: 'key', type: 'password' }]
    const jwt = { config: { algorithm: 'HS256', key: '{{key}}', claims: {}, fields } }
    const vendor_oauth = { config: { token_request: { path: '/login' }, token_expression: 'body.token', fields } }
    const two = await install({ ...KEY_CONFIG, credentials: { jwt, vendor_oauth } })
    for (const credential of ['vendor_oauth', 'jwt']) {
      const ref = await open({ integrations: [two.id] })
      await chooseMethod(links, ref, credential)
      expect(await read(ref.id)).toMatchObject({ status: 'form', credential, authenticationMethod: 'vendor_oauth' })
    }
  })

  it('is restricted to the credentials of the link: others are neither offered nor taken, nor integrations without any', async () => {
    const ref = await open({ allowedCredentials: ['oauth2'] })
    const choices = await listChoices(links, await read(ref.id))
    expect(choices.map(({ name }) => name)).toContain(several.name)
    expect(choices.map(({ name }) => name)).not.toContain(keys.name)
    expect(new Set(choices.flatMap(({ methods }) => methods.map(({ credential }) => credential)))).toEqual(
      new Set(['oauth2']),
    )
    await chooseIntegration(links, ref, keys.id)
    expect(await read(ref.id)).toMatchObject({ status: 'opened', environmentIntegrationId: null })
    await chooseIntegration(links, ref, several.id)
    await chooseMethod(links, ref, 'api_key')
    expect(await read(ref.id)).toMatchObject({ status: 'form', credential: 'oauth2' })
  })

  it('of a reconnection that excludes the present credential leads to the others', async () => {
    const first = await open({ integrations: [several.id] })
    await chooseMethod(links, first, 'api_key')
    await submitForm(links, first, VALUES)
    await activate()
    const integratedAccountId = (await read(first.id)).integratedAccountId ?? ''
    const again = async (allowedCredentials: string[]) =>
      await read((await open({ subject: { integratedAccountId }, allowedCredentials })).id)
    expect(await again([])).toMatchObject({ status: 'form', credential: 'api_key' })
    expect(await again(['oauth2'])).toMatchObject({ status: 'form', credential: 'oauth2' })
  })

  it('of an integration or method that is not offered changes nothing', async () => {
    const hidden = await install(KEY_CONFIG, { showInCatalog: false })
    const ref = await open()
    await chooseIntegration(links, ref, hidden.id)
    await chooseIntegration(links, ref, 'no-id')
    expect(await read(ref.id)).toMatchObject({ status: 'opened', environmentIntegrationId: null })
    await chooseIntegration(links, ref, several.id)
    await chooseMethod(links, ref, 'vendor_oauth')
    expect(await read(ref.id)).toMatchObject({ status: 'opened', authenticationMethod: null })
  })

  it('is made where there is none: the only method of the only integration', async () => {
    expect(await read((await open({ integrations: [keys.id] })).id)).toMatchObject({ status: 'form' })
    expect(await read((await open({ integrations: [several.id] })).id)).toMatchObject({
      status: 'opened',
      step: 'method',
    })
  })

  it('cannot be changed any more when an account is connected', async () => {
    const ref = await open({ integrations: [keys.name, verified.name] })
    await chooseIntegration(links, ref, verified.id)
    peer.answers.me = () => jsonReply(401, {})
    await submitForm(links, ref, VALUES)
    await activate()
    await chooseIntegration(links, ref, keys.id)
    expect(await read(ref.id)).toMatchObject({ status: 'form', environmentIntegrationId: verified.id })
  })
})

describe('a session', () => {
  it('that is cancelled in the browser stays so', async () => {
    const ref = await open({ integrations: [keys.name] })
    await cancelByBrowser(links, ref)
    expect(await submitForm(links, ref, VALUES)).toMatchObject({ session: { status: 'cancelled' } })
    expect(await read(ref.id)).toMatchObject({ status: 'cancelled', step: 'done', error: { code: 'cancelled' } })
  })

  it('takes no confirmation of an identity that did not change', async () => {
    const ref = await open({ integrations: [keys.name] })
    await confirmIdentityChange(links, ref)
    expect(await causes(ref.id)).toEqual(['token_created', 'token_opened', 'method_chosen'])
  })

  it('is unknown to another browser', async () => {
    const ref = await open({ integrations: [keys.name] })
    const other = { ...ref, browserKey: 'y'.repeat(43) }
    expect(await submitForm(links, other, VALUES)).toEqual({ kind: 'unknown' })
    expect(await cancelByBrowser(links, { ...ref, id: 'no-id' })).toEqual({ kind: 'unknown' })
    expect(await read(ref.id)).toMatchObject({ status: 'form' })
  })
})
