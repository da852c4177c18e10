import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { ApiTokenService } from '../../gen/patchbay/v1/api_token_service_pb.ts'
import { EnvironmentService } from '../../gen/patchbay/v1/environment_service_pb.ts'
import { EventService } from '../../gen/patchbay/v1/event_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { query } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { accountSecretRef, tokenSecret } from '../../src/platform/accounts/stored-credentials.ts'
import { startTestApp } from '../support/app.ts'
import { caseCount } from '../support/case-count.ts'
import { EVENTUALLY } from '../support/eventually.ts'
import { createApiTenant, firstTenant } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { callDefinition, connectAccount, LOCAL_UPSTREAM } from './calls.ts'

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
app.startWorker()
const tenant = firstTenant(app)
const team = app.client('connect', { token: tenant.teamToken })
const client = app.client('connect')
const { issueAccessToken: issue, getIntegratedAccount } = IntegratedAccountService.method
const { updateEnvironment } = EnvironmentService.method

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

const allow = (isAllowed: boolean) =>
  team.ok(updateEnvironment, { id: tenant.environmentId, allow_access_tokens: isAllowed })
await allow(true)

/** An active account. */
async function account(definition: JsonObject, fields: JsonObject = {}): Promise<string> {
  const { accountId } = await connectAccount(app, tenant, definition, fields)
  await vi.waitFor(
    async () => expect(await client.ok(getIntegratedAccount, { id: accountId })).toMatchObject({ status: 'active' }),
    EVENTUALLY,
  )
  return accountId
}

/** Stores a token of 200 seconds of which 150 have passed. */
async function storeAged(id: string, accessToken: string): Promise<void> {
  const fields = { access_token: accessToken }
  const [obtainedAt, expiresAt] = [-150, 50].map((seconds) => new Date(Date.now() + seconds * 1_000))
  if (obtainedAt === undefined) throw new Error('no time')
  await app.database.transaction(async (tx) => {
    const sql = 'select version from account_token where integrated_account_id = :id'
    const [row] = await query<{ readonly version: number }>(tx, sql, { id })
    const stored = { version: row?.version ?? 0, obtainedAt, expiresAt, accessToken, refreshToken: undefined, fields }
    await app.secrets.put(tx, accountSecretRef({ id, environmentId: tenant.environmentId }), tokenSecret(stored))
  })
}

const granted = (token: string, expiresIn: number) => ({
  request: 'POST /token',
  answer: {
    json: {
      access_token: token,
      refresh_token: 'refresh-canary',
      token_type: 'Bearer',
      expires_in: expiresIn,
      scope: 'read write',
    },
  },
})
const CLIENT = { credentials: { client_id: 'app', client_secret: 'client-secret-canary' } }
const oauth = () => ({
  base_url: `${upstream.url}/v2`,
  authorization: { format: 'bearer' },
  credentials: {
    format: 'oauth2_client_credentials',
    config: { auth: { tokenHost: upstream.url, tokenPath: '/token' } },
  },
  resources: {},
})
const withAuthorization = (authorization: JsonObject) => ({ ...callDefinition(upstream.url), authorization })

const keyAccount = await account(callDefinition(upstream.url))
upstream.script(granted('access-canary-0', 3600))
const tokenAccount = await account(oauth(), CLIENT)

describe.each(app.clients())('a token of a third party over $wire', (wire) => {
  it('is issued with type, end, scopes and base URL, and nothing that renews it', async () => {
    const outcome = await wire.send(issue, { id: tokenAccount })
    expect(outcome).toMatchObject({
      ok: true,
      json: {
        token: 'access-canary-0',
        token_type: 'Bearer',
        scopes: ['read', 'write'],
        base_url: `${upstream.url}/v2`,
        expires_at: expect.any(String),
      },
    })
    expect(JSON.stringify(outcome)).not.toMatch(/refresh-canary|client-secret-canary/)
    expect(outcome.headers.get('cache-control')).toBe('no-store')
  })

  it('is the key that the customer entered, where that is all there is', async () => {
    const issued = await wire.ok(issue, { id: keyAccount })
    expect(issued).toMatchObject({ token: 'k-123', token_type: 'api_key', scopes: [], base_url: upstream.url })
  })

  it('is no more than its event says, which is there before the answer', async () => {
    const { listEvents } = EventService.method
    const events = async () =>
      (await client.ok(listEvents, { subject_id: keyAccount, types: ['integrated_account:token_issued'] }))
        .events as JsonObject[]
    const before = (await events()).length
    await wire.ok(issue, { id: keyAccount })
    const after = await events()
    expect(after.length).toBe(before + 1)
    expect(JSON.stringify(after)).not.toContain('k-123')
  })

  it('is not issued in an environment that does not allow it, where only a team token changes that', async () => {
    await allow(false)
    try {
      expect((await wire.callError(issue, { id: keyAccount })).reason).toBe('ACCESS_TOKENS_DISABLED')
      const change = { id: tenant.environmentId, allow_access_tokens: true }
      expect((await wire.callError(updateEnvironment, change)).reason).toBe('TEAM_TOKEN_REQUIRED')
    } finally {
      await allow(true)
    }
  })
})

it.each(['read', 'proxy', 'operator'])('is not issued to a token of the preset %s', async (preset) => {
  const request = { kind: 'environment', environment_id: tenant.environmentId, name: preset, preset }
  const { token } = await team.ok(ApiTokenService.method.createApiToken, request)
  const error = await client.callError(issue, { id: keyAccount }, { token: String(token) })
  expect(error).toMatchObject({ reason: 'SCOPE_REQUIRED', metadata: { scope: 'credentials:read' } })
})

it('is issued within the limits of a token alone, and in its own environment', async () => {
  const { token } = await team.ok(ApiTokenService.method.createApiToken, {
    kind: 'environment',
    environment_id: tenant.environmentId,
    name: 'one account',
    scopes: ['credentials:read'],
    limits: { integrated_account_id: keyAccount },
  })
  const limited = { token: String(token) }
  expect((await client.ok(issue, { id: keyAccount }, limited)).token).toBe('k-123')
  expect((await client.callError(issue, { id: tokenAccount }, limited)).reason).toBe('RESOURCE_NOT_FOUND')
  const other = { token: (await createApiTenant(app)).environmentToken }
  expect((await client.callError(issue, { id: keyAccount }, other)).reason).toBe('RESOURCE_NOT_FOUND')
})

describe('no token is issued', () => {
  const secrets = [
    { name: 'api_key', label: 'Key', type: 'password' },
    { name: 'api_secret', label: 'Secret', type: 'password' },
  ]
  it.each<[string, JsonObject, JsonObject, string, string]>([
    [
      'where requests are signed',
      withAuthorization({ format: 'jwt', config: { algorithm: 'HS256', key: '{{api_key}}' } }),
      {},
      'METHOD_NOT_DEFINED',
      'signed',
    ],
    [
      'where an expression computes them',
      withAuthorization({ format: 'header', config: { expression: '{"x-key": credentials.api_key}' } }),
      {},
      'METHOD_NOT_DEFINED',
      'signed',
    ],
    [
      'of an account with two secrets',
      { ...callDefinition(upstream.url), credentials: { api_key: { config: { fields: secrets } } } },
      { credentials: { api_key: 'k-123', api_secret: 's-123' } },
      'METHOD_NOT_DEFINED',
      '2 secrets',
    ],
    [
      'of a private key',
      callDefinition(upstream.url),
      { credentials: { api_key: '-----BEGIN PRIVATE KEY-----' } },
      'METHOD_NOT_DEFINED',
      'private key',
    ],
    ['of a sandbox account', callDefinition(upstream.url), { is_sandbox: true }, 'SANDBOX_ACCOUNT_READ_ONLY', 'write'],
  ])('%s', async (_, definition, fields, reason, message) => {
    const error = await client.callError(issue, { id: await account(definition, fields) })
    expect([error.reason, error.message]).toEqual([reason, expect.stringContaining(message)])
  })
})

describe('the lifetime that is asked for', () => {
  it('is had by one refresh, however many ask at the same time', async () => {
    upstream.script(granted('access-canary-1', 200))
    const id = await account(oauth(), CLIENT)
    await storeAged(id, 'access-canary-1')
    upstream.script(granted('access-canary-2', 3600))
    for (let wave = 0; wave < caseCount(1, 20); wave++) {
      const asks = Array.from({ length: 50 }, () => client.ok(issue, { id, min_lifetime_seconds: 100 }))
      const tokens = new Set((await Promise.all(asks)).map(({ token }) => token))
      expect([...tokens]).toEqual(['access-canary-2'])
    }
  })

  it('does not refresh a token that never lives so long each time', async () => {
    upstream.script(granted('access-canary-3', 600))
    const id = await account(oauth(), CLIENT)
    const ask = () => client.ok(issue, { id, min_lifetime_seconds: 3600 })
    expect([(await ask()).token, (await ask()).token]).toEqual(['access-canary-3', 'access-canary-3'])
  })
})

it('leaves no token in tables that are not sealed', async () => {
  const tables = ['event', 'call_log_entry', 'idempotency_key', 'integrated_account']
  for (const table of tables) {
    const rows = await query(app.database.pool, `select * from ${table}`, {})
    expect(JSON.stringify(rows)).not.toMatch(/access-canary|refresh-canary|client-secret-canary|k-123/)
  }
})
