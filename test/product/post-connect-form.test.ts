import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { EventService } from '../../gen/patchbay/v1/event_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { TIME } from '../support/matchers.ts'
import { seedTenant } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { callDefinition, connectAccount, LOCAL_UPSTREAM } from './calls.ts'

const {
  getIntegratedAccount: get,
  getPostConnectForm: form,
  listFormOptions: options,
  submitPostConnectForm: submit,
} = IntegratedAccountService.method

const app = await startTestApp(LOCAL_UPSTREAM)
const world = await seedTenant(app, app.first)
const upstream = await startUpstream()
const clients = app.clients()
afterEach(() => upstream.verify())
afterAll(() => upstream[Symbol.asyncDispose]())

const FIELDS = [
  {
    name: 'contact',
    label: 'Contact',
    type: 'single_select',
    required: true,
    data_source: { resource: 'contacts', query: { q: '{{args.search}}' } },
    options: { value: 'id', label: 'name', subText: 'email' },
    empty_text: 'No members',
  },
  {
    name: 'lists',
    type: 'multi_select',
    data_source: { resource: 'counted', query: { of: '{{contact}}' } },
    options: { value: 'id' },
    disabled_text: 'Choose a contact first',
  },
  { name: 'days', type: 'number', min: 1, max: 30, default: 7, help_text: 'How far to look back' },
  {
    name: 'plan',
    type: 'single_select',
    options: [{ value: 'a', label: 'A' }],
    visible_when: { field: 'days', equals: 30 },
  },
]

const account = async (fields: readonly JsonObject[] = FIELDS) => {
  const definition = callDefinition(upstream.url)
  const actions = {
    ...(definition.actions as JsonObject),
    post_connect_user_form: { type: 'form', config: { fields } },
  }
  return (await connectAccount(app, world, { ...definition, actions })).accountId
}

describe.each(inTurn(clients))('the form of an account over $wire', (client) => {
  it('has its fields, with everything that an application needs to show them', async () => {
    const id = await account()
    const shown = await client.ok(form, { id })
    const empty = {
      format: '',
      pattern: '',
      pattern_message: '',
      prefix: '',
      suffix: '',
      placeholder: '',
      help_text: '',
    }
    const plain = { ...empty, documentation_link: '', required: false, hidden: false, options: [], accept: [] }
    const source = { depends_on: [], searchable: false, disabled_text: '', empty_text: '' }
    expect(shown).toEqual({
      integrated_account_id: id,
      integration: expect.stringContaining('called'),
      values: {},
      fields: [
        {
          ...plain,
          name: 'contact',
          label: 'Contact',
          type: 'single_select',
          required: true,
          options_source: { ...source, searchable: true, empty_text: 'No members' },
        },
        {
          ...plain,
          name: 'lists',
          label: 'lists',
          type: 'multi_select',
          options_source: { ...source, depends_on: ['contact'], disabled_text: 'Choose a contact first' },
        },
        {
          ...plain,
          name: 'days',
          label: 'days',
          type: 'number',
          min: 1,
          max: 30,
          initial_value: 7,
          help_text: 'How far to look back',
        },
        {
          ...plain,
          name: 'plan',
          label: 'plan',
          type: 'single_select',
          options: [{ value: 'a', label: 'A', sub_text: '' }],
          visible_when: { field: 'days', equals: [30] },
        },
      ],
    })
  })

  it('is empty where the integration asks for nothing', async () => {
    const { accountId } = await connectAccount(app, world, callDefinition(upstream.url))
    expect(await client.ok(form, { id: accountId })).toMatchObject({ fields: [], values: {} })
    expect(await client.ok(submit, { id: accountId })).toMatchObject({ id: accountId, context: {} })
    const error = await client.callError(options, { id: accountId, field: 'contact' })
    expect(error).toMatchObject({ reason: 'INVALID_FIELD', violations: [{ field: 'field' }] })
  })

  it('lists options page by page, and says which fields come first', async () => {
    const id = await account()
    upstream.script(
      {
        request: 'GET /contacts?q=an&page=1&limit=200',
        answer: { json: { data: [{ id: 1, name: 'Ann', email: 'ann@example.com' }] } },
      },
      { request: 'GET /contacts?q=an&page=2&limit=200', answer: { json: { data: [] } } },
    )
    const first = await client.ok(options, { id, field: 'contact', search: 'an' })
    expect(first).toMatchObject({
      options: [{ value: '1', label: 'Ann', sub_text: 'ann@example.com' }],
      missing_fields: [],
    })
    expect(
      await client.ok(options, { id, field: 'contact', search: 'an', page_token: String(first.next_page_token) }),
    ).toEqual({ options: [], next_page_token: '', missing_fields: [] })
    const others = { id, field: 'contact', page_token: String(first.next_page_token) }
    expect(await client.callError(options, others)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'PAGE_TOKEN_INVALID',
      violations: [{ field: 'page_token' }],
    })
    expect(await client.ok(options, { id, field: 'lists' })).toEqual({
      options: [],
      next_page_token: '',
      missing_fields: ['contact'],
    })
  })

  it('passes errors of the third party on as those of a call', async () => {
    const id = await account()
    upstream.script({
      request: 'GET /counted?of=1&page=1&limit=200',
      answer: { status: 429, headers: { 'retry-after': '3' } },
    })
    const error = await client.callError(options, { id, field: 'lists', values: { contact: '1' } })
    expect(error).toMatchObject({ reason: 'UPSTREAM_RATE_LIMITED' })
  })

  it('stores ids and labels in the context, and records the event', async () => {
    const id = await account()
    const values = { contact: { value: '1', label: 'Ann' }, lists: ['x', { value: 'y', label: 'Y' }], days: '14' }
    const stored = { contact: '1', contact_label: 'Ann', lists: ['x', 'y'], lists_labels: ['x', 'Y'], days: 14 }
    const submitted = await client.ok(submit, { id, values })
    expect(submitted).toMatchObject({ id, context: stored, status: 'active', updated_at: TIME })
    expect(await client.ok(get, { id })).toEqual(submitted)
    expect((await client.ok(form, { id })).values).toEqual({
      contact: { value: '1', label: 'Ann' },
      lists: [
        { value: 'x', label: 'x' },
        { value: 'y', label: 'Y' },
      ],
      days: 14,
    })
    const type = 'integrated_account:post_connect_form_submitted'
    const { events } = await client.ok(EventService.method.listEvents, { type, subject_id: id })
    expect(events).toMatchObject([{ subject_id: id, payload: { id, context: stored } }])
  })

  it('rejects what does not fit with every finding, and stores nothing', async () => {
    const id = await account()
    const before = await client.ok(get, { id })
    const error = await client.callError(submit, { id, values: { days: 31, lists: 'x', other: 1 } })
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'INVALID_FIELD' })
    expect(error.violations.map(({ field }) => field)).toEqual(['values.other', 'values.contact', 'values.days'])
    expect(await client.callError(submit, { id, values: { contact: '1' }, etag: '"v9"' })).toMatchObject({
      reason: 'ETAG_MISMATCH',
    })
    expect(await client.ok(get, { id })).toEqual(before)
  })
})

it('answers at the addresses of REST', async () => {
  const id = await account()
  const headers = { authorization: `Bearer ${world.environmentToken}`, 'content-type': 'application/json' }
  const base = `${app.url}/integrated-account/${id}/post-connect-form`
  upstream.script({ request: 'GET /contacts?page=1&limit=200', answer: { json: { data: [] } } })
  const answers = await Promise.all([
    fetch(base, { headers }),
    fetch(`${base}/options`, { method: 'POST', headers, body: '{"field":"contact"}' }),
    fetch(base, { method: 'POST', headers, body: '{"values":{"contact":"1"}}' }),
  ])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
})
