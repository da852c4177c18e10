import { describe, expect, test } from 'vitest'
import type { PageStep } from '../../../../src/engine/proxy/index.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import type { ScriptedAnswer } from '../../../support/upstream.ts'
import { on, startEngine } from './engine.ts'

const engine = await startEngine()
const JSON_TYPE = { 'content-type': 'application/json' }
const HTML = { text: '<!DOCTYPE html><form>', headers: { 'content-type': 'text/html' } }
const ERRORS = { data: null, errors: [{ message: 'no such field' }] }

/** Paging formats, and the query of their first page. */
const PAGINATIONS: readonly (readonly [string, JsonObject | null, string])[] = [
  ['unpaged', null, ''],
  ['cursor', { format: 'cursor', config: { cursor_path: 'next', cursor_key: 'cursor' } }, ''],
  ['page', { format: 'page', config: { page_key: 'page' } }, '?page=1'],
  ['offset', { format: 'offset', config: { offset_key: 'offset', limit_key: 'limit', limit: 2 } }, '?offset=0&limit=2'],
  ['link_header', { format: 'link_header', config: {} }, ''],
]

const config = (method: JsonObject, pagination: JsonObject | null = null): JsonObject => ({
  base_url: engine.upstream.url,
  retry: { max_attempts: 2 },
  ...(pagination === null ? {} : { pagination }),
  resources: {
    items: {
      list: { path: '/items', ...method },
      get: { path: '/items', ...method },
      update: { method: 'PUT', path: '/items', ...method },
      delete: { method: 'DELETE', path: '/items', ...method },
    },
  },
  actions: { post_install: { type: 'request', config: { path: '/items', ...method } } },
  credentials: {
    format: 'api_key',
    config: {
      fields: [{ name: 'api_key', type: 'password' }],
      verification: { path: '/items', ...withoutPath(method) },
    },
  },
})

function withoutPath({ response_path: _, ...method }: JsonObject): JsonObject {
  return method
}

/** What an answer becomes: the kind of its outcome, or that it threw as transient. */
async function verdict(run: () => Promise<{ readonly kind: string; readonly action?: string }>): Promise<string> {
  try {
    const { kind, action } = await run()
    return action === undefined ? kind : `${kind}: ${action}`
  } catch (error) {
    if (error instanceof Failure) return error.reason
    throw error
  }
}

async function firstStep(steps: AsyncIterable<PageStep>): Promise<PageStep> {
  for await (const step of steps) return step
  throw new Error('no step')
}

/** Answers as often as it is asked. */
function answerWith(answer: ScriptedAnswer, verb: string, times: number, query = ''): void {
  engine.upstream.script({ request: `${verb} /items${query}`, answer, times })
}

const INCOMPLETE = 'UPSTREAM_INVALID_RESPONSE'
const LISTS: readonly (readonly [string, ScriptedAnswer, JsonObject, string, number])[] = [
  ['JSON without a byte', { text: '', headers: JSON_TYPE }, {}, INCOMPLETE, 2],
  ['JSON that is blank', { text: ' \r\n', headers: JSON_TYPE }, {}, INCOMPLETE, 2],
  ['nothing, of no type', { text: '' }, {}, INCOMPLETE, 2],
  [
    'nothing, where the definition says JSON',
    { text: '', headers: { 'content-type': 'text/csv' } },
    { response_format: 'json' },
    INCOMPLETE,
    2,
  ],
  ['nothing, where the definition allows it', { text: '', headers: JSON_TYPE }, { allow_empty_body: true }, 'page', 1],
  ['CSV without a row', { text: '', headers: { 'content-type': 'text/csv' } }, {}, 'page', 1],
  ['204', { status: 204, headers: JSON_TYPE }, {}, 'page', 1],
  ['205', { status: 205 }, {}, 'page', 1],
  ['202 with {}', { status: 202, json: {} }, {}, 'upstream_error: retry', 2],
  ['202 without a body', { status: 202 }, {}, 'upstream_error: retry', 2],
  ['202 that is the result', { status: 202, json: [] }, { allow_accepted: true }, 'page', 1],
  ['302 without a target', { status: 302 }, {}, 'upstream_error: fail', 1],
  ['300', { status: 300, json: [] }, {}, 'upstream_error: fail', 1],
  ['a login page', HTML, {}, INCOMPLETE, 2],
  ['errors of GraphQL', { json: ERRORS }, {}, 'upstream_error: fail', 1],
  [
    'errors of GraphQL that pass',
    { json: { errors: [{ message: 'x', extensions: { code: 'THROTTLED' } }] } },
    {},
    'upstream_error: retry',
    2,
  ],
  [
    'errors and nothing under the path',
    { json: { data: { items: null }, errors: [{ message: 'no' }] } },
    { response_path: 'data.items' },
    INCOMPLETE,
    1,
  ],
  [
    'ok: false and nothing under the path',
    { json: { ok: false, error: 'internal_error' } },
    { response_path: 'items' },
    INCOMPLETE,
    1,
  ],
  ['nothing under the path', { json: { ok: true } }, { response_path: 'items' }, 'page', 1],
  ['the JSON value null', { json: null }, {}, 'page', 1],
]

describe.each(PAGINATIONS)('a list that is %s', (_, pagination, query) => {
  test.each(LISTS)('answered with %s', async (_name, answer, method, expected, times) => {
    answerWith(answer, 'GET', times, query)
    expect(await verdict(() => firstStep(engine.pages(config(method, pagination), on('items', 'list'))))).toBe(expected)
  })
})

test.each([301, 302, 303, 307, 308])(
  'a list by POST that is answered %s is an error that names the target',
  async (status) => {
    engine.upstream.script({
      request: 'POST /items',
      answer: { status, headers: { location: 'https://new.example/items?key=1' } },
    })
    const step = await firstStep(engine.pages(config({ method: 'POST', body: {} }), on('items', 'list')))
    expect(step).toMatchObject({
      kind: 'upstream_error',
      status,
      message: expect.stringContaining('https://new.example/items,'),
    })
  },
)

describe('a change', () => {
  test.each<[string, string, ScriptedAnswer, string]>([
    ['delete', 'DELETE', { text: '', headers: JSON_TYPE }, 'ok'],
    ['update', 'PUT', { text: '' }, 'ok'],
    ['update', 'PUT', { status: 202, json: {} }, 'ok'],
    ['update', 'PUT', { status: 307, headers: { location: '/x' } }, 'upstream_error: fail'],
    ['delete', 'DELETE', { status: 308, headers: { location: '/x' } }, 'upstream_error: fail'],
    ['update', 'PUT', { json: ERRORS }, 'upstream_error: fail'],
  ])('%s by %s answered with %j is %s', async (name, verb, answer, expected) => {
    answerWith(answer, verb, 1)
    expect(await verdict(() => engine.call(config({}), { ...on('items', name), body: {} }))).toBe(expected)
  })
})

describe('a request that proves something', () => {
  const targets = {
    verification: { kind: 'verification', credential: 'api_key' },
    post_install: { kind: 'action', action: 'post_install' },
  } as const
  test.each<[keyof typeof targets, ScriptedAnswer, JsonObject, string]>([
    ['verification', HTML, {}, 'upstream_error: fail'],
    ['verification', { status: 302, headers: { location: '/login' } }, { method: 'POST' }, 'upstream_error: fail'],
    ['verification', { status: 304 }, {}, 'upstream_error: fail'],
    ['verification', { status: 202, json: {} }, {}, 'upstream_error: retry'],
    ['verification', { text: '', headers: JSON_TYPE }, {}, 'failed'],
    ['verification', { status: 204 }, {}, 'ok'],
    ['verification', { json: { id: 1 } }, {}, 'ok'],
    ['verification', { text: 'ok', headers: { 'content-type': 'text/html' } }, {}, 'ok'],
    ['post_install', { status: 307, headers: { location: '/x' } }, { method: 'POST' }, 'upstream_error: fail'],
    ['post_install', HTML, {}, 'failed'],
    ['post_install', { status: 204 }, { method: 'POST' }, 'ok'],
  ])('%s answered with %j is (%j) %s', async (name, answer, method, expected) => {
    const times = expected === 'ok' || expected.endsWith('fail') ? 1 : 2
    answerWith(answer, String(method.method ?? 'GET'), times)
    const run = async () => (await engine.runAction(config(method), { target: targets[name] })).outcome
    expect(await verdict(run)).toBe(expected)
  })

  test('a verification that is redirected to a login page fails', async () => {
    engine.upstream.script(
      { request: 'GET /items', answer: { status: 302, headers: { location: '/login' } } },
      { request: 'GET /login', answer: HTML },
    )
    const { outcome } = await engine.runAction(config({}), { target: targets.verification })
    expect(outcome).toMatchObject({ kind: 'upstream_error', message: expect.stringContaining('web page') })
  })
})
