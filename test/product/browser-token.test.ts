import { describe, expect, it } from 'vitest'
import { ApiTokenService } from '../../gen/patchbay/v1/api_token_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { systemClock } from '../../src/foundation/base/index.ts'
import { execute, query } from '../../src/foundation/database/index.ts'
import { browserTokenCleaner } from '../../src/server/worker/maintenance.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { callRest } from '../support/rest.ts'
import { firstTenant, seedTenant } from '../support/seeded-tenant.ts'

const app = await startTestApp()
const tenant = await seedTenant(app, firstTenant(app))
const other = await seedTenant(app, firstTenant(app))
const clients = app.clients({ token: tenant.environmentToken })
const { issueBrowserToken: issue } = IntegratedAccountService.method
const { createApiToken, listApiTokens } = ApiTokenService.method
const team = app.client('connect', { token: tenant.teamToken })
const id = tenant.integratedAccountId

const dryRun = (token: string, accountId: string, path = '/proxy/repos') =>
  callRest('GET', `${app.url}${path}?integrated_account_id=${accountId}&dry_run=true`, token)

describe.each(inTurn(clients))('a token for a page in a browser over $wire', (client) => {
  it('calls through its account, no other, and does nothing else', async () => {
    const { token, scopes, expires_at } = await client.ok(issue, { id })
    expect(scopes).toEqual(['proxy:read'])
    const minutes = (Date.parse(String(expires_at)) - Date.now()) / 60_000
    expect(Math.round(minutes)).toBe(15)
    expect((await dryRun(String(token), id)).status).toBe(200)
    expect((await dryRun(String(token), other.integratedAccountId)).status).toBe(404)
    expect((await callRest('GET', `${app.url}/integrated-account/${id}`, String(token))).status).toBe(403)
    const write = await callRest('POST', `${app.url}/proxy/issues?integrated_account_id=${id}`, String(token), {})
    expect(write).toMatchObject({ status: 403, body: { error: { message: expect.stringContaining('proxy:write') } } })
  })

  it('is in no list of tokens', async () => {
    await client.ok(issue, { id })
    const { api_tokens } = await team.ok(listApiTokens, { page_size: 1000 })
    expect(JSON.stringify(api_tokens)).not.toContain('browser')
  })

  it.each([{ lifetime_seconds: 59 }, { lifetime_seconds: 901 }, { id: 'x' }])('takes no %o', async (fields) => {
    expect(await client.callError(issue, { id, ...fields })).toMatchObject({ reason: 'INVALID_FIELD' })
  })
})

it('grants no more than the token that issues it', async () => {
  const request = { kind: 'environment', environment_id: tenant.environmentId, name: 'reader', scopes: ['proxy:read'] }
  const { token } = await team.ok(createApiToken, request)
  const client = app.client('connect', { token: String(token) })
  await client.ok(issue, { id })
  expect(await client.callError(issue, { id, allow_writes: true })).toMatchObject({ reason: 'SCOPE_REQUIRED' })
  const limits = { integrated_account_id: other.integratedAccountId }
  const limited = await team.ok(createApiToken, { ...request, limits })
  const outcome = await client.callError(issue, { id }, { token: String(limited.token) })
  expect(outcome).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
})

it('is deleted an hour after it expired, and no other token with it', async () => {
  const { pool } = app.database
  await app.client('connect', { token: tenant.environmentToken }).ok(issue, { id })
  const names = async () => (await query(pool, 'select name from api_token where is_browser', {})).length
  const before = await query(pool, 'select id from api_token where not is_browser', {})
  await browserTokenCleaner(app.database, systemClock).runOnce()
  expect(await names()).toBeGreaterThan(0)
  await execute(pool, `update api_token set expires_at = now() - interval '2 hours'`, {})
  await browserTokenCleaner(app.database, systemClock).runOnce()
  expect(await names()).toBe(0)
  expect(await query(pool, 'select id from api_token where not is_browser', {})).toEqual(before)
})
