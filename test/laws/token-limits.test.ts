import { type DescMethod, getOption } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { scope as scopeOption } from '../../gen/patchbay/v1/access_pb.ts'
import { ApiTokenService } from '../../gen/patchbay/v1/api_token_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { SERVICES } from '../support/operations.ts'
import { callRest } from '../support/rest.ts'
import { firstTenant, seedTenant, type Tenant } from '../support/seeded-tenant.ts'
import {
  acceptableRequest,
  addHeldRun,
  addHistory,
  compareForeign,
  idLocations,
  sendAs,
  type TenancyFixture,
} from '../support/tenancy-matrix.ts'

/** Two customers of one environment, each with an account of an integration of its own. */
const app = await startTestApp()
const first = firstTenant(app)
const team = app.client('connect', { token: first.teamToken })
const own = await worldOf(first, 'acme')
const other = await worldOf(first, 'globex')
const { name: integrationName } = await team.ok(IntegrationService.method.getIntegration, { id: own.integrationId })

async function worldOf(of: Tenant, tenantId: string): Promise<TenancyFixture> {
  const client = app.client('connect', { token: of.environmentToken })
  const made = await addHeldRun(client, await seedTenant(app, of))
  await client.ok(IntegratedAccountService.method.updateIntegratedAccount, {
    id: made.integratedAccountId,
    tenant_id: tenantId,
  })
  return { ...made, ...(await addHistory(app.database, made)) }
}

const SCOPES = [
  'accounts:write',
  'catalog:read',
  'links:write',
  'proxy:read',
  'proxy:write',
  'runs:write',
  'triggers:write',
]
const AREAS = new Set(SCOPES.map((scope) => scope.split(':')[0]))
const isLimited = (method: DescMethod) => AREAS.has(getOption(method, scopeOption).split(':')[0])
/** Deletions would take what the other cases need; the cases of ids cover them. */
const METHODS = SERVICES.flatMap(({ methods }) => methods).filter(
  (method) => isLimited(method) && !method.name.startsWith('Delete'),
)
/** Looks up its mapping first, of which the fixture has none; the account then as each direct call does. */
const OTHERS_FIRST = ['TryUnifiedMapping']
/** What is kept by the limits: an account and what belongs to it. */
const KEPT: readonly string[] = ['integratedAccountId', 'syncJobCronTriggerId', 'syncJobRunId', 'heldRunId']

async function tokenWith(limits: JsonObject): Promise<string> {
  const request = { kind: 'environment', environment_id: first.environmentId, name: 'limited', scopes: SCOPES, limits }
  return String((await team.ok(ApiTokenService.method.createApiToken, request)).token)
}

const LIMITS: readonly (readonly [string, JsonObject])[] = [
  ['a tenant', { tenant_ids: ['acme'] }],
  ['an integration', { integrations: [String(integrationName)] }],
  ['an account', { integrated_account_id: own.integratedAccountId }],
]

describe.each(LIMITS)('a token that is limited to %s', (_what, limits) => {
  const headers = async () => ({ authorization: `Bearer ${await token}` })
  const token = tokenWith(limits)
  const places = idLocations().filter(
    ({ method, key }) => isLimited(method) && KEPT.includes(key) && !OTHERS_FIRST.includes(method.name),
  )

  it.each(places)('knows no other: $name', async (place) => {
    const ask = sendAs(app.client('rest'), app.url, await headers())
    expect(await compareForeign(ask, place, own, other)).toBeUndefined()
  })

  it.each(METHODS.map((method) => [method.name, method] as const))(
    'shows nothing of another: %s',
    async (_name, method) => {
      const answer = await sendAs(app.client('rest'), app.url, await headers())(method, acceptableRequest(method, own))
      for (const key of KEPT) expect(answer).not.toContain(other[key as keyof TenancyFixture])
      expect(answer).not.toContain('globex')
    },
  )

  it.each(METHODS.map((method) => [method.name, method] as const))(
    'is asked for the limit, or calls as one without: %s',
    async (_name, method) => {
      const ask = sendAs(app.client('rest'), app.url, await headers())
      expect(await ask(method, acceptableRequest(method, own))).not.toMatch(/SCOPE_REQUIRED|RESOURCE_NOT_FOUND/)
    },
  )

  it.each([
    ['GET', '/proxy/repos'],
    ['POST', '/proxy/issues'],
    ['GET', '/custom/repos'],
    ['GET', '/proxy/repos', '&dry_run=true'],
    ['GET', '/custom/repos', '&dry_run=true'],
  ])('calls through no other: %s %s%s', async (verb, path, also = '') => {
    const url = `${app.url}${path}?integrated_account_id=${other.integratedAccountId}${also}`
    const { status, body } = await callRest(verb, url, await token, verb === 'POST' ? {} : undefined)
    expect({ status, body }).toMatchObject({
      status: 404,
      body: { error: { message: expect.stringMatching(/^no integrated_account/) } },
    })
  })
})

describe('a list of a token with limits', () => {
  const list = async (query: string, limits: JsonObject) =>
    await callRest('GET', `${app.url}${query}`, await tokenWith(limits))

  it.each([
    ['/integrated-account', { tenant_ids: ['acme'] }, 'tenant_id'],
    ['/integrated-account', { integrations: ['crm'] }, 'integration_name'],
    ['/sync-job-run', { tenant_ids: ['acme'] }, 'integrated_account_id'],
    ['/sync-job-cron-trigger', { integrations: ['crm'] }, 'integrated_account_id'],
    ['/link-token', { tenant_ids: ['acme'] }, 'tenant_id'],
  ])('of %s with %o has to name %s', async (path, limits, field) => {
    const { status, body } = await list(path, limits)
    expect({ status, body }).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining(field) } },
    })
  })

  it('is of the accounts of its tenant', async () => {
    const { body } = await list('/integrated-account?tenant_id=acme', { tenant_ids: ['acme', 'initech'] })
    expect(body.integrated_accounts.map(({ id }: JsonObject) => id)).toEqual([own.integratedAccountId])
    expect((await list('/integrated-account?tenant_id=globex', { tenant_ids: ['acme'] })).status).toBe(400)
  })
})

describe('a change by a token with limits', () => {
  it('gives its account to no other tenant', async () => {
    const url = `${app.url}/integrated-account/${own.integratedAccountId}`
    const { status } = await callRest('PATCH', url, await tokenWith({ tenant_ids: ['acme'] }), { tenant_id: 'globex' })
    expect(status).toBe(400)
  })

  it('connects accounts of its tenant and integration alone', async () => {
    const token = await tokenWith({ tenant_ids: ['acme'], integrations: [String(integrationName)] })
    const create = (environment_integration_id: string, tenant_id: string) =>
      callRest('POST', `${app.url}/integrated-account`, token, {
        environment_integration_id,
        tenant_id,
        credentials: { api_key: 'k-1' },
      })
    expect((await create(own.environmentIntegrationId, 'globex')).status).toBe(400)
    expect((await create(other.environmentIntegrationId, 'acme')).status).toBe(404)
    expect((await create(own.environmentIntegrationId, 'acme')).status).toBe(200)
    const link = (fields: JsonObject) =>
      callRest('POST', `${app.url}/link-token`, token, { tenant_id: 'acme', ...fields })
    expect((await link({})).status).toBe(400)
    expect((await link({ integrations: [String(integrationName), 'example'] })).status).toBe(400)
    expect((await link({ integrations: [String(integrationName)] })).status).toBe(200)
  })
})

it('the account of a limited token has to be in its environment', async () => {
  const request = { kind: 'environment', environment_id: first.environmentId, name: 'x', preset: 'connect' }
  const limits = { integrated_account_id: newId() }
  expect(await team.callError(ApiTokenService.method.createApiToken, { ...request, limits })).toMatchObject({
    reason: 'RESOURCE_NOT_FOUND',
    resource: { type: 'integrated_account' },
  })
})

it.each([
  ['of a team', { kind: 'team', preset: 'connect', limits: { tenant_ids: ['acme'] } }],
  ['without a limit', { kind: 'environment', preset: 'connect', limits: {} }],
  ['with scopes that know no limits', { kind: 'environment', preset: 'read', limits: { tenant_ids: ['acme'] } }],
  ['with all scopes', { kind: 'environment', preset: 'full', limits: { tenant_ids: ['acme'] } }],
])('limits of a token %s are rejected', async (_what, { kind, ...choice }) => {
  const environment = kind === 'environment' ? { environment_id: first.environmentId } : {}
  const request = { kind, name: 'x', ...environment, ...choice }
  expect(await team.callError(ApiTokenService.method.createApiToken, request)).toMatchObject({
    reason: 'INVALID_FIELD',
  })
})
