import { describe, expect, it } from 'vitest'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { LinkTokenService } from '../../gen/patchbay/v1/link_token_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { statusOver, TIME, UUID } from '../support/matchers.ts'
import { callRest } from '../support/rest.ts'
import { freshName, idOf } from '../support/seeded-tenant.ts'

const {
  createLinkToken: create,
  getLinkToken: get,
  listLinkTokens: list,
  cancelLinkToken: cancel,
} = LinkTokenService.method

const CONFIG: JsonObject = {
  label: 'Example',
  base_url: 'https://api.example.com',
  credentials: {
    api_key: {
      config: {
        fields: [
          { name: 'api_key', type: 'password', required: true },
          { name: 'subdomain', format: 'hostname_label' },
        ],
      },
    },
  },
}

const app = await startTestApp()
const clients = app.clients()
const admin = app.client('connect', { token: app.first.teamToken })
const environment = app.client('connect')
const integrationName = freshName('example')
const integrationId = await idOf(admin, IntegrationService.method.createIntegration, {
  name: integrationName,
  config: CONFIG,
})
const installationId = await idOf(environment, EnvironmentIntegrationService.method.createEnvironmentIntegration, {
  integration_id: integrationId,
  show_in_catalog: true,
})
/** A second integration: its own key of one format, and a consent whose client has no secret yet. */
const twoName = freshName('two')
await idOf(environment, EnvironmentIntegrationService.method.createEnvironmentIntegration, {
  integration_id: await idOf(admin, IntegrationService.method.createIntegration, {
    name: twoName,
    config: {
      ...CONFIG,
      credentials: {
        sandbox: { format: 'api_key', config: {} },
        oauth2: {
          config: {
            client: { id: 'i', secret: '{{environment_variables.SECRET}}' },
            auth: { tokenHost: 'https://a.example', tokenPath: '/t', authorizeHost: 'https://a.example' },
          },
        },
      },
    },
  }),
})
const accountId = await idOf(environment, IntegratedAccountService.method.createIntegratedAccount, {
  environment_integration_id: installationId,
  tenant_id: 'acme',
  region: 'eu',
  credentials: { api_key: 'k' },
})

const CREATED = {
  id: UUID,
  environment_id: app.first.environmentId,
  status: 'created',
  step: 'integration',
  tenant_id: 'acme',
  is_reconnect: false,
  environment_integration_ids: [],
  allowed_credentials: [],
  scopes: [],
  granted_scopes: [],
  missing_scopes: [],
  context: {},
  region: 'wnam',
  is_sandbox: false,
  redirect_uri: '',
  origins: [],
  locale: '',
  persist_previous_context: true,
  skip_post_connect_form: false,
  steps: [{ to_status: 'created', cause: 'token_created', message: '', occurred_at: TIME }],
  expires_at: TIME,
  created_at: TIME,
  updated_at: TIME,
  object_store_context_fields: [],
  terms_url: '',
}

describe.each(inTurn(clients))('a link over $wire', (client) => {
  it('is answered with its secret once, and reads back without it', async () => {
    const made = await client.ok(create, { tenant_id: 'acme' })
    const { link_token, url, ...rest } = made
    expect(rest).toEqual(CREATED)
    expect(link_token).toMatch(/^lnk_/)
    expect(url).toBe(`${app.url}/connect?link_token=${link_token}`)
    expect(await client.ok(get, { id: made.id })).toEqual(rest)
    expect(Date.parse(String(made.expires_at)) - Date.parse(String(made.created_at))).toBe(24 * 3_600_000)
  })

  it('carries what was asked for', async () => {
    const asked = {
      allowed_credentials: ['api_key'],
      scopes: ['read'],
      context: { subdomain: 'acme', nested: { a: [1] } },
      region: 'eu',
      is_sandbox: true,
      redirect_uri: 'https://app.example.com/done?x=1',
      origins: ['https://app.example.com', 'http://localhost:3000', 'http://[::1]:8080'],
      locale: 'de-CH',
      persist_previous_context: false,
      skip_post_connect_form: true,
      object_store_context_fields: ['nested'],
    }
    const request = { tenant_id: 'acme', integrations: [integrationName], expires_in: 60, ...asked }
    const made = await client.ok(create, request)
    expect(made).toMatchObject({ ...asked, environment_integration_ids: [installationId] })
    expect(Date.parse(String(made.expires_at)) - Date.parse(String(made.created_at))).toBe(60_000)
  })

  it('reconnects an account: tenant, region and integration are its own', async () => {
    const request = { integrated_account_id: accountId, context: { plan: 'gold' }, allowed_credentials: ['api_key'] }
    expect(await client.ok(create, request)).toMatchObject({
      is_reconnect: true,
      integrated_account_id: accountId,
      tenant_id: 'acme',
      region: 'eu',
      integration: integrationName,
      environment_integration_ids: [installationId],
      allowed_credentials: ['api_key'],
    })
  })

  it('is cancelled once; repeating that changes nothing', async () => {
    const { id } = await client.ok(create, { tenant_id: 'acme' })
    const cancelled = await client.ok(cancel, { id })
    expect(cancelled).toMatchObject({ status: 'cancelled', step: 'done', error_code: 'cancelled' })
    expect(await client.ok(cancel, { id })).toEqual(cancelled)
    expect(await client.ok(get, { id })).toEqual(cancelled)
  })

  it('is found by tenant, account and status', async () => {
    const tenant_id = freshName('tenant')
    const made = await client.ok(create, { tenant_id })
    const again = await client.ok(create, { integrated_account_id: accountId })
    const idsOf = async (filter: JsonObject) =>
      ((await client.ok(list, filter)).link_tokens as unknown as readonly JsonObject[]).map(({ id }) => id)
    expect(await idsOf({ tenant_id })).toEqual([made.id])
    expect(await idsOf({ integrated_account_id: accountId, page_size: 1 })).toEqual([again.id])
    expect(await idsOf({ tenant_id, status: 'completed' })).toEqual([])
  })

  it('that is unknown is not found', async () => {
    for (const method of [get, cancel])
      expect(await client.callError(method, { id: newId() })).toMatchObject({
        reason: 'RESOURCE_NOT_FOUND',
        httpStatus: statusOver(client, 404),
      })
  })
})

const WRONG: readonly [string, JsonObject, string, string][] = [
  ['no subject', { tenant_id: undefined as never }, 'request', 'INVALID_FIELD'],
  ['an unknown integration', { integrations: [integrationName, 'none'] }, 'integrations[1]', 'INVALID_FIELD'],
  ['a script as address', { redirect_uri: 'javascript:alert(1)' }, 'redirect_uri', 'INVALID_FIELD'],
  ['a relative address', { redirect_uri: '/done' }, 'redirect_uri', 'INVALID_FIELD'],
  ['an address with a password', { redirect_uri: 'https://a:b@example.com' }, 'redirect_uri', 'INVALID_FIELD'],
  ['an origin with a path', { origins: ['https://a.example', 'https://b.example/'] }, 'origins[1]', 'INVALID_FIELD'],
  ['any origin', { origins: ['*'] }, 'origins[0]', 'INVALID_FIELD'],
  ['an origin that ends a policy', { origins: ['https://a;script-src-elem'] }, 'origins[0]', 'INVALID_FIELD'],
  ['two origins in one', { origins: ['https://a.example', 'https://a,b'] }, 'origins[1]', 'INVALID_FIELD'],
  ['an origin of any host', { origins: ['https://*'] }, 'origins[0]', 'INVALID_FIELD'],
  ['an origin of any domain', { origins: ['https://*.com'] }, 'origins[0]', 'INVALID_FIELD'],
  ['an origin of null', { origins: ['null'] }, 'origins[0]', 'INVALID_FIELD'],
  ['too short a time', { expires_in: 59 }, 'expires_in', 'INVALID_FIELD'],
  ['too long a time', { expires_in: 604_801 }, 'expires_in', 'INVALID_FIELD'],
  ['an end in the past', { expires_at: '2020-01-01T00:00:00Z' }, 'expires_at', 'INVALID_FIELD'],
  ['two ends', { expires_at: '2020-01-01T00:00:00Z', expires_in: 60 }, 'expires_in', 'INVALID_FIELD'],
  ['no language', { locale: 'de_CH!' }, 'locale', 'INVALID_FIELD'],
  ['a reserved key', { context: { env: {} } }, 'context.env', 'CONTEXT_KEY_RESERVED'],
  ['a credential in the context', { context: { api_key: 'x' } }, 'context.api_key', 'CONTEXT_KEY_RESERVED'],
  ['a value that its field rejects', { context: { subdomain: '-' } }, 'context.subdomain', 'INVALID_FIELD'],
]

describe.each(inTurn(clients))('a wrong link over $wire', (client) => {
  it.each(WRONG)('with %s is rejected, naming the field', async (_, fields, field, reason) => {
    const before = (await client.ok(list, {})).link_tokens
    const { tenant_id = 'acme', ...rest } = fields
    const request = { ...('tenant_id' in fields ? {} : { tenant_id }), ...rest }
    const error = await client.callError(create, request)
    expect(error).toMatchObject({ reason, violations: [expect.objectContaining({ field })] })
    expect((await client.ok(list, {})).link_tokens).toEqual(before)
  })

  it.each<[string, JsonObject, string, string]>([
    [
      'that none of its integrations offers',
      { integrations: [integrationName], allowed_credentials: ['api_key', 'oauth'] },
      'allowed_credentials[1]',
      'is not a credential that an integration of the link offers; there is api_key',
    ],
    [
      'by another one of the account to reconnect',
      { integrated_account_id: accountId, allowed_credentials: ['api_kye'] },
      'allowed_credentials[0]',
      'did you mean api_key? There is api_key',
    ],
    [
      'whose client is not set up',
      { integrations: [twoName], allowed_credentials: ['oauth2'] },
      'allowed_credentials[0]',
      `of ${twoName} cannot be used on the connect page: its client is not set up`,
    ],
    [
      'that leave an integration without any',
      { integrations: [integrationName, twoName], allowed_credentials: ['sandbox'] },
      'integrations[0]',
      `is left without a credential by allowed_credentials: ${integrationName} offers api_key`,
    ],
  ])('restricted to credentials %s is rejected by name', async (_, request, field, words) => {
    const subject = 'integrated_account_id' in request ? {} : { tenant_id: 'acme' }
    const { reason, violations } = await client.callError(create, { ...subject, ...request })
    expect(reason).toBe('INVALID_FIELD')
    expect(violations).toEqual([expect.objectContaining({ field, description: expect.stringContaining(words) })])
  })

  it('to reconnect an account takes nothing that the account decides', async () => {
    const request = { integrated_account_id: accountId, region: 'eu', integrations: [integrationName] }
    const { violations } = await client.callError(create, request)
    expect(violations.map(({ field }) => field)).toEqual(['integrations', 'region'])
  })

  it('to an unknown account is not found, to a disabled integration is rejected', async () => {
    expect(await client.callError(create, { integrated_account_id: newId() })).toMatchObject({
      reason: 'RESOURCE_NOT_FOUND',
    })
    const request = {
      integration_id: await idOf(admin, IntegrationService.method.createIntegration, {
        name: freshName('disabled'),
        config: CONFIG,
      }),
      is_enabled: false,
    }
    const disabled = await idOf(environment, EnvironmentIntegrationService.method.createEnvironmentIntegration, request)
    expect(await client.callError(create, { tenant_id: 'acme', integrations: [disabled] })).toMatchObject({
      reason: 'INTEGRATION_DISABLED',
    })
  })
})

describe('the REST path of links', () => {
  it('is /link-token', async () => {
    const { environmentToken: token } = app.first
    const made = await callRest('POST', `${app.url}/link-token`, token, { tenant_id: 'acme' })
    const { id } = made.body as { id: string }
    expect(made.status).toBe(200)
    expect((await callRest('GET', `${app.url}/link-token/${id}`, token)).status).toBe(200)
    expect((await callRest('POST', `${app.url}/link-token/${id}/cancel`, token, {})).body).toMatchObject({
      status: 'cancelled',
    })
    expect((await callRest('GET', `${app.url}/link-token?status=cancelled`, token)).status).toBe(200)
  })
})
