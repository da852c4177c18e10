import { METHODS } from 'node:http'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import { startTestApp } from '../support/app.ts'
import { someCases } from '../support/case-count.ts'
import { firstTenant } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { callDefinition, connectAccount, LOCAL_UPSTREAM } from './calls.ts'

const upstream = await startUpstream()
const app = await startTestApp({ ...LOCAL_UPSTREAM, PATCHBAY_RATE_LIMIT: '0' })
const tenant = firstTenant(app)
const active = await connectAccount(app, tenant, callDefinition(upstream.url))
const sandbox = await connectAccount(app, tenant, callDefinition(upstream.url), { is_sandbox: true })

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

/** Every shape of a path that reaches a third party. */
const PATHS = [
  '/proxy/contacts',
  '/proxy/contacts/7',
  '/proxy/contacts/7/merge',
  '/proxy/contacts/_/whoami',
  '/proxy/_/sign_off',
  '/custom/contacts',
  '/custom/contacts/7?x=1',
  '/custom/',
]
const VERBS = METHODS.filter((verb) => !['CONNECT', 'TRACE'].includes(verb))
const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])
const BODIES: Readonly<Record<string, RequestInit>> = {
  none: {},
  json: { headers: { 'content-type': 'application/json' }, body: '{"name":"Ann"}' },
  bytes: { headers: { 'content-type': 'application/octet-stream' }, body: new Uint8Array(100_000) },
}

async function send(verb: string, path: string, account: string, init: RequestInit = {}, flag = 'dry_run=true') {
  const url = `${app.url}${path}${path.includes('?') ? '&' : '?'}integrated_account_id=${account}&${flag}`
  const headers = { authorization: `Bearer ${tenant.environmentToken}`, ...init.headers }
  const response = await fetch(url, { ...init, method: verb, headers })
  const text = await response.text()
  return { status: response.status, json: text.startsWith('{') ? JSON.parse(text) : undefined }
}

/** The upstream fails a test on any request; one that was tried and refused must say why. */
describe.each(Object.entries(BODIES).map((each, turn) => [...each, turn] as const))(
  'a dry run with a body of kind %s',
  (kind, init, turn) => {
    const verbs = VERBS.filter((verb) => kind === 'none' || WRITES.has(verb))

    it.each(someCases(PATHS, 3, turn))('to %s sends nothing, with any verb, through any account', async (path) => {
      for (const [verb, { accountId }] of verbs.flatMap(
        (verb) =>
          [
            [verb, active],
            [verb, sandbox],
          ] as const,
      )) {
        const { status, json } = await send(verb, path, accountId, init)
        if (status === 200 && verb !== 'HEAD' && verb !== 'OPTIONS') expect(json).toHaveProperty('dry_run.url')
        else expect([200, 204, 400, 404, 405]).toContain(status)
      }
      expect(upstream.requests).toEqual([])
    })
  },
)

describe('a dry run', () => {
  it('of any path shows the request with the credential masked', async () => {
    const { status, json } = await send('DELETE', '/custom/contacts/7?x=1', active.accountId)
    expect(status).toBe(200)
    expect(json.dry_run).toMatchObject({
      method: 'DELETE',
      url: `${upstream.url}/contacts/7?x=1`,
      is_write: true,
      headers: { authorization: 'Bearer ***' },
    })
    expect(json.dry_run).not.toHaveProperty('error')
  })

  it('is one however its name is encoded, and the parameter is not passed on', async () => {
    const { json } = await send('GET', '/custom/contacts', active.accountId, {}, 'dry%5Frun=true')
    expect(json.dry_run.url).toBe(`${upstream.url}/contacts`)
    expect((await send('GET', '/custom/contacts', active.accountId, {}, 'dry_run=yes')).status).toBe(400)
    expect((await send('GET', '/custom/contacts', active.accountId, {}, 'dry_run=true&dry_run=false')).status).toBe(400)
    upstream.script({ request: 'GET /contacts', answer: { json: {} } })
    expect((await send('GET', '/custom/contacts', active.accountId, {}, 'dry_run=false')).status).toBe(200)
  })

  it.each(['/proxy/contacts', '/custom/contacts'])(
    'of a write through a sandbox account tells its error: %s',
    async (path) => {
      const { status, json } = await send('POST', path, sandbox.accountId)
      expect([status, json.dry_run.method, json.dry_run.error.reason]).toEqual([
        200,
        'POST',
        'SANDBOX_ACCOUNT_READ_ONLY',
      ])
    },
  )

  it('of an action is rejected with the reason', async () => {
    const { status, json } = await send('POST', '/proxy/_/sign_off', active.accountId)
    expect([status, json.error.message]).toEqual([400, expect.stringContaining('cannot be tried in a dry run')])
  })

  it.each(app.clients().filter(({ wire }) => wire !== 'rest'))(
    'sends nothing over $wire, named or raw',
    async (client) => {
      for (const target of [
        { resource: 'contacts', method: 'create' },
        { raw_target: { verb: 'DELETE', path: '/contacts/7' } },
      ])
        for (const { accountId } of [active, sandbox]) {
          const request = { integrated_account_id: accountId, ...target, dry_run: true }
          const answer = await client.ok(ProxyService.method.call, request)
          expect(answer).toHaveProperty('dry_run.is_write', true)
        }
      expect(upstream.requests).toEqual([])
    },
  )
})
