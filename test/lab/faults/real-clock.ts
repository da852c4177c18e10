/**
 * Each kind of credential, step of an account's life, wait and time-out once on the real clock, over real sockets, with the product
 * as its own process; about half a minute. Tests move a clock of their own, which stands still while something is computed.
 */

import { generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { JsonObject } from '../../../src/foundation/json/index.ts'
import { removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { callRest } from '../../support/rest.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'

const DEADLINE_MS = 15_000
const POLL_MS = 50

/** A third party: tokens end after the seconds that their request names, and a call says whether its token is a live one. */
const issued = new Map<string, number>()
let limited = 0
const api = createServer((request, response) => void answer(request, response))
await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve))
const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request)
  const { pathname, searchParams } = new URL(request.url ?? '', url)
  const send = (status: number, json: object, headers = {}) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(json))
  if (pathname === '/token' || pathname === '/login') {
    const seconds = Number(searchParams.get('seconds') ?? 3_600)
    const token = `token-${issued.size}-${Math.random().toString(36).slice(2)}`
    issued.set(token, Date.now() + seconds * 1_000)
    return void send(200, { access_token: token, refresh_token: 'next', expires_in: seconds, asked: body.length })
  }
  if (pathname === '/hang') return
  if (pathname === '/limited')
    return void (limited++ === 0 ? send(503, {}, { 'retry-after': '1' }) : send(200, { id: 1 }))
  if (pathname === '/organisations') return void send(200, [{ id: 'a' }, { id: 'b' }])
  const token = (request.headers.authorization ?? '').replace('Bearer ', '')
  const isLive = token.startsWith('key') || (issued.get(token) ?? 0) > Date.now()
  send(isLive ? 200 : 401, isLive ? { id: 1 } : { message: 'the token has ended' })
}

const KEY = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString()
const AUTH = { tokenHost: url, tokenPath: '/token', authorizePath: '/authorize' }
const SHORT = { ...AUTH, tokenPath: '/token?seconds=2' }
const CLIENT = { id: 'app', secret: 'secret' }
const verification = { method: 'GET', path: '/me' }
const REFRESH_ACTION = { refresh_token: { steps: [{ type: 'request', config: { method: 'POST', path: '/login' } }] } }
const keyFields = [{ name: 'api_key', type: 'password', required: true }]

/** A definition, what its account is made of, and what is asked of it. */
interface Row {
  readonly credentials: JsonObject
  readonly given: JsonObject
  readonly actions?: JsonObject
  /** Lets the token end, by the real clock, before the second call. */
  readonly waitMs?: number
}

const ROWS: Readonly<Record<string, Row>> = {
  api_key: {
    credentials: { format: 'api_key', config: { fields: keyFields, verification } },
    given: { api_key: 'key' },
  },
  'oauth2, imported and expired': {
    credentials: { format: 'oauth2', config: { client: CLIENT, auth: AUTH } },
    given: { access_token: 'old', refresh_token: 'first', expires_in: 0 },
  },
  'oauth2, expires while it is used': {
    credentials: { format: 'oauth2', config: { client: CLIENT, auth: SHORT } },
    given: { access_token: 'old', refresh_token: 'first', expires_in: 0 },
    waitMs: 2_500,
  },
  'oauth2, rejected with 401': {
    credentials: { format: 'oauth2', config: { client: CLIENT, auth: AUTH } },
    given: { access_token: 'unknown', refresh_token: 'first', expires_in: 3_600 },
  },
  oauth2_client_credentials: {
    credentials: { format: 'oauth2_client_credentials', config: { auth: SHORT, verification } },
    given: { client_id: 'a', client_secret: 'b' },
    waitMs: 2_500,
  },
  vendor_oauth: {
    credentials: {
      format: 'vendor_oauth',
      config: {
        fields: keyFields,
        token_request: { method: 'POST', path: '/login', query: { seconds: '2' } },
        token_expression: 'body.access_token',
        expires_in_expression: 'body.expires_in',
      },
    },
    given: { api_key: 'key' },
    waitMs: 2_500,
  },
  jwt: {
    credentials: {
      format: 'jwt',
      config: {
        fields: [{ name: 'private_key', type: 'textarea', is_secret: true, required: true, format: 'private_key' }],
        algorithm: 'RS256',
        key: '{{private_key}}',
        claims: { iss: 'a' },
        exchange: {
          request: {
            method: 'POST',
            path: '/token',
            query: { seconds: '2' },
            body: { assertion: '{{args.assertion}}' },
          },
          token_expression: 'body.access_token',
          expires_in_expression: 'body.expires_in',
        },
      },
    },
    given: { private_key: KEY },
    waitMs: 2_500,
  },
  'the action refresh_token, after 401': {
    credentials: { format: 'oauth2', config: { client: CLIENT, auth: AUTH } },
    given: { access_token: 'unknown', refresh_token: 'first', expires_in: 3_600 },
    actions: REFRESH_ACTION,
  },
  'the action refresh_token, at the activation': {
    credentials: { format: 'oauth2', config: { client: CLIENT, auth: AUTH, verification } },
    given: { access_token: 'old', refresh_token: 'first', expires_in: 0 },
    actions: REFRESH_ACTION,
  },
  'post_install and validation': {
    credentials: { format: 'api_key', config: { fields: keyFields } },
    given: { api_key: 'key' },
    actions: {
      post_install: { steps: [{ type: 'request', config: { path: '/me' } }, { type: 'update_context' }] },
      validation: { type: 'request', config: { path: '/me' } },
    },
  },
}

const dataDir = temporaryDataDir()
const product = await startProduct({
  dataDir,
  environment: { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8', PATCHBAY_RATE_LIMIT: '0' },
})
const failures: string[] = []
let checks = 0

async function send(verb: string, path: string, body?: JsonObject, token = product.bootstrap.environment_token) {
  return await callRest(verb, product.url + path, token, body)
}

/** Installs a definition and connects an account. @returns its id */
async function connect(name: string, { credentials, given, actions }: Row, more: JsonObject = {}): Promise<string> {
  const config = {
    base_url: url,
    credentials,
    authorization: { format: 'bearer', config: { token: '{{oauth.token.access_token|api_key}}' } },
    retry: { max_attempts: 3 },
    resources: {
      items: { get: { path: '/items/{{id}}' } },
      limited: { get: { path: '/limited' } },
      hanging: { get: { path: '/hang', timeout: 1, retry: { max_attempts: 1 } } },
      organisations: { list: { path: '/organisations' } },
    },
    ...(actions === undefined ? {} : { actions }),
    ...more,
  }
  const integration = { name: name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-'), config }
  const made = await send('POST', '/integration', integration, product.bootstrap.team_token)
  const installed = await send('POST', '/environment-integration', { integration_id: String(made.body.id) })
  const account = await send('POST', '/integrated-account', {
    environment_integration_id: String(installed.body.id),
    tenant_id: 'acme',
    credentials: given,
  })
  if (account.status !== 200) throw new Error(`${name}: ${JSON.stringify([made.body, installed.body, account.body])}`)
  return String(account.body.id)
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`${what} within ${DEADLINE_MS} ms`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

const statusOf = async (id: string) => String((await send('GET', `/integrated-account/${id}`)).body.status)
const untilActive = (id: string) => until('active', async () => (await statusOf(id)) === 'active')

async function check(name: string, run: () => Promise<unknown>): Promise<void> {
  checks += 1
  await run().catch((error) => failures.push(`${name}: ${error instanceof Error ? error.message : error}`))
}

/** A call must be answered 200 within the bounds, in milliseconds. */
async function mustCall(
  id: string,
  resource = 'items',
  { from = 0, to = DEADLINE_MS, status = 200 } = {},
): Promise<void> {
  const startedAt = Date.now()
  const answered = await send('GET', `/proxy/${resource}/1?integrated_account_id=${id}`)
  const tookMs = Date.now() - startedAt
  if (answered.status !== status || tookMs < from || tookMs > to)
    throw new Error(`${resource} was answered ${answered.status} after ${tookMs} ms: ${JSON.stringify(answered.body)}`)
}

await Promise.all(
  Object.entries(ROWS).map(([name, row]) =>
    check(name, async () => {
      const id = await connect(name, row)
      await untilActive(id)
      await mustCall(id)
      if (row.waitMs !== undefined) await new Promise((resolve) => setTimeout(resolve, row.waitMs))
      await mustCall(id)
    }),
  ),
)

const KEYED: Row = { credentials: { format: 'api_key', config: { fields: keyFields } }, given: { api_key: 'key' } }
const keyed = await connect('waits', KEYED)
await untilActive(keyed)
await check('a wait that the third party asks for', () => mustCall(keyed, 'limited', { from: 900, to: 6_000 }))
await check('a time-out', () => mustCall(keyed, 'hanging', { from: 900, to: 6_000, status: 504 }))
await check('a call after it', () => mustCall(keyed))
await check('a choice before the account is active', async () => {
  const field = {
    name: 'organisation',
    type: 'single_select',
    required: true,
    options: [{ value: 'a' }, { value: 'b' }],
  }
  const form = { type: 'form', config: { before_active: true, fields: [field] } }
  const id = await connect('choice', { ...KEYED, actions: { post_connect_user_form: form } })
  await until('waits', async () =>
    String((await send('GET', `/integrated-account/${id}`)).body.last_error).startsWith('waits for'),
  )
  await send('PATCH', `/integrated-account/${id}`, { context: { organisation: 'b' } })
  await untilActive(id)
})
await check('a tick each second, and its run', async () => {
  const job = await send('POST', '/sync-job', {
    label: 'Organisations',
    integration_name: 'waits',
    resources: [{ resource: 'organisations', method: 'list' }],
  })
  const hook = await send('POST', '/webhook', { target_url: `${url}/me`, event_types: ['sync_job_run:*'] })
  const made = await send('POST', '/sync-job-cron-trigger', {
    sync_job_id: String(job.body.id),
    integrated_account_id: keyed,
    cron_expression: '* * * * * *',
    webhook_id: String(hook.body.id),
  })
  await until(`a run of ${JSON.stringify([job.body.error, hook.body.error, made.body.error])}`, async () => {
    const { body } = await send('GET', `/sync-job-run?trigger_id=${made.body.id}`)
    return (
      (body.sync_job_runs as unknown as JsonObject[] | undefined)?.some(({ status }) => status !== 'created') === true
    )
  })
})

await product.stop()
removeDataDir(dataDir)
api.closeAllConnections()
api.close()
for (const line of failures) process.stderr.write(`${line}\n`)
reportAtLeast('real-clock/checks', checks, 'checks', 15)
reportAtMost('real-clock/failed', failures.length, 'checks', 0)
