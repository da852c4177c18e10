import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  checkPostConnectForm,
  createFormOptionsCache,
  type FormOptionsRequest,
  getPostConnectForm,
  loadFormOptions,
  storePostConnectForm,
} from '../../../../src/platform/links/index.ts'
import { manualClock } from '../../../support/manual-clock.ts'
import { activationFixture } from '../accounts/activation-fixture.ts'

const fixture = await activationFixture()
const { upstream, own, database, accountDeps, proxy, eventsOf } = fixture

const WORKSPACE = {
  name: 'workspace',
  type: 'single_select',
  required: true,
  data_source: { resource: 'workspaces' },
  options: { value: 'gid', label: 'name' },
}
const CHANNELS = {
  name: 'channels',
  type: 'multi_select',
  data_source: { resource: 'channels', query: { workspace: '{{workspace}}', q: '{{args.search}}' } },
  options: { value: 'id', label: 'profile.title', subText: 'profile.topic' },
  disabled_text: 'Choose a workspace first',
}
const RESOURCES = {
  workspaces: { list: { path: '/workspaces', response_path: 'data' } },
  channels: {
    list: {
      path: '/channels',
      response_path: 'channels',
      pagination: {
        format: 'cursor',
        config: { cursor_path: 'next', cursor_key: 'cursor', limit_key: 'limit', limit: 200 },
      },
    },
  },
  members: { list: { path: '/workspaces/{{query.workspace}}/members' } },
}

function withFields(...fields: Json[]): JsonObject {
  return { resources: RESOURCES, actions: { post_connect_user_form: { type: 'form', config: { fields } } } }
}

async function connectWith(...fields: Json[]) {
  return await fixture.connectTo(withFields(...fields))
}

function optionsReader(clock = manualClock()) {
  const accounts = { ...accountDeps, ...fixture.deps }
  const deps = { accounts, proxy, formOptions: createFormOptionsCache(clock) }
  return {
    clock,
    read: (id: string, request: FormOptionsRequest) =>
      loadFormOptions(deps, { environmentId: own.environmentId, id }, request),
  }
}

const record = (id: Json, title?: Json, topic?: Json): JsonObject => ({
  id,
  profile: { title: title ?? null, topic: topic ?? null },
})
const given = (values: JsonObject) => ({ field: 'channels', values })

describe('options of a field', () => {
  it('are the records of a list, by the paths of the definition', async () => {
    const { id } = await connectWith(WORKSPACE)
    upstream.script({
      request: 'GET /workspaces',
      headers: { authorization: 'Bearer key-canary' },
      answer: {
        json: { data: [{ gid: 7, name: 'Acme' }, { gid: '8' }, { gid: 7, name: 'again' }, { name: 'no id' }, 'x'] },
      },
    })
    expect(await optionsReader().read(id, { field: 'workspace' })).toEqual({
      kind: 'page',
      options: [
        { value: '7', label: 'Acme' },
        { value: '8', label: '8' },
      ],
      nextCursor: undefined,
    })
  })

  it('depend on the values of other fields, and are searched and paged by the third party', async () => {
    const { id } = await connectWith(WORKSPACE, CHANNELS)
    const { read } = optionsReader()
    upstream.script(
      {
        request: 'GET /channels?workspace=w%201&q=gen&limit=200',
        answer: { json: { channels: [record('C1', 'general', 'all of us')], next: 'p2' } },
      },
      {
        request: 'GET /channels?workspace=w%201&q=gen&cursor=p2&limit=200',
        answer: { json: { channels: [record('C2', 'genome')] } },
      },
    )
    const request = { ...given({ workspace: { value: 'w 1', label: 'One' } }), search: ' gen ' }
    const first = await read(id, request)
    expect(first).toMatchObject({ options: [{ value: 'C1', label: 'general', subText: 'all of us' }] })
    const cursor = first.kind === 'page' ? first.nextCursor : undefined
    expect(await read(id, { ...request, cursor })).toEqual({
      kind: 'page',
      options: [{ value: 'C2', label: 'genome' }],
      nextCursor: undefined,
    })
  })

  it.each<[string, JsonObject]>([
    ['no value', {}],
    ['an empty one', { workspace: '  ' }],
    ['null', { workspace: null }],
  ])('need the fields that they depend on: %s', async (_what, values) => {
    const { id } = await connectWith(WORKSPACE, CHANNELS)
    expect(await optionsReader().read(id, given(values))).toEqual({ kind: 'disabled', missing: ['workspace'] })
  })

  it('may be a part of the path of another record', async () => {
    const members = {
      ...CHANNELS,
      data_source: { resource: 'members', query: { workspace: '{{workspace}}' } },
      options: { value: 'id' },
    }
    const { id } = await connectWith(WORKSPACE, members)
    upstream.script({ request: 'GET /workspaces/a%2Fb/members', answer: { json: [{ id: 1 }] } })
    expect(await optionsReader().read(id, given({ workspace: 'a/b' }))).toMatchObject({ options: [{ value: '1' }] })
  })

  it('are read once a minute for the same account, search and values', async () => {
    const { id } = await connectWith(WORKSPACE, CHANNELS)
    const { read, clock } = optionsReader()
    const answer = { json: { channels: [record('C1')] } }
    upstream.script({ request: 'GET /channels?workspace=a&limit=200', answer, times: 2 })
    upstream.script({ request: 'GET /channels?workspace=b&limit=200', answer })
    upstream.script({ request: 'GET /channels?workspace=a&q=x&limit=200', answer })
    await Promise.all([read(id, given({ workspace: 'a' })), read(id, given({ workspace: 'a' }))])
    clock.move(59_999)
    await read(id, given({ workspace: 'a', other: 1 }))
    await read(id, given({ workspace: 'b' }))
    await read(id, { ...given({ workspace: 'a' }), search: 'x' })
    clock.move(1)
    await read(id, given({ workspace: 'a' }))
  })

  it('are handed out 200 at once, from one page of the third party', async () => {
    const { id } = await connectWith(WORKSPACE)
    const { read } = optionsReader()
    const data = Array.from({ length: 450 }, (_item, index) => ({ gid: `g${index}` }))
    upstream.script({ request: 'GET /workspaces', answer: { json: { data } } })
    const lengths: number[] = []
    const seen = new Set<string>()
    let cursor: string | undefined
    do {
      const page = await read(id, { field: 'workspace', cursor })
      if (page.kind !== 'page') throw new Error(page.kind)
      lengths.push(page.options.length)
      for (const { value } of page.options) seen.add(value)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect([lengths, seen.size]).toEqual([[200, 200, 50], 450])
  })

  it('are searched here where the third party does not search, over several of its pages', async () => {
    const source = {
      ...CHANNELS,
      data_source: { resource: 'channels' },
      options: { value: 'id', label: 'profile.title' },
    }
    const { id } = await connectWith(source)
    const { read } = optionsReader()
    upstream.script(
      { request: 'GET /channels?limit=200', answer: { json: { channels: [record('C1', 'alpha')], next: '2' } } },
      {
        request: 'GET /channels?cursor=2&limit=200',
        answer: { json: { channels: [record('C2', 'Beta')], next: '3' } },
      },
      { request: 'GET /channels?cursor=3&limit=200', answer: { json: { channels: [record('C3', 'gamma')] } } },
    )
    const found = await read(id, { field: 'channels', search: 'BET' })
    expect(found).toMatchObject({ options: [{ value: 'C2' }] })
    const cursor = found.kind === 'page' ? found.nextCursor : undefined
    expect(await read(id, { field: 'channels', search: 'BET', cursor })).toMatchObject({ options: [] })
  })

  it('end the search after ten pages, with a cursor for more', async () => {
    const { id } = await connectWith({ ...CHANNELS, data_source: { resource: 'channels' } })
    for (let page = 1; page <= 10; page += 1)
      upstream.script({
        request: `GET /channels?${page === 1 ? '' : `cursor=${page}&`}limit=200`,
        answer: { json: { channels: [record(`C${page}`, 'x')], next: String(page + 1) } },
      })
    const found = await optionsReader().read(id, { field: 'channels', search: 'never' })
    expect(found).toEqual({ kind: 'page', options: [], nextCursor: expect.any(String) })
  })

  it('are continued only by the cursor that was handed out, for the same account, field, search and values', async () => {
    const [{ id }, other] = [await connectWith(WORKSPACE, CHANNELS), await connectWith(WORKSPACE, CHANNELS)]
    const { read } = optionsReader()
    const request = { ...given({ workspace: 'w' }), search: 'x' }
    upstream.script({
      request: 'GET /channels?workspace=w&q=x&limit=200',
      answer: { json: { channels: [record('C1')], next: 'second-page' } },
    })
    const first = await read(id, request)
    const cursor = (first.kind === 'page' && first.nextCursor) || ''
    expect(Buffer.from(cursor, 'base64url').toString('latin1')).not.toContain('second-page')
    const state = Buffer.from(JSON.stringify({ url: `${upstream.url}/private`, pages: 1 })).toString('base64url')
    const changed = `${cursor.slice(0, -4)}${cursor.at(-4) === 'A' ? 'B' : 'A'}${cursor.slice(-3)}`
    const rejected = { reason: 'PAGE_TOKEN_INVALID', violations: [{ field: 'page_token' }] }
    await expect(read(other.id, { ...request, cursor })).rejects.toMatchObject(rejected)
    for (const more of [
      { search: 'y' },
      { values: { workspace: 'v' } },
      { cursor: changed },
      { cursor: cursor.slice(0, -1) },
      { cursor: `${cursor}=` },
      { cursor: 'A'.repeat(22) },
      { cursor: `0.${state}` },
    ])
      await expect(read(id, { ...request, cursor, ...more })).rejects.toMatchObject(rejected)
  })

  it('are cleaned: labels are one line of 256 characters, ids that cannot be stored are left out', async () => {
    const { id } = await connectWith({ ...CHANNELS, data_source: { resource: 'channels' } })
    const channels = [
      record('C1', `<b>\u202eevil\u0000\n${'x'.repeat(300)}`),
      record('x'.repeat(513), 'long'),
      record('a\u0000b', 'NUL'),
      record(true, { a: 1 }),
      record({ a: 1 }, 'object'),
    ]
    upstream.script({ request: 'GET /channels?limit=200', answer: { json: { channels } } })
    const page = await optionsReader().read(id, { field: 'channels' })
    const options = page.kind === 'page' ? page.options : []
    expect(options.map(({ value }) => value)).toEqual(['C1', 'true'])
    expect(options[0]?.label).toMatch(/^<b> evil x{246,}$/)
    expect(options[0]?.label).toHaveLength(256)
  })
})

describe('a source that fails', () => {
  const failing: readonly [string, JsonObject, JsonObject][] = [
    ['is unavailable', { status: 503, json: { message: 'later' } }, { reason: 'UPSTREAM_ERROR' }],
    ['asks to wait', { status: 429, headers: { 'retry-after': '7' } }, { retryAfterSeconds: 7 }],
    [
      'may not be read',
      { status: 404, json: { message: 'no such thing' } },
      { reason: 'UPSTREAM_ERROR', publicMessage: 'no such thing' },
    ],
    ['answers with a page for people', { text: '<html>maintenance</html>' }, { reason: 'UPSTREAM_INVALID_RESPONSE' }],
    ['repeats the credential', { status: 400, json: { message: 'bad key-canary' } }, { publicMessage: 'bad ***' }],
  ]
  it.each(failing)('%s', async (_what, answer, expected) => {
    const { id } = await connectWith(WORKSPACE)
    upstream.script({ request: 'GET /workspaces', answer })
    const result = await optionsReader().read(id, { field: 'workspace' })
    expect(result).toMatchObject({ kind: 'error', failure: expected })
  })

  it('cannot be reached', async () => {
    const { id } = await fixture.connectTo({ ...withFields(WORKSPACE), base_url: 'http://127.0.0.1:1' })
    const result = await optionsReader().read(id, { field: 'workspace' })
    expect(result).toMatchObject({ kind: 'error', failure: { reason: 'UPSTREAM_UNREACHABLE' } })
  })

  it('is asked again at once: errors are not cached', async () => {
    const { id } = await connectWith(WORKSPACE)
    const { read } = optionsReader()
    upstream.script(
      { request: 'GET /workspaces', answer: { status: 500 } },
      { request: 'GET /workspaces', answer: { json: { data: [{ gid: 1 }] } } },
    )
    expect(await read(id, { field: 'workspace' })).toMatchObject({ kind: 'error' })
    expect(await read(id, { field: 'workspace' })).toMatchObject({ options: [{ value: '1' }] })
  })

  it('is not asked for an account that does not work', async () => {
    const { id } = await connectWith(WORKSPACE)
    await fixture.setStatus(id, 'validation_error')
    const result = await optionsReader().read(id, { field: 'workspace' })
    expect(result).toMatchObject({ kind: 'error', failure: { reason: 'ACCOUNT_NOT_ACTIVE' } })
  })
})

describe('a request for options is rejected', () => {
  it.each<[string, Partial<FormOptionsRequest>, string, string]>([
    ['an unknown field', { field: 'x' }, 'INVALID_FIELD', 'field'],
    ['a field without a source', { field: 'note' }, 'INVALID_FIELD', 'field'],
    ['a member of every object', { field: 'constructor' }, 'INVALID_FIELD', 'field'],
    ['a search that is too long', { search: 'x'.repeat(201) }, 'INVALID_FIELD', 'search'],
    ['a search with half of a surrogate pair', { search: '\ud800' }, 'INVALID_FIELD', 'search'],
    ['a cursor of garbage', { cursor: 'x' }, 'PAGE_TOKEN_INVALID', 'page_token'],
    ['a cursor of another list', { cursor: '0.x' }, 'PAGE_TOKEN_INVALID', 'page_token'],
    ['a value of another type', { values: { workspace: { a: 1 } } }, 'INVALID_FIELD', 'values.workspace'],
    ['a value that is too long', { values: { workspace: 'x'.repeat(513) } }, 'INVALID_FIELD', 'values.workspace'],
  ])('%s', async (_what, request, reason, field) => {
    const { id } = await connectWith(WORKSPACE, CHANNELS, { name: 'note' })
    const attempt = optionsReader().read(id, { ...given({ workspace: 'w' }), ...request })
    await expect(attempt).rejects.toMatchObject({ reason, violations: [{ field }] })
  })
})

describe('submitted values', () => {
  async function submit(id: string, values: JsonObject, isFromCustomer = true) {
    const account = { environmentId: own.environmentId, id }
    const accounts = { ...accountDeps, ...fixture.deps }
    const checked = await checkPostConnectForm(accounts, account, values, { path: 'values', isFromCustomer })
    if (checked.kind === 'invalid') return checked.violations.map(({ field, rule }) => `${field} ${rule}`)
    await database.transaction((tx) => storePostConnectForm(accounts, tx, account, { context: checked.context }))
    return (await fixture.read(id)).context
  }

  it('become part of the context: ids, and the labels with which they were chosen', async () => {
    const { id } = await connectWith(
      WORKSPACE,
      CHANNELS,
      { name: 'limit', type: 'number' },
      { name: 'all', type: 'checkbox' },
    )
    const channels = [{ value: 'C1', label: ' gen\neral ' }, 'C2', { value: 3, label: 'x'.repeat(300) }]
    expect(
      await submit(id, { workspace: { value: 'w1', label: 'One' }, channels, limit: '10', all: 'on' }),
    ).toMatchObject({
      workspace: 'w1',
      workspace_label: 'One',
      channels: ['C1', 'C2', '3'],
      channels_labels: ['gen eral', 'C2', 'x'.repeat(256)],
      limit: 10,
      all: true,
    })
    expect((await eventsOf(id)).map(({ name }) => name)).toContain('post_connect_form_submitted')
    expect((await eventsOf(id)).at(-1)?.payload).toMatchObject({ id, context: { workspace: 'w1' } })
  })

  it('may be submitted again: the form shows them, a changed or empty field replaces what was there', async () => {
    const { id } = await connectWith(WORKSPACE, CHANNELS, { name: 'note' })
    await submit(id, {
      workspace: { value: 'w1', label: 'One' },
      channels: [{ value: 'C1', label: 'general' }],
      note: 'x',
    })
    const accounts = { ...accountDeps, ...fixture.deps }
    const form = await getPostConnectForm(accounts, { environmentId: own.environmentId, id })
    expect(form.values).toEqual({
      workspace: { value: 'w1', label: 'One' },
      channels: [{ value: 'C1', label: 'general' }],
      note: 'x',
    })
    expect(form.fields.map(({ name, remote }) => [name, remote?.dependsOn])).toEqual([
      ['workspace', []],
      ['channels', ['workspace']],
      ['note', undefined],
    ])
    const context = await submit(id, form.values)
    expect(await submit(id, { ...form.values, note: 'x' })).toEqual(context)
    expect(await submit(id, { workspace: 'w2' })).toMatchObject({ workspace: 'w2', workspace_label: 'w2' })
    const { context: left } = await fixture.read(id)
    expect(Object.keys(left)).not.toEqual(expect.arrayContaining(['channels']))
    expect(left).not.toHaveProperty('note')
    expect(left).not.toHaveProperty('channels_labels')
  })

  it.each<[string, JsonObject, string[]]>([
    ['a required choice', {}, ['values.workspace required']],
    ['an object that is no choice', { workspace: { a: 1 } }, ['values.workspace type']],
    ['a choice without an id', { workspace: { label: 'x' } }, ['values.workspace type']],
    ['a list for one choice', { workspace: ['w'] }, ['values.workspace type']],
    ['an id that is too long', { workspace: 'x'.repeat(513) }, ['values.workspace string.max_len']],
    ['an id with NUL', { workspace: 'w', channels: ['\u0000'] }, ['values.channels string.control']],
    [
      'too many choices',
      { workspace: 'w', channels: Array.from({ length: 501 }, (_, at) => `${at}`) },
      ['values.channels list.max_items'],
    ],
    ['an unknown field', { workspace: 'w', oauth: {} }, ['values.oauth unknown_field']],
    ['the name of a credential', { workspace: 'w', api_key: 'x' }, ['values.api_key unknown_field']],
  ])('are rejected, and nothing is stored: %s', async (_what, values, expected) => {
    const { id, context } = await connectWith(WORKSPACE, CHANNELS)
    expect(await submit(id, values)).toEqual(expected)
    expect((await fixture.read(id)).context).toEqual(context)
    expect((await eventsOf(id)).map(({ name }) => name)).not.toContain('post_connect_form_submitted')
  })

  it('of a choice with a pattern match it, since the options are not compared', async () => {
    const { id } = await connectWith({ ...WORKSPACE, pattern: 'https://[a-z]+\\.example\\.com' })
    const choice = (value: string) => ({ workspace: { value, label: 'One' } })
    expect(await submit(id, choice('https://evil.example'))).toEqual(['values.workspace string.pattern'])
    expect((await fixture.read(id)).context).not.toHaveProperty('workspace')
    expect(await submit(id, choice('https://acme.example.com'))).toMatchObject({
      workspace: 'https://acme.example.com',
    })
  })

  it('of a field whose parent has no value are left out', async () => {
    const { id } = await connectWith({ ...WORKSPACE, required: false }, { ...CHANNELS, required: true })
    expect(await submit(id, { channels: ['C1'] })).not.toHaveProperty('channels')
  })

  it('of hidden fields come from the application alone', async () => {
    const { id } = await connectWith({ name: 'plan', type: 'hidden', default: 'free' })
    expect(await submit(id, { plan: 'paid' })).toMatchObject({ plan: 'free' })
    expect(await submit(id, { plan: 'paid' }, false)).toMatchObject({ plan: 'paid' })
  })

  it('are asked for by the steps whose condition holds', async () => {
    const step = (name: string, run_if: string) => ({
      type: 'form',
      run_if,
      config: { fields: [{ name, required: true }] },
    })
    const steps = [step('a', 'context.kind = "x"'), step('b', '$not(context.kind = "x")')]
    const { id } = await fixture.connectTo({ actions: { post_connect_user_form: { steps } } })
    expect(await submit(id, {})).toEqual(['values.b required'])
  })
})
