import { afterAll, afterEach, expect, it } from 'vitest'
import { compilePlan, type MethodPlan } from '../../../../src/engine/definitions/index.ts'
import type { TemplateScope } from '../../../../src/engine/expressions/index.ts'
import type { TokenResponse } from '../../../../src/engine/formats/index.ts'
import { sendRaw } from '../../../../src/engine/proxy/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { startUpstream } from '../../../support/upstream.ts'

const upstream = await startUpstream()
const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
afterEach(() => upstream.verify())
afterAll(() => http[Symbol.asyncDispose]())
afterAll(() => upstream[Symbol.asyncDispose]())

const SCOPE: TemplateScope = { account: { context: {}, credentials: { pin: 'p' }, environmentVariables: {} }, call: {} }

/** Sends the token request of a definition whose other requests all carry the token. */
async function ask(request: JsonObject, responseBytesMax = 1_000): Promise<TokenResponse> {
  const plan = compilePlan({
    base_url: upstream.url,
    headers: { 'x-token': 'Token {{oauth.token.access_token}}' },
    query: { v: '{{oauth.token.version}}1' },
    authorization: { format: 'bearer' },
    credentials: { format: 'vendor_oauth', config: { token_request: request, token_expression: 'body' } },
  })
  const responses: TokenResponse[] = []
  const send = async (method: MethodPlan, scope: TemplateScope) => {
    const response = await sendRaw(http, method, scope, { timeoutMs: 60_000, responseBytesMax, owner: 'one' })
    responses.push(response)
    return response
  }
  const tools = { send, evaluate: async () => 't', now: () => new Date(), nonce: () => '', randomSecret: () => '' }
  await plan.credentials[0]?.token?.requestToken(tools, SCOPE, undefined)
  const [response] = responses
  if (response === undefined) throw new Error('nothing was sent')
  return response
}

it('sends what the request says and nothing of what the integration adds to others', async () => {
  upstream.script({
    request: 'POST /login?a=1',
    headers: { 'x-token': null, authorization: null, 'content-type': 'application/x-www-form-urlencoded' },
    body: 'pin=p',
    answer: { json: { token: 't' } },
  })
  const body = { pin: '{{pin}}' }
  const answer = await ask({ method: 'POST', path: '/login', query: { a: 1 }, body, body_format: 'form' })
  expect(answer).toMatchObject({ status: 200, body: '{"token":"t"}' })
})

it('follows no redirect, and repeats nothing', async () => {
  upstream.script({ request: 'GET /login', answer: { status: 302, headers: { location: '/elsewhere' } } })
  expect(await ask({ path: '/login' })).toMatchObject({ status: 302, body: '' })
  upstream.script({ request: 'GET /login', answer: { status: 503 } })
  expect(await ask({ path: '/login' })).toMatchObject({ status: 503 })
})

it('reads a body in the format that the request names, and as text when it is not', async () => {
  upstream.script(
    { request: 'GET /login', answer: { text: '{"a":1}' } },
    { request: 'GET /login', answer: { text: 'no JSON' } },
  )
  expect((await ask({ path: '/login', response_format: 'json' })).body).toEqual({ a: 1 })
  expect((await ask({ path: '/login', response_format: 'json' })).body).toBe('no JSON')
})

it('takes no more than it may', async () => {
  upstream.script({ request: 'GET /login', answer: { text: 'x'.repeat(1_001) } })
  await expect(ask({ path: '/login' })).rejects.toMatchObject({ reason: 'UPSTREAM_INVALID_RESPONSE' })
})
