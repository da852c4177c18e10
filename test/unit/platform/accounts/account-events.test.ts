import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { deleteIntegratedAccount, updateCredentials } from '../../../../src/platform/accounts/index.ts'
import { activationFixture } from './activation-fixture.ts'
import { triggersOfTests } from './fixture.ts'

const fixture = await activationFixture()
const { database, own, accountDeps, upstream, proxy, accountPort, worker, reported } = fixture
const { connect, connectTo, read, repeat, update, eventsOf } = fixture

const KEY_FIELD = { fields: [{ name: 'api_key', type: 'password', required: true }] }
const VERIFIED: JsonObject = { credentials: { api_key: { config: { ...KEY_FIELD, verification: { path: '/me' } } } } }
const HOOK = { name: 'hook', type: 'request', config: { method: 'POST', path: '/hooks' } }
const INSTALL: JsonObject = { ...VERIFIED, actions: { post_install: { steps: [HOOK] } } }
const LIST: JsonObject = { resources: { items: { list: { method: 'get', path: '/items' } } } }

const OK = { status: 200, json: {} }
const verify = (status: number) => upstream.script({ request: 'GET /me', answer: { status, json: {} } })
const namesOf = async (id: string) => (await eventsOf(id)).map(({ name }) => name)

/** An active account of a definition with the resource `items`. */
async function addActive() {
  const { id } = await connectTo({ ...VERIFIED, ...LIST })
  verify(200)
  await worker().runOnce()
  return id
}

/** Calls the list once; the third party answers with the statuses in turn. */
async function call(id: string, ...statuses: number[]) {
  upstream.script(...statuses.map((status) => ({ request: 'GET /items', answer: { status, json: {} } })))
  const { plan, access } = await fixture.load(id)
  return await proxy.call(plan, access, { target: { kind: 'method', resource: 'items', method: 'list' } })
}

describe('the events of an account', () => {
  it.each<readonly [string, string[], (id: string) => Promise<unknown>]>([
    ['a change', ['updated'], (id) => update({ id, tenantId: 'other' })],
    ['a change of nothing', [], (id) => update({ id })],
    ['a 401', ['authentication_error'], (id) => call(id, 401)],
    ['two 401', ['authentication_error'], async (id) => [await call(id, 401), await call(id, 401)]],
    [
      'a call that succeeds after a 401',
      ['authentication_error', 'reactivated'],
      async (id) => [await call(id, 401), await call(id, 200)],
    ],
    ['a 403', ['forbidden_error'], (id) => call(id, 403)],
    ['a 403 again', ['forbidden_error'], async (id) => [await call(id, 403), await call(id, 403)]],
    ['new credentials', ['updated'], (id) => replaceKey(id)],
    [
      'new credentials that work',
      ['updated', 'active'],
      async (id) => [await replaceKey(id), verify(200), await worker().runOnce()],
    ],
    [
      'new credentials that are rejected',
      ['updated', 'validation_error'],
      async (id) => [await replaceKey(id), verify(401), await worker().runOnce()],
    ],
    ['its deletion', ['deleted'], (id) => remove(id)],
  ])('tell of %s: %j', async (_, names, change) => {
    const id = await addActive()
    await change(id)
    expect(await namesOf(id)).toEqual(['created', 'active', ...names])
  })

  it('tell of a failed post_install, and of steps that are repeated', async () => {
    const { id } = await connectTo(INSTALL)
    upstream.script({ request: 'POST /hooks', answer: { status: 422, json: {} } })
    await worker().runOnce()
    await repeat(id)
    expect(await namesOf(id)).toEqual(['created', 'post_install_error', 'updated'])
  })

  it('contain the account without credentials, as it is after the change', async () => {
    const { id } = await connectTo(VERIFIED)
    verify(403)
    await worker().runOnce()
    const [created, failed] = await eventsOf(id)
    const { updatedAt, createdAt } = await read(id)
    expect(created?.payload).toMatchObject({ id, status: 'connecting', last_error: '' })
    expect(failed?.payload).toEqual({
      id,
      environment_id: own.environmentId,
      environment_integration_id: expect.any(String),
      integration: { id: expect.any(String), name: expect.any(String) },
      tenant_id: 'acme',
      authentication_method: 'api_key',
      credential: 'api_key',
      status: 'validation_error',
      last_error: expect.stringMatching(/^validation failed at verification: the upstream answered 403/),
      last_action_result: { validation: [expect.objectContaining({ name: 'verification', ok: false })] },
      last_forbidden_error: null,
      reauthorization_due_at: null,
      terms_url: '',
      terms_accepted_at: null,
      context: {},
      region: 'wnam',
      is_sandbox: false,
      object_store_context_fields: [],
      created_at: createdAt.toISOString(),
      updated_at: updatedAt.toISOString(),
    })
    expect(JSON.stringify(await eventsOf(id))).not.toContain('key-canary')
  })

  it.each([
    [60_000, true],
    [70_000, false],
  ])('repeat a context of %i characters: %s', async (length, isRepeated) => {
    const { id } = await connect({ context: { text: 'x'.repeat(length) } })
    const [created] = await eventsOf(id)
    expect(Object.hasOwn(created?.payload ?? {}, 'context')).toBe(isRepeated)
    expect(created?.payload).toMatchObject({ id, region: 'wnam' })
  })

  it('leave out context keys that live in the object store', async () => {
    const context = { huge: 'reference', small: 1 }
    const { id } = await connect({ context, objectStoreContextFields: ['huge'] })
    const [created] = await eventsOf(id)
    expect(created?.payload.context).toEqual({ small: 1, subdomain: 'acme' })
  })

  it('identify a deleted account, and no more', async () => {
    const id = await addActive()
    await remove(id)
    expect((await eventsOf(id)).at(-1)?.payload).toEqual({
      id,
      environment_id: own.environmentId,
      environment_integration_id: expect.any(String),
      integration: { id: expect.any(String), name: expect.any(String) },
      tenant_id: 'acme',
    })
  })

  it('exist only with the change', async () => {
    const id = await addActive()
    const rolledBack = database.transaction(async (tx) => {
      await deleteIntegratedAccount({ ...accountDeps, triggers: triggersOfTests }, tx, own, { id })
      throw new Error('rolled back')
    })
    await expect(rolledBack).rejects.toThrow('rolled back')
    expect(await namesOf(id)).toEqual(['created', 'active'])
  })
})

describe('a 401', () => {
  it('says nothing about credentials that have been replaced since', async () => {
    const id = await addActive()
    const { access } = await fixture.load(id)
    await replaceKey(id)
    verify(200)
    await worker().runOnce()
    await accountPort.report(access, { kind: 'unauthorized', message: 'the old key' })
    expect(await read(id)).toMatchObject({ status: 'active' })
  })
})

describe('the report to a link session', () => {
  it.each([
    ['active', [200], [{ kind: 'active' }]],
    ['rejected', [401], [{ kind: 'failed', code: 'credentials_rejected' }]],
    ['forbidden', [403], [{ kind: 'failed', code: 'credentials_rejected' }]],
    ['not understood', [404], [{ kind: 'failed', code: 'validation_error' }]],
    ['retried', [503], []],
  ] as const)('says that its account is %s', async (_, statuses, changes) => {
    await connectTo(VERIFIED)
    verify(statuses[0])
    await worker().runOnce()
    expect(reported).toMatchObject(changes)
  })

  it('says that post_install has passed, and then that the account is active', async () => {
    await connectTo(INSTALL)
    upstream.script({ request: 'POST /hooks', answer: OK })
    verify(200)
    await worker().runOnce()
    expect(reported).toEqual([{ kind: 'post_install_passed' }, { kind: 'active' }])
  })

  it('says why post_install failed', async () => {
    await connectTo(INSTALL)
    upstream.script({ request: 'POST /hooks', answer: { status: 422, json: {} } })
    await worker().runOnce()
    expect(reported).toMatchObject([{ kind: 'failed', code: 'post_install_error' }])
  })

  it('says that the third party did not answer when no attempt is left', async () => {
    const { id } = await connectTo(VERIFIED)
    for (let attempt = 1; attempt <= 5; attempt++) {
      verify(503)
      await worker().runOnce()
      await fixture.pass(id, 3_600_000)
    }
    expect(reported).toMatchObject([{ kind: 'failed', code: 'provider_unreachable' }])
  })
})

async function replaceKey(id: string) {
  const change = { id, credentials: { api_key: 'another-key' } }
  return await database.transaction((tx) => updateCredentials(accountDeps, tx, own, change))
}

async function remove(id: string) {
  const deps = { ...accountDeps, triggers: triggersOfTests }
  await database.transaction((tx) => deleteIntegratedAccount(deps, tx, own, { id }))
}
