import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import type { CallOutcome } from '../../../support/client.ts'
import { unary } from './support/contract.ts'
import { ENVIRONMENT_ID, type Harness, startHarness, WIDGET_ID } from './support/harness.ts'
import { ALL_WIRES, JSON_WIRES, type Send } from './support/protocols.ts'

const AS_ENVIRONMENT = { authorization: 'Bearer env' }
const AS_TEAM = { authorization: 'Bearer team' }

interface Case {
  readonly title: string
  readonly method: string
  readonly request: JsonObject
  readonly headers?: Readonly<Record<string, string>>
}

interface AnsweredCase extends Case {
  readonly answer: JsonObject
}

interface RefusedCase extends Case {
  readonly code: string
  readonly reason: string
  /** Of REST; Connect's follow from the code. */
  readonly status: number
  readonly violations?: readonly string[]
}

const GET = { id: WIDGET_ID }

const ANSWERED: readonly AnsweredCase[] = [
  { title: 'a request with a path variable', method: 'Get', request: GET, answer: { id: WIDGET_ID, request: GET } },
  {
    title: 'a request whose fields are all given',
    method: 'Create',
    request: {
      name: 'wheel',
      attributes: { deep: { list: [1, null, true, 'text'] } },
      tags: ['a', 'b'],
      size: 3,
      parts: [{ name: 'spoke', count: 7 }],
      is_on: true,
      made_at: '2027-01-15T08:00:00.250Z',
      webhook_id: WIDGET_ID,
      parts_by_name: { left: { name: 'left' } },
      anything: ['any', { thing: 1 }],
    },
    answer: {
      request: {
        name: 'wheel',
        attributes: { deep: { list: [1, null, true, 'text'] } },
        tags: ['a', 'b'],
        size: 3,
        parts: [{ name: 'spoke', count: 7 }],
        is_on: true,
        made_at: '2027-01-15T08:00:00.250Z',
        webhook_id: WIDGET_ID,
        parts_by_name: { left: { name: 'left' } },
        anything: ['any', { thing: 1 }],
      },
    },
  },
  { title: 'an empty answer', method: 'Delete', request: GET, answer: {} },
  {
    title: 'a team token that names its environment',
    method: 'Get',
    request: GET,
    headers: { ...AS_TEAM, 'patchbay-environment': ENVIRONMENT_ID },
    answer: { id: WIDGET_ID },
  },
  { title: 'a team operation', method: 'TeamOnly', request: GET, headers: AS_TEAM, answer: { id: WIDGET_ID } },
  { title: 'any token', method: 'AnyToken', request: GET, headers: AS_TEAM, answer: { id: WIDGET_ID } },
  { title: 'an open operation without a token', method: 'Open', request: GET, headers: {}, answer: { id: WIDGET_ID } },
]

const REFUSED: readonly RefusedCase[] = [
  {
    title: 'no token',
    method: 'Get',
    request: GET,
    headers: {},
    code: 'UNAUTHENTICATED',
    reason: 'TOKEN_MISSING',
    status: 401,
  },
  {
    title: 'another scheme than Bearer',
    method: 'Get',
    request: GET,
    headers: { authorization: 'Basic ZW52Og==' },
    code: 'UNAUTHENTICATED',
    reason: 'TOKEN_MISSING',
    status: 401,
  },
  {
    title: 'an unknown token',
    method: 'Get',
    request: GET,
    headers: { authorization: 'Bearer who' },
    code: 'UNAUTHENTICATED',
    reason: 'TOKEN_INVALID',
    status: 401,
  },
  {
    title: 'a team token without an environment where one is needed',
    method: 'Get',
    request: GET,
    headers: AS_TEAM,
    code: 'INVALID_ARGUMENT',
    reason: 'ENVIRONMENT_REQUIRED',
    status: 400,
  },
  {
    title: 'an environment token where a team token is needed',
    method: 'TeamOnly',
    request: GET,
    code: 'PERMISSION_DENIED',
    reason: 'TEAM_TOKEN_REQUIRED',
    status: 403,
  },
  {
    title: 'a malformed id',
    method: 'Get',
    request: { id: 'nonsense' },
    code: 'INVALID_ARGUMENT',
    reason: 'INVALID_FIELD',
    status: 400,
    violations: ['id string.uuid'],
  },
  {
    title: 'every broken rule at once, with what cannot be stored and the findings of the operation',
    method: 'Create',
    request: {
      name: 'forbidden',
      attributes: { 'bad\u0000key': 1, nested: { __proto__x: 1, constructor: {} } },
      tags: ['ok', 'nul\u0000'],
      parts: [{ name: 'ok' }, { name: '', count: -1 }],
      webhook_id: 'nonsense',
    },
    code: 'ALREADY_EXISTS',
    reason: 'NAME_TAKEN',
    status: 409,
    violations: [
      'attributes.bad\u0000key nul',
      'attributes.nested.constructor forbidden_key',
      'name name.forbidden',
      'parts[1].count int32.gte',
      'parts[1].name string.min_len',
      'tags[1] nul',
      'webhook_id string.uuid',
    ],
  },
  {
    title: 'a free-form object nested too deep',
    method: 'Create',
    request: { name: 'deep', attributes: nested(40) },
    code: 'INVALID_ARGUMENT',
    reason: 'INVALID_FIELD',
    status: 400,
    violations: [`attributes${'.a'.repeat(32)} depth`],
  },
  {
    title: 'a missing thing',
    method: 'Fail',
    request: { how: 'missing' },
    code: 'NOT_FOUND',
    reason: 'RESOURCE_NOT_FOUND',
    status: 404,
  },
  {
    title: 'a name with a colon in the message',
    method: 'Fail',
    request: { how: 'taken' },
    code: 'ALREADY_EXISTS',
    reason: 'NAME_TAKEN',
    status: 409,
  },
  {
    title: 'a reason with a REST status of its own',
    method: 'Fail',
    request: { how: 'sandbox' },
    code: 'FAILED_PRECONDITION',
    reason: 'SANDBOX_ACCOUNT_READ_ONLY',
    status: 405,
  },
  {
    title: 'an upstream failure',
    method: 'Fail',
    request: { how: 'upstream' },
    code: 'FAILED_PRECONDITION',
    reason: 'UPSTREAM_ERROR',
    status: 502,
  },
  {
    title: 'an outage',
    method: 'Fail',
    request: { how: 'down' },
    code: 'UNAVAILABLE',
    reason: 'DATABASE_UNAVAILABLE',
    status: 503,
  },
  {
    title: 'an error of another layer that the translation knows',
    method: 'Fail',
    request: { how: 'translated' },
    code: 'ABORTED',
    reason: 'ETAG_MISMATCH',
    status: 409,
  },
  { title: 'a bug', method: 'Fail', request: { how: 'bug' }, code: 'INTERNAL', reason: 'INTERNAL', status: 500 },
]

function nested(levels: number): JsonObject {
  return levels === 0 ? {} : { a: nested(levels - 1) }
}

describe.each(ALL_WIRES)('$name', (wire) => {
  let harness: Harness
  let client: { readonly send: Send; close(): void }

  beforeAll(async () => {
    harness = await startHarness({
      translateError: (error) =>
        error instanceof RangeError ? new Failure('ETAG_MISMATCH', 'it changed meanwhile') : undefined,
    })
    client = wire.connect(harness.baseUrl)
  })
  afterAll(async () => {
    client.close()
    await harness[Symbol.asyncDispose]()
  })

  it.each(ANSWERED)('answers $title', async ({ method, request, headers, answer }) => {
    const outcome = await client.send(unary(method), request, headers ?? AS_ENVIRONMENT)
    expect(outcome).toMatchObject({ ok: true, json: answer })
  })

  it.each(REFUSED)('rejects $title', async ({ method, request, headers, ...expected }) => {
    const outcome = await client.send(unary(method), request, headers ?? AS_ENVIRONMENT)
    const { error } = rejected(outcome)
    expect(error).toMatchObject({ code: expected.code, reason: expected.reason, domain: 'patchbay' })
    expect(error.violations.map(({ field, rule }) => `${field} ${rule}`).sort()).toEqual(expected.violations ?? [])
    if (wire.name === 'REST') expect(error.httpStatus).toBe(expected.status)
  })

  it('says how to authenticate when a token is missing', async () => {
    const { headers } = await client.send(unary('Get'), GET, {})
    expect(headers.get('www-authenticate')).toBe('Bearer')
  })

  it('carries the facts of a failure: message, metadata, resource, waiting time', async () => {
    const send = async (how: string) => rejected(await client.send(unary('Fail'), { how }, AS_ENVIRONMENT))
    const [taken, missing, busy] = [await send('taken'), await send('missing'), await send('busy')]
    expect(taken.error).toMatchObject({ message: 'the name is taken: choose another', metadata: { name: 'a' } })
    expect(missing.error.resource).toEqual({ type: 'widget', id: WIDGET_ID })
    expect(busy.error.retryAfterSeconds).toBe(2)
    expect(busy.headers.get('retry-after')).toBe('3')
  })

  it('shows nothing of a bug and logs it under the id of the request', async () => {
    const headers = { ...AS_ENVIRONMENT, 'x-request-id': `bug-${wire.name.replace(/\W/g, '')}` }
    const { error } = rejected(await client.send(unary('Fail'), { how: 'bug' }, headers))
    expect(error.message).toBe('internal error')
    const line = harness.log.find(({ fields }) => fields.request_id === headers['x-request-id'])
    expect(line).toMatchObject({ level: 'error', fields: { error: 'a secret of the stack' } })
  })

  it('gives every answer the request id: the one sent when it is harmless, else a new one', async () => {
    const send = async (id: string) =>
      (await client.send(unary('Get'), GET, { ...AS_ENVIRONMENT, 'x-request-id': id })).headers.get('x-request-id')
    expect(await send('my-id.1')).toBe('my-id.1')
    expect(await send('a b"c')).toMatch(/^[0-9a-f-]{36}$/)
    expect(await send('x'.repeat(129))).toMatch(/^[0-9a-f-]{36}$/)
    const rejected = await client.send(unary('Get'), GET, { 'x-request-id': 'rejected' })
    expect(rejected.headers.get('x-request-id')).toBe('rejected')
  })

  it('tells the observer how each call went', async () => {
    const before = harness.observations.length
    await client.send(unary('Get'), GET, AS_ENVIRONMENT)
    await client.send(unary('Get'), GET, {})
    const [good, bad] = harness.observations.slice(before)
    expect(good).toMatchObject({ operation: '/widget.v1.WidgetService/Get', outcome: 'OK' })
    expect(bad).toMatchObject({ operation: '/widget.v1.WidgetService/Get', outcome: 'UNAUTHENTICATED' })
  })
})

describe.each(JSON_WIRES)('$name, as the client wrote it', (wire) => {
  let harness: Harness
  let client: { readonly send: Send; close(): void }

  beforeAll(async () => {
    harness = await startHarness()
    client = wire.connect(harness.baseUrl)
  })
  afterAll(async () => {
    client.close()
    await harness[Symbol.asyncDispose]()
  })

  it('writes the contract’s names, defaults, and times with milliseconds', async () => {
    const outcome = await client.send(unary('Get'), GET, AS_ENVIRONMENT)
    expect(outcome).toMatchObject({
      json: {
        name: '',
        created_at: '2027-01-15T08:00:00.000Z',
        tags: [],
        is_on: false,
        attributes: {},
        parts_by_name: { wheel: { made_at: '2027-01-15T08:00:00.123Z', count: 0 } },
        inner: { created_at: '2027-01-15T08:00:00.500Z' },
      },
    })
  })

  it('reports every misfit of the body at once, beside the broken rules of the rest', async () => {
    const request = {
      nam: 'wheel',
      tags: ['a', 7, null],
      isOn: 'yes',
      is_on: true,
      size: 1.5,
      parts: [{ name: 'ok' }, 3, { nam: 'x', name: 'y', count: 'many' }],
      partsByName: { left: { count: -1, name: 'l' }, right: [] },
      made_at: 'yesterday',
      attributes: [],
      group_key: 'g',
      webhook_id: 'w',
    }
    const { error } = rejected(await client.send(unary('Create'), request, AS_ENVIRONMENT))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'DESTINATION_CONFLICT' })
    expect(error.violations.map(({ field, rule }) => `${field} ${rule}`).sort()).toEqual([
      'attributes type',
      'is_on duplicate_field',
      'is_on type',
      'made_at type',
      'nam unknown_field',
      'name string.min_len',
      'parts[1] type',
      'parts[2].count type',
      'parts[2].nam unknown_field',
      'parts_by_name.left.count int32.gte',
      'parts_by_name.right type',
      'size type',
      'tags[1] type',
      'tags[2] type',
      'webhook_id oneof',
    ])
    expect(error.violations.find(({ field }) => field === 'nam')?.description).toContain('did you mean name?')
  })

  it.each([
    ['one member null', { name: 'a', group_key: 'g', webhook_id: null }, { name: 'a', group_key: 'g' }],
    ['the camel-case spelling', { name: 'a', groupKey: 'g', isOn: true }, { name: 'a', group_key: 'g', is_on: true }],
    ['null for a field', { name: 'a', size: null, attributes: null }, { name: 'a' }],
  ])('accepts %s', async (_, request, seen) => {
    const outcome = await client.send(unary('Create'), request, AS_ENVIRONMENT)
    expect(outcome).toMatchObject({ ok: true })
    expect(outcome.ok && outcome.json.request).toEqual(seen)
  })

  it('rejects two members of any other oneof without a special reason', async () => {
    const request = { name: 'a', round: 'r', square: 's' }
    const { error } = rejected(await client.send(unary('Create'), request, AS_ENVIRONMENT))
    expect(error).toMatchObject({ reason: 'INVALID_FIELD', violations: [{ field: 'square', rule: 'oneof' }] })
  })
})

function rejected(outcome: CallOutcome): Extract<CallOutcome, { ok: false }> {
  if (outcome.ok) throw new Error(`not rejected: ${JSON.stringify(outcome.json)}`)
  return outcome
}
