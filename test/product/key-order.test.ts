import { describe, expect, it } from 'vitest'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import { SyncJobService } from '../../gen/patchbay/v1/sync_job_service_pb.ts'
import { SHIPPED_NAMES } from '../../src/engine/catalog/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { createApiTenant, freshName, idOf } from '../support/seeded-tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { shipped } from '../unit/engine/catalog/shipped.ts'
import { LOCAL_UPSTREAM } from './calls.ts'

const app = await startTestApp(LOCAL_UPSTREAM)
const { createIntegration, getIntegration } = IntegrationService.method

/** Keys whose order `jsonb` would change: shorter ones first, then by bytes. */
const ORDER = { zebra: '1', a: '2', mmm: '3', b: '4' }

describe.each(inTurn(app.clients()))('the order of keys over $wire', ({ wire }) => {
  it('of every shipped definition is that of its file, byte for byte', async () => {
    const tenant = await createApiTenant(app)
    const team = app.client(wire, { token: tenant.teamToken })
    for (const name of SHIPPED_NAMES) {
      const { config } = shipped(name)
      const id = await idOf(team, createIntegration, { name: freshName(name), config })
      const read = await team.ok(getIntegration, { id })
      expect(JSON.stringify(read.config), name).toBe(JSON.stringify(config))
    }
  })

  it('of an override, a job and its arguments is that in which they were written', async () => {
    const tenant = await createApiTenant(app)
    const team = app.client(wire, { token: tenant.teamToken })
    const client = app.client(wire, { token: tenant.environmentToken })
    const integration_id = await idOf(team, createIntegration, { name: freshName('order'), config: DEFINITION })
    const override = {
      environment_variables: ORDER,
      resources: { z: { list: { path: '/z' } }, a: { list: { path: '/a' } } },
    }
    const installed = await client.ok(EnvironmentIntegrationService.method.createEnvironmentIntegration, {
      integration_id,
      override,
    })
    expect(JSON.stringify(installed.override)).toBe(JSON.stringify(override))
    const resources = [{ resource: 'items', method: 'list', query: ORDER }]
    const args_schema = { type: 'object', properties: { zz: { type: 'string' }, a: { type: 'string' } } }
    const job = await client.ok(SyncJobService.method.createSyncJob, {
      label: 'Order',
      integration_name: String((await team.ok(getIntegration, { id: integration_id })).name),
      resources,
      args_schema,
    })
    expect(JSON.stringify(job.args_schema)).toBe(JSON.stringify(args_schema))
    expect(JSON.stringify((job.resources as unknown as JsonObject[])[0]?.query)).toBe(JSON.stringify(ORDER))
  })

  it.each([
    ['xml', '<Envelope><zebra>1</zebra><a>2</a><mmm>3</mmm><b>4</b></Envelope>'],
    ['form', 'Envelope[zebra]=1&Envelope[a]=2&Envelope[mmm]=3&Envelope[b]=4'],
    ['json', '{"Envelope":{"zebra":"1","a":"2","mmm":"3","b":"4"}}'],
  ])('reaches the wire in a body of %s, and the query', async (body_format, body) => {
    await using upstream = await startUpstream()
    const tenant = await createApiTenant(app)
    const team = app.client(wire, { token: tenant.teamToken })
    const client = app.client(wire, { token: tenant.environmentToken })
    const config = {
      ...DEFINITION,
      base_url: upstream.url,
      resources: {
        items: { create: { method: 'POST', path: '/x', query: ORDER, body: { Envelope: ORDER }, body_format } },
      },
    }
    const integration_id = await idOf(team, createIntegration, { name: freshName('order'), config })
    const environment_integration_id = await idOf(
      client,
      EnvironmentIntegrationService.method.createEnvironmentIntegration,
      { integration_id },
    )
    const integrated_account_id = await idOf(client, IntegratedAccountService.method.createIntegratedAccount, {
      environment_integration_id,
      tenant_id: 't',
      credential: 'first',
      credentials: { api_key: 'k' },
    })
    upstream.script({ request: 'POST /x?zebra=1&a=2&mmm=3&b=4', answer: { json: {} } })
    await client.ok(ProxyService.method.call, { integrated_account_id, resource: 'items', method: 'create' })
    expect(String(upstream.requests.at(-1)?.body)).toContain(body)
    upstream.verify()
  })
})

const DEFINITION = {
  base_url: 'https://api.example.com',
  credentials: {
    second: { label: 'Second', format: 'api_key', config: { fields: [{ name: 'other', type: 'password' }] } },
    first: { label: 'First', format: 'api_key', config: { fields: [{ name: 'api_key', type: 'password' }] } },
  },
  resources: { items: { list: { path: '/items' } } },
} satisfies JsonObject
