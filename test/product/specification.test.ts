import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { TIME, UUID } from '../support/matchers.ts'
import { EXAMPLE_CONFIG, freshName, seedTenant } from '../support/seeded-tenant.ts'

// Written as a user of the specification would: paths, verbs and names by hand, no descriptor, no client.

const app = await startTestApp()
const world = await seedTenant(app, app.first)

interface HttpAnswer {
  readonly status: number
  readonly type: string | null
  readonly body: JsonObject
}

async function http(
  verb: string,
  path: string,
  body: unknown,
  token = app.first.environmentToken,
): Promise<HttpAnswer> {
  const response = await fetch(`${app.url}${path}`, {
    method: verb,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    body: (await response.json()) as JsonObject,
  }
}

const INTEGRATION_FIELDS = [
  'id',
  'name',
  'category',
  'is_beta',
  'config',
  'team_id',
  'sharing',
  'created_at',
  'updated_at',
]
const TEAM_FIELDS = [
  'id',
  'name',
  'domain',
  'logo',
  'is_verified',
  'is_white_label',
  'allow_impersonation',
  'created_at',
  'updated_at',
]

function keysOf(value: unknown): string[] {
  return Object.keys(value as object).toSorted()
}

describe('POST /environment-integration', () => {
  it('installs an integration and answers an environment integration, every field there', async () => {
    const integration = await http(
      'POST',
      '/integration',
      { name: freshName('github'), config: EXAMPLE_CONFIG },
      app.first.teamToken,
    )
    const { status, type, body } = await http('POST', '/environment-integration', {
      integration_id: integration.body.id,
      show_in_catalog: true,
      is_enabled: true,
      override: { credentials: { api_key: { config: { documentation_link: 'https://docs.example.com' } } } },
    })

    expect({ status, type }).toEqual({ status: 200, type: 'application/json' })
    expect(keysOf(body)).toEqual(
      [
        'id',
        'integration_id',
        'environment_id',
        'show_in_catalog',
        'is_enabled',
        'created_at',
        'updated_at',
        'integration',
        'override',
        'etag',
      ].toSorted(),
    )
    expect(keysOf(body.integration)).toEqual(
      [...INTEGRATION_FIELDS, 'etag', 'installed_environment', 'team'].toSorted(),
    )
    expect(keysOf((body.integration as JsonObject).team)).toEqual([...TEAM_FIELDS, 'etag'].toSorted())
  })
})

describe('PATCH /integrated-account/{id}', () => {
  it('changes tenant and context and answers the integrated account, every field there', async () => {
    const { status, type, body } = await http('PATCH', `/integrated-account/${world.integratedAccountId}`, {
      tenant_id: 'globex',
      context: { subdomain: 'globex' },
    })

    expect({ status, type }).toEqual({ status: 200, type: 'application/json' })
    expect(body).toMatchObject({ tenant_id: 'globex', context: { subdomain: 'globex' } })
    expect(keysOf(body)).toEqual(
      [
        'id',
        'tenant_id',
        'environment_integration_id',
        'context',
        'status',
        'last_error',
        'last_action_result',
        'created_at',
        'updated_at',
        'is_sandbox',
        'authentication_method',
        'credential',
        'region',
        'environment_id',
        'integration',
        'object_store_context_fields',
        'context_errors',
        'webhook_subscriptions',
        'external_id',
        'terms_url',
        'etag',
      ].toSorted(),
    )
    expect(keysOf(body.integration)).toEqual([...INTEGRATION_FIELDS, 'etag'].toSorted())
  })
})

describe('PATCH /sync-job-cron-trigger/{id}', () => {
  const path = `/sync-job-cron-trigger/${world.syncJobCronTriggerId}`
  const fields = [
    'id',
    'args',
    'resources',
    'resources_inherited',
    'cron_expression',
    'sync_job_id',
    'integrated_account_id',
    'daemon_group_key',
    'webhook_id',
    'created_at',
    'updated_at',
    'paused',
    'next_run_at',
    'etag',
  ]

  it('sends the records to a webhook and answers the trigger, every field there', async () => {
    const { status, type, body } = await http('PATCH', path, {
      webhook_id: world.webhookId,
      cron_expression: '0 0 2 1 *',
    })

    expect({ status, type }).toEqual({ status: 200, type: 'application/json' })
    expect(keysOf(body)).toEqual(fields.toSorted())
    expect(body).toMatchObject({ webhook_id: world.webhookId, daemon_group_key: null, cron_expression: '0 0 2 1 *' })
  })

  it('assigns the runs to a daemon group', async () => {
    const { body } = await http('PATCH', path, { daemon_group_key: 'warehouse' })

    expect(keysOf(body)).toEqual(fields.toSorted())
    expect(body).toMatchObject({ daemon_group_key: 'warehouse', webhook_id: null })
  })
})

describe('a rejection', () => {
  it('has the error body that every client of Google APIs reads', async () => {
    const { status, type, body } = await http('PATCH', `/integrated-account/${world.integratedAccountId}`, {
      tenant_id: '',
      tennant: 1,
    })

    expect({ status, type }).toEqual({ status: 400, type: 'application/json' })
    expect(body).toEqual({
      error: {
        code: 400,
        status: 'INVALID_ARGUMENT',
        message: expect.any(String),
        details: [
          {
            '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
            reason: 'INVALID_FIELD',
            domain: 'patchbay',
            metadata: {},
          },
          {
            '@type': 'type.googleapis.com/google.rpc.BadRequest',
            field_violations: expect.arrayContaining([
              expect.objectContaining({ field: 'tenant_id' }),
              expect.objectContaining({ field: 'tennant' }),
            ]),
          },
        ],
      },
    })
  })

  it.each([
    {
      path: '/environment-integration',
      verb: 'POST',
      body: { integration_id: 'x', overide: {}, override: { base_url: 1, resources: { a: { list: { pth: '/' } } } } },
      fields: ['integration_id', 'overide', 'override.base_url', 'override.resources.a.list.pth'],
    },
    {
      path: `/integrated-account/${world.integratedAccountId}`,
      verb: 'PATCH',
      body: { tenant_id: '', tennant: 1, context: { env: 1, ok: 'a\u0000b' } },
      fields: ['tenant_id', 'tennant', 'context.env', 'context.ok'],
    },
    {
      path: `/sync-job-cron-trigger/${world.syncJobCronTriggerId}`,
      verb: 'PATCH',
      body: { cron_expression: '* * * *', webhook_id: world.webhookId, daemon_group_key: 'g', cron: 1 },
      fields: ['cron', 'cron_expression', 'daemon_group_key'],
    },
  ])('of $verb $path names every field at once, any layer found it', async ({ verb, path, body, fields }) => {
    const answer = await http(verb, path, body)
    const [, badRequest] = (answer.body as { error: { details: { field_violations: { field: string }[] }[] } }).error
      .details
    expect(answer.status).toBe(400)
    expect(badRequest?.field_violations.map(({ field }) => field).toSorted()).toEqual(fields.toSorted())
  })

  it.each([
    { verb: 'GET', path: '/nowhere', status: 404, reason: 'ROUTE_NOT_FOUND' },
    { verb: 'PUT', path: '/environment-integration', status: 405, reason: 'METHOD_NOT_ALLOWED' },
    { verb: 'DELETE', path: '/integrated-account', status: 405, reason: 'METHOD_NOT_ALLOWED' },
  ])('of $verb $path is $status', async ({ verb, path, status, reason }) => {
    const response = await fetch(`${app.url}${path}`, {
      method: verb,
      headers: { authorization: `Bearer ${app.first.environmentToken}` },
    })

    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ error: { code: status, details: [{ reason }] } })
    if (status === 405) expect(response.headers.get('allow')).toContain('GET')
  })
})

it.each([
  ['/sync-jbo', '/sync-job'],
  ['/integrated-acount/3b241101-e2bb-4255-8caf-4136c566a962/history', '/integrated-account/{id}/history'],
  ['/patchbay.v1.TeamService/GetTaem', 'GetTeam'],
])('an unknown path is answered with the one that was probably meant: %s', async (path, meant) => {
  const { status, body } = await http('POST', path, {})
  expect(status).toBe(404)
  expect(body).toMatchObject({ error: { message: `there is no such path, did you mean ${meant}?` } })
})

describe('ids and times', () => {
  it('are uuids and RFC 3339 with milliseconds', async () => {
    const response = await fetch(`${app.url}/integrated-account/${world.integratedAccountId}`, {
      headers: { authorization: `Bearer ${app.first.environmentToken}` },
    })
    expect(await response.json()).toMatchObject({ id: UUID, created_at: TIME, updated_at: TIME })
  })
})
