import { toJson } from '@bufbuild/protobuf'
import { ValueSchema } from '@bufbuild/protobuf/wkt'
import { createClient } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import { startTestApp } from '../support/app.ts'
import { NUMBER_TEXTS, NUMBERS_JSON, NUMBERS_JSONB } from '../support/json-numbers.ts'
import { firstTenant } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { callDefinition, connectAccount, LOCAL_UPSTREAM } from './calls.ts'

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
const tenant = firstTenant(app)

/** The definition of the other tests, with methods whose answers go through expressions, and literals of its own. */
function definition() {
  const { error_expression: _, ...base } = callDefinition(upstream.url)
  return {
    ...base,
    resources: {
      ...(base.resources as object),
      shaped: {
        get: { path: '/shaped', response_path: '$.items.{"id": id, "all": all}' },
        list: {
          path: '/computed',
          response_path: '$sort(items, function($one, $other) { $one.id < $other.id })',
          pagination: null,
        },
      },
    },
    actions: {
      mirror: { steps: [{ type: 'request', config: { method: 'POST', path: '/mirror', body: '{{args}}' } }] },
    },
  }
}

const { accountId, environmentIntegrationId } = await connectAccount(app, tenant, definition())

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

const RECORD = `{"id":12345678901234567890,"all":${NUMBERS_JSON}}`
const JSON_TYPE = { 'content-type': 'application/json' }

/** One request as text, and its answer as text. */
async function send(method: string, path: string, body?: string, token = tenant.environmentToken): Promise<string> {
  const response = await fetch(`${app.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : JSON_TYPE) },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  expect(response.status, text).toBe(200)
  return text
}

const through = (path: string) => `${path}${path.includes('?') ? '&' : '?'}integrated_account_id=${accountId}`
const connect = (rpc: string, body: string) => send('POST', `/patchbay.v1.${rpc}`, body)
const answers = (request: string, text: string) => upstream.script({ request, answer: { headers: JSON_TYPE, text } })

describe('numbers through a call, equal as text', () => {
  it('of an answer, over REST, with and without the body as it came', async () => {
    answers('GET /contacts/7', RECORD)
    expect(await send('GET', through('/proxy/contacts/7?include_raw=true'))).toBe(
      `{"result":${RECORD},"raw":${RECORD}}`,
    )
  })

  it('of a list, and of the records behind it', async () => {
    answers('GET /contacts?page=1&limit=2', `{"data":[${RECORD},${RECORD}]}`)
    expect(await send('GET', through('/proxy/contacts'))).toContain(`"result":[${RECORD},${RECORD}]`)
  })

  it('of an answer, over Connect', async () => {
    answers('GET /contacts/7', RECORD)
    const asked = `{"integrated_account_id":"${accountId}","resource":"contacts","method":"get","id":"7"}`
    expect(await connect('ProxyService/Call', asked)).toContain(`"result":${RECORD}`)
  })

  it('of a body, on the way to the third party', async () => {
    answers('POST /contacts', '{}')
    await send('POST', through('/proxy/contacts'), RECORD)
    expect(upstream.requests[0]?.body).toBe(RECORD)
  })

  it('of a body and a query, over Connect', async () => {
    answers('POST /contacts?n=12345678901234567891&e=1E5&z=1.10', '{}')
    const fields = `"body":${RECORD},"query":{"n":12345678901234567891,"e":1E5,"z":1.10}`
    const asked = `{"integrated_account_id":"${accountId}","resource":"contacts","method":"create",${fields}}`
    await connect('ProxyService/Call', asked)
    expect(upstream.requests[0]?.body).toBe(RECORD)
  })

  it('of a dry run: the body that would be sent, and a sample answer', async () => {
    const shown = await send('POST', through('/proxy/contacts?dry_run=true'), RECORD)
    expect(JSON.parse(shown).dry_run.body).toBe(RECORD)
    const fields = `"dry_run":true,"sample":{"body":${RECORD}}`
    const asked = `{"integrated_account_id":"${accountId}","resource":"contacts","method":"get","id":"7",${fields}}`
    expect(await connect('ProxyService/Call', asked)).toContain(`"result":${RECORD}`)
  })

  it('of the arguments of an action and of its answer', async () => {
    answers('POST /mirror', RECORD)
    expect(await send('POST', through('/proxy/_/mirror'), RECORD)).toContain(RECORD)
  })

  it('of an error body', async () => {
    upstream.script({ request: 'GET /contacts/7', answer: { status: 404, headers: JSON_TYPE, text: RECORD } })
    const response = await fetch(`${app.url}${through('/proxy/contacts/7?include_raw=true')}`, {
      headers: { authorization: `Bearer ${tenant.environmentToken}` },
    })
    expect(await response.text()).toContain(`"raw":${RECORD}`)
  })

  it('of a response path that takes apart and puts together', async () => {
    answers('GET /shaped', `{"items":[${RECORD},${RECORD}]}`)
    expect(await send('GET', through('/proxy/shaped/_'))).toBe(`{"result":[${RECORD},${RECORD}]}`)
  })

  it('of a response path that JSONata itself evaluates', async () => {
    answers('GET /computed', '{"items":[{"id":12345678901234567890},{"id":1.10}]}')
    expect(await send('GET', through('/proxy/shaped'))).toContain('"result":[{"id":12345678901234567890},{"id":1.10}]')
  })
})

async function drain<Message>(stream: AsyncIterable<Message>): Promise<readonly Message[]> {
  const messages: Message[] = []
  for await (const message of stream) messages.push(message)
  return messages
}

describe('numbers of a list that is walked', () => {
  const asked = { integratedAccountId: accountId, resource: 'contacts', method: 'list' }
  const headers = { authorization: `Bearer ${tenant.environmentToken}` }
  const transports = [
    { wire: 'grpc', transport: createGrpcTransport({ baseUrl: app.url }) },
    { wire: 'connect', transport: createConnectTransport({ baseUrl: app.url, httpVersion: '1.1' }) },
  ] as const

  it.each(transports)('are equal as text over $wire, when it is asked for as text', async ({ transport }) => {
    answers('GET /contacts?n=1E5&page=1&limit=2', `{"data":[${RECORD},${RECORD}]}`)
    answers('GET /contacts?n=1E5&page=2&limit=2', `{"data":[]}`)
    const { listPages } = createClient(ProxyService, transport)
    const text = { asJsonText: true, valuesJson: '{"query":{"n":1E5}}' }
    const steps = await drain(listPages({ ...asked, ...text }, { headers }))
    const [first] = steps.map(({ step }) => (step.case === 'page' ? step.value : undefined))
    expect(first?.recordsJson).toBe(`[${RECORD},${RECORD}]`)
    expect(first?.records).toEqual([])
    expect(first?.state).toBeUndefined()
    expect(first?.stateJson).toMatch(/^\{"sealed":"/)
  })

  it('are the nearest doubles in a google.protobuf.Value over gRPC', async () => {
    answers('GET /contacts?page=1&limit=2', `{"data":[${NUMBERS_JSON}]}`)
    answers('GET /contacts?page=2&limit=2', '{"data":[]}')
    const { listPages } = createClient(ProxyService, transports[0].transport)
    const [{ step } = { step: { case: undefined } }] = await drain(listPages(asked, { headers }))
    const records = step.case === 'page' ? step.value.records.map((record) => toJson(ValueSchema, record)) : []
    const nearest = NUMBER_TEXTS.map((text) => Math.min(Number(text), Number.MAX_VALUE))
    expect(records).toEqual([nearest])
  })

  it.each([
    ['{', 'values_json'],
    ['[1]', 'values_json'],
    ['{"args":1}', 'values_json.args'],
    ['{"arg":{}}', 'values_json.arg'],
    ['{"args":{"a":"\\u0000"}}', 'values_json.args.a'],
  ])('rejects %s as values', async (valuesJson, field) => {
    const body = JSON.stringify({ ...asked, valuesJson })
    const framed = Buffer.concat([Buffer.alloc(5), Buffer.from(body)])
    framed.writeUInt32BE(Buffer.byteLength(body), 1)
    const response = await fetch(`${app.url}/patchbay.v1.ProxyService/ListPages`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/connect+json' },
      body: framed,
    })
    const text = await response.text()
    expect(text).toContain('INVALID_FIELD')
    expect(text).toContain(`"field":"${field}"`)
  })
})

describe('numbers that are stored', () => {
  it('of an account’s context are as jsonb writes them', async () => {
    const path = `/integrated-account/${accountId}`
    expect(await send('PATCH', path, `{"context":{"x":${NUMBERS_JSON}}}`)).toContain(`"context":{"x":${NUMBERS_JSONB}}`)
    expect(await send('GET', path)).toContain(`"context":{"x":${NUMBERS_JSONB}}`)
  })

  it('of an override are as they were written, where it is in force, and in the requests it makes', async () => {
    const path = `/environment-integration/${environmentIntegrationId}`
    const method = `{"method":"POST","path":"/contacts","body":${RECORD},"query":{"n":12345678901234567891}}`
    const override = `{"resources":{"contacts":{"create":${method}}},"pagination":{"config":{"limit":5.0}}}`
    expect(await send('PATCH', path, `{"override":${override}}`)).toContain(RECORD)
    expect(await send('GET', `${path}/resolve`)).toContain(RECORD)
    answers('POST /contacts?n=12345678901234567891', '{}')
    await send('POST', through('/proxy/contacts'), '{}')
    expect(upstream.requests[0]?.body).toBe(RECORD)
    answers('GET /contacts?page=1&limit=5', '{"data":[]}')
    await send('GET', through('/proxy/contacts'))
  })

  it('rejects an exponent that jsonb would write out over pages', async () => {
    const response = await fetch(`${app.url}/integrated-account/${accountId}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${tenant.environmentToken}`, ...JSON_TYPE },
      body: '{"context":{"x":1e100000}}',
    })
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('must be a number with an exponent from -400 to 400')
  })
})

describe('an answer that is nested too deep', () => {
  it('is rejected, and not asked for again', async () => {
    answers('GET /contacts/7', `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`)
    const response = await fetch(`${app.url}${through('/proxy/contacts/7')}`, {
      headers: { authorization: `Bearer ${tenant.environmentToken}` },
    })
    expect(response.status).toBe(502)
    const { error } = JSON.parse(await response.text())
    expect(error.details[0].reason).toBe('UPSTREAM_INVALID_RESPONSE')
    expect(error.message).toContain('is nested deeper than 256 levels')
    expect(upstream.requests).toHaveLength(1)
  })
})
