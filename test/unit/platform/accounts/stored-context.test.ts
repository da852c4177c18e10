import { beforeEach, describe, expect, it } from 'vitest'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { type JsonObject, parseJson } from '../../../../src/foundation/json/index.ts'
import { updateIntegratedAccount } from '../../../../src/platform/accounts/account.ts'
import {
  deleteIntegratedAccount,
  loadAccountForCall,
  updateCredentials,
  withWholeContext,
  withWholeContexts,
} from '../../../../src/platform/accounts/index.ts'
import {
  contextObjectCleaner,
  contextObjectUploader,
  createContextValueStore,
} from '../../../../src/platform/objects/index.ts'
import { readOne } from '../../../support/tenant.ts'
import { activationFixture } from './activation-fixture.ts'
import { triggersOfTests } from './fixture.ts'

const fixture = await activationFixture()
const { database, tx, own, secrets, objects, accountDeps, addInstallation, connect, update, upstream, proxy } = fixture

const FIELDS = ['archive', 'subdomain']
const upload = () => contextObjectUploader({ database, objects }).runOnce()
const clean = () => contextObjectCleaner({ database, objects }).runOnce()

beforeEach(async () => {
  objects.failure = undefined
  objects.reads = 0
  objects.stored.clear()
  await execute(tx, 'delete from context_object')
})

/** An account with the key `archive`, and the field `subdomain`, in the object store. */
async function connectStored(context: JsonObject = { archive: { deep: [1] }, plain: 1 }) {
  return await connect({ context, objectStoreContextFields: FIELDS })
}

/** The context as an answer shows it, by a process that has read nothing yet. */
async function show(id: string) {
  const contextValues = createContextValueStore(secrets, objects)
  const { context, contextErrors } = await withWholeContext({ contextValues }, tx, await fixture.read(id))
  return { context, errors: [...contextErrors].map(([key, { reason }]) => [key, reason]) }
}

async function rowsOf(id: string) {
  return await query<{ key: string; isHere: boolean; isRetired: boolean }>(
    tx,
    `select key, content is not null as "isHere", delete_at is not null as "isRetired" from context_object
     where integrated_account_id = :id order by id`,
    { id },
  )
}

const VALUES = { archive: { deep: [1] }, subdomain: 'acme', plain: 1 }

describe('context keys in the object store', () => {
  it('are in neither the account nor the database once they are stored, and in no plain text anywhere', async () => {
    const { id } = await connectStored({ archive: 'the-archived-text', plain: 1 })
    const account = () =>
      readOne<{ context: JsonObject }>(database, 'select context from integrated_account where id = :id', { id })
    expect(await account()).toEqual({ context: { plain: 1 } })
    expect(await show(id)).toMatchObject({ context: { archive: 'the-archived-text' } })
    expect(objects.reads).toBe(0)
    await upload()
    expect(await rowsOf(id)).toEqual(
      [
        { key: 'subdomain', isHere: false, isRetired: false },
        { key: 'archive', isHere: false, isRetired: false },
      ].sort((a, b) => FIELDS.indexOf(a.key) - FIELDS.indexOf(b.key)),
    )
    expect(await show(id)).toEqual({
      context: { archive: 'the-archived-text', subdomain: 'acme', plain: 1 },
      errors: [],
    })
    expect(objects.reads).toBe(2)
    const bytes = [...objects.stored.values()].map((each) => Buffer.from(each).toString('latin1'))
    expect(bytes).toHaveLength(2)
    expect(bytes.join()).not.toContain('the-archived-text')
  })

  it.each<[string, JsonObject, JsonObject]>([
    ['replaces one', { archive: [2] }, { ...VALUES, archive: [2] }],
    ['removes one', { archive: null }, { subdomain: 'acme', plain: 1 }],
    ['leaves them', { plain: 2 }, { ...VALUES, plain: 2 }],
    ['replaces both kinds', { archive: 1.5, plain: 2 }, { ...VALUES, archive: 1.5, plain: 2 }],
  ])('a change of the context %s', async (_, context, expected) => {
    const { id } = await connectStored()
    await upload()
    const { version } = await update({ id, context })
    expect(version).toBe(2)
    const { plain = null } = expected
    const row = await readOne(database, 'select context from integrated_account where id = :id', { id })
    expect(row).toEqual({ context: { plain } })
    expect(await show(id)).toEqual({ context: expected, errors: [] })
    await upload()
    expect(await show(id)).toEqual({ context: expected, errors: [] })
  })

  it('keep every digit and letter of a value', async () => {
    const archive = parseJson('{"n":12345678901234567890.10,"t":"\\ud83d\\ude00 \\u0000","e":{},"l":[]}')
    const { id } = await connectStored({ archive })
    await upload()
    expect((await show(id)).context.archive).toEqual(archive)
  })

  it('are kept by both of two concurrent changes of different keys, and by one of the same', async () => {
    const { id } = await connectStored()
    const change = (context: JsonObject) =>
      database.transaction(async (each) => {
        return await updateIntegratedAccount(accountDeps, each, own, { id, context })
      })
    await Promise.all([change({ archive: 'a' }), change({ subdomain: 'b' }), change({ archive: 'c' })])
    const { context } = await show(id)
    expect(context.subdomain).toBe('b')
    expect(['a', 'c']).toContain(context.archive)
    expect((await rowsOf(id)).filter(({ isRetired }) => !isRetired)).toHaveLength(2)
  })

  it('reject a value of more than a megabyte, naming the key, and store nothing', async () => {
    const { id } = await connectStored()
    const before = await show(id)
    const change = database.transaction((each) =>
      updateIntegratedAccount(accountDeps, each, own, { id, context: { archive: 'x'.repeat(1024 * 1024), plain: 9 } }),
    )
    await expect(change).rejects.toMatchObject({
      reason: 'INVALID_FIELD',
      violations: [{ field: 'context.archive', rule: 'context.too_large' }],
    })
    expect(await show(id)).toEqual(before)
    await update({ id, context: { archive: 'x'.repeat(1024 * 1024 - 2) } })
    await expect(connectStored({ archive: 'x'.repeat(1024 * 1024 - 1) })).rejects.toMatchObject({
      reason: 'INVALID_FIELD',
    })
  })

  it('leave nothing behind when the change rolls back', async () => {
    const { id } = await connectStored()
    await upload()
    const { size } = objects.stored
    await database
      .transaction(async (each) => {
        await updateIntegratedAccount(accountDeps, each, own, { id, context: { archive: 'new' } })
        throw new Error('rolled back')
      })
      .catch(() => undefined)
    expect(await upload()).toBe(false)
    expect(objects.stored.size).toBe(size)
    expect((await show(id)).context.archive).toEqual({ deep: [1] })
  })

  it('keep the value of a form field through new credentials that leave it out', async () => {
    const { id } = await connectStored()
    await upload()
    await database.transaction((each) =>
      updateCredentials(accountDeps, each, own, { id, credentials: { api_key: 'next' } }),
    )
    expect((await show(id)).context).toEqual(VALUES)
    const credentials = { subdomain: 'other.example.com' }
    await database.transaction((each) => updateCredentials(accountDeps, each, own, { id, credentials }))
    expect((await show(id)).context).toEqual({ ...VALUES, subdomain: 'other' })
  })

  it('stay in the database while the object store is away, and are stored after it is back', async () => {
    objects.failure = new Error('away')
    const { id } = await connectStored()
    await expect(upload()).rejects.toThrow('away')
    expect(await show(id)).toEqual({ context: VALUES, errors: [] })
    objects.failure = undefined
    expect(await upload()).toBe(false) // a failed upload waits for a minute
    expect(objects.stored.size).toBe(0)
    await execute(tx, `update context_object set upload_at = upload_at - interval '1 minute'`)
    await upload()
    expect(objects.stored.size).toBe(2)
    expect(await show(id)).toEqual({ context: VALUES, errors: [] })
  })

  it('do not decrypt when the object of another key or account is put in their place', async () => {
    const { id } = await connectStored()
    await upload()
    const names = [...objects.stored.keys()]
    const [first, second] = names.map((name) => objects.stored.get(name))
    if (first === undefined || second === undefined) throw new Error('two objects were stored')
    objects.stored.set(String(names[0]), second).set(String(names[1]), first)
    const { context, errors } = await show(id)
    expect(context).toEqual({ plain: 1 })
    expect(errors.map(([, reason]) => reason)).toEqual(['SECRET_UNREADABLE', 'SECRET_UNREADABLE'])
  })
})

describe('an object that is gone', () => {
  const listOf = (path: string) => ({ items: { list: { method: 'get', path } } })

  async function connectLost() {
    const { id } = await connectStored()
    await upload()
    objects.stored.clear()
    return id
  }

  it('is an error of its key, until the key is set again', async () => {
    const id = await connectLost()
    expect(await show(id)).toEqual({
      context: { plain: 1 },
      errors: expect.arrayContaining([
        ['archive', 'CONTEXT_OBJECT_MISSING'],
        ['subdomain', 'CONTEXT_OBJECT_MISSING'],
      ]),
    })
    await update({ id, context: { archive: 'again' } })
    expect(await show(id)).toEqual({
      context: { plain: 1, archive: 'again' },
      errors: [['subdomain', 'CONTEXT_OBJECT_MISSING']],
    })
  })

  it.each<[string, JsonObject, string | undefined]>([
    ['which reads the key', { resources: listOf('/items/{{context.archive.deep}}') }, 'CONTEXT_OBJECT_MISSING'],
    [
      'with an expression, which gets the whole context',
      {
        resources: listOf('/items'),
        authorization: { format: 'header', config: { expression: '{ "x": $string(context.plain) }' } },
      },
      'CONTEXT_OBJECT_MISSING',
    ],
    ['which reads another key', { resources: listOf('/items/{{context.plain}}') }, undefined],
  ])('in a call %s', async (_, config, reason) => {
    const { id: environmentIntegrationId } = await addInstallation({
      base_url: upstream.url,
      label: 'Example',
      retry: { max_attempts: 1 },
      credentials: { format: 'api_key', config: { fields: [{ name: 'api_key', type: 'password', required: true }] } },
      ...config,
    })
    const credentials = { api_key: 'k' }
    const context = { archive: { deep: 1 }, plain: 7 }
    const { id } = await connect({
      environmentIntegrationId,
      credentials,
      context,
      objectStoreContextFields: ['archive'],
    })
    await upload()
    objects.stored.clear()
    const contextValues = createContextValueStore(secrets, objects)
    const tokens = {
      ensureFresh: async (resolved: Awaited<ReturnType<typeof loadAccountForCall>>) => resolved,
      refresh: async () => undefined,
    }
    const deps = { ...accountDeps, contextValues, database, tokens }
    const { plan, access } = await loadAccountForCall(deps, own.environmentId, id, 'call')
    const target = { kind: 'method', resource: 'items', method: 'list' } as const
    if (reason === undefined) {
      upstream.script({ request: 'GET /items/7', answer: { json: {} } })
      expect((await proxy.call(plan, access, { target })).kind).toBe('ok')
    } else {
      const failure: unknown = await proxy.call(plan, access, { target }).catch((error: unknown) => error)
      expect(failure).toMatchObject({ reason, metadata: { key: 'archive' } })
    }
  })
})

describe('objects that no account has', () => {
  const later = () => execute(tx, `update context_object set delete_at = delete_at - interval '1 hour'`)

  it.each<[string, (id: string) => Promise<unknown>, number]>([
    ['a replaced value', (id) => update({ id, context: { archive: 2 } }), 1],
    ['a removed value', (id) => update({ id, context: { archive: null } }), 1],
    [
      'a deleted account',
      (id) =>
        database.transaction((each) =>
          deleteIntegratedAccount({ ...accountDeps, triggers: triggersOfTests }, each, own, { id }),
        ),
      0,
    ],
  ])('are deleted an hour later, not before: of %s', async (_, work, left) => {
    const { id } = await connectStored()
    await upload()
    await work(id)
    await clean()
    expect(objects.stored.size).toBe(2)
    await later()
    await clean()
    expect(objects.stored.size).toBe(left)
    expect((await rowsOf(id)).filter(({ isRetired }) => isRetired)).toEqual([])
  })

  it('are tried again when the object store was away', async () => {
    const { id } = await connectStored()
    await upload()
    await update({ id, context: { archive: 2 } })
    await later()
    objects.failure = new Error('away')
    await expect(clean()).rejects.toThrow('away')
    objects.failure = undefined
    await later()
    await clean()
    expect(objects.stored.size).toBe(1)
  })

  it('are not held up by more that cannot be deleted than one round takes', async () => {
    const { id } = await connectStored()
    await upload()
    await update({ id, context: { archive: 2 } })
    await later()
    await execute(
      tx,
      `insert into context_object (environment_id, id, integrated_account_id, key, bytes, delete_at)
       select :environmentId, gen_random_uuid(), gen_random_uuid(), 'archive', 1, now() - interval '1 day' from generate_series(1, 120)`,
      { environmentId: own.environmentId },
    )
    const forbidden = {
      put: async () => {},
      delete: async (ref: Parameters<typeof objects.delete>[0]) => {
        if (!objects.stored.has(`${ref.environmentId}/${ref.id}`)) throw new Error('forbidden')
        await objects.delete(ref)
      },
    }
    const before = objects.stored.size
    const cleaner = contextObjectCleaner({ database, objects: forbidden })
    for (let round = 0; round < 3; round++) await cleaner.runOnce().catch(() => undefined)
    expect(objects.stored.size).toBe(before - 1)
  })
})

describe('accounts without such keys', () => {
  it('cost no statement, alone or in a list', async () => {
    const { id } = await connect()
    const account = await fixture.read(id)
    const fail = () => Promise.reject(new Error('asked'))
    const contextValues = { put: fail, remove: fail, read: fail }
    expect(await withWholeContexts({ contextValues }, tx, [account, account])).toHaveLength(2)
    const failing = { ...accountDeps, contextValues }
    await database.transaction((tx) => updateIntegratedAccount(failing, tx, own, { id, context: { a: 1, b: null } }))
  })
})
