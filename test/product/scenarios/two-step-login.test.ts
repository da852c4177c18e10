import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { ScriptedExchange } from '../../support/upstream.ts'
import { startScenario } from './scenario.ts'

const scenario = await startScenario()
const upstream = await scenario.upstream()
const elsewhere = await scenario.upstream()
const PASSWORD = 'correct horse'

/** A login in two steps: a challenge, and its answer, which is what the token is given for. */
const DEFINITION = {
  base_url: upstream.url,
  credentials: {
    vendor_oauth: {
      config: {
        fields: [
          { name: 'username', required: true },
          { name: 'password', type: 'password', required: true },
        ],
        token_request: [
          { method: 'POST', path: '/login/challenge', body: { user: '{{username}}' } },
          {
            method: 'POST',
            path: '/login/answer',
            body: { session: '{{args.step1.body.session}}', password: '{{password}}' },
          },
        ],
        token_expression: 'body.token',
        expires_in_expression: 'body.valid_for',
        context_from_token: { site_id: 'site.id' },
      },
    },
  },
  authorization: {
    format: 'header',
    config: { headers: { 'x-auth': '{{oauth.token.access_token}}', 'x-site': '{{context.site_id}}' } },
  },
  resources: {
    reports: {
      get: { path: '/reports/{{id}}' },
      list: {
        path: '/reports',
        response_path: 'items',
        pagination: { format: 'cursor', config: { cursor_path: 'next', is_link: true } },
      },
    },
  },
}

/** The two requests of a login and their answers. */
function login(token: string): ScriptedExchange[] {
  const session = createHash('sha256').update(token).digest('hex')
  return [
    {
      request: 'POST /login/challenge',
      headers: { 'x-auth': null },
      body: { user: 'ann' },
      answer: { json: { session } },
    },
    {
      request: 'POST /login/answer',
      body: { session, password: PASSWORD },
      answer: { json: { token, valid_for: 3600, site: { id: 's-1' } } },
    },
  ]
}

upstream.script(...login('t1'))
const account = await scenario.connect(DEFINITION, { username: 'ann', password: PASSWORD })

test('connecting logs in, and the response of the login goes into the context', async () => {
  upstream.script({
    request: 'GET /reports/1',
    headers: { 'x-auth': 't1', 'x-site': 's-1' },
    answer: { json: { id: 1 } },
  })
  expect((await account.call('GET', '/proxy/reports/1')).json).toEqual({ result: { id: 1 } })
  const shown = await account.read()
  expect(shown.context).toEqual({ username: 'ann', site_id: 's-1' })
  expect(JSON.stringify(shown)).not.toContain('t1"')
})

test('a token that is rejected early is refreshed by one login, and the call retried', async () => {
  upstream.script(
    { request: 'GET /reports/2', headers: { 'x-auth': 't1' }, answer: { status: 401, json: {} } },
    ...login('t2'),
    { request: 'GET /reports/2', headers: { 'x-auth': 't2' }, answer: { json: { id: 2 } } },
    { request: 'GET /reports/3', headers: { 'x-auth': 't2' }, answer: { json: { id: 3 } } },
  )
  expect((await account.call('GET', '/proxy/reports/2')).json).toEqual({ result: { id: 2 } })
  expect((await account.call('GET', '/proxy/reports/3')).json).toEqual({ result: { id: 3 } })
})

test('a next link to another origin is rejected, and nothing is sent there', async () => {
  upstream.script({
    request: 'GET /reports',
    answer: { json: { items: [{ id: 1 }], next: `${elsewhere.url}/reports?page=2` } },
  })
  const first = await account.call('GET', '/proxy/reports')
  const path = first.status === 200 ? `/proxy/reports?next_cursor=${first.json.next_cursor}` : undefined
  const answer = path === undefined ? first : await account.call('GET', path)
  expect(answer.reason).toBe('PAGINATION_ORIGIN')
  expect(answer.status).toBe(400)
  expect(elsewhere.requests).toEqual([])
})

test('an account whose login is rejected has to be connected again', async () => {
  upstream.script(
    { request: 'GET /reports/4', headers: { 'x-auth': 't2' }, answer: { status: 401, json: {} } },
    { request: 'POST /login/challenge', answer: { status: 401, json: { message: 'account closed' } } },
  )
  expect((await account.call('GET', '/proxy/reports/4')).status).toBe(401)
  expect((await account.read()).status).toBe('needs_reauth')
})

test('wrong credentials never become an active account', async () => {
  upstream.script({ request: 'POST /login/challenge', answer: { status: 403, json: { message: 'unknown user' } } })
  const other = await scenario.connect(DEFINITION, { username: 'bob', password: 'x' }, 'validation_error')
  expect((await other.read()).last_error).toContain('unknown user')
})
