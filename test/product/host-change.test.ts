import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { EventService } from '../../gen/patchbay/v1/event_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import { TaskService } from '../../gen/patchbay/v1/task_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { EVENTUALLY } from '../support/eventually.ts'
import { addAccounts } from '../support/many-accounts.ts'
import { createApiTenant, freshName, idOf } from '../support/seeded-tenant.ts'
import { LOCAL_UPSTREAM } from './calls.ts'

/** Keys that a host has received. */
const received = { before: [] as string[], after: [] as string[] }
beforeEach(() => {
  received.before = []
  received.after = []
})
const before = await startHost('before')
const after = await startHost('after')

async function startHost(name: keyof typeof received): Promise<string> {
  const host = createServer(({ headers }, response) => {
    received[name].push(String(headers['x-key']))
    response.setHeader('content-type', 'application/json').end('[]')
  }).listen(0, '127.0.0.1')
  afterAll(() => host.close())
  await once(host, 'listening')
  return `http://127.0.0.1:${(host.address() as AddressInfo).port}`
}

const app = await startTestApp(LOCAL_UPSTREAM)
const { updateEnvironmentIntegration: update, createEnvironmentIntegration: install } =
  EnvironmentIntegrationService.method
const {
  createIntegratedAccount: connect,
  getIntegratedAccount,
  updateIntegratedAccountCredentials: reconnect,
  refreshIntegratedAccountCredentials: refresh,
} = IntegratedAccountService.method

const CONFIG = {
  base_url: before,
  credentials: {
    format: 'api_key',
    config: { fields: [{ name: 'key', type: 'password', required: true }, { name: 'note' }] },
  },
  authorization: { format: 'header', config: { headers: { 'x-key': '{{key}}' } } },
  resources: { items: { list: { path: '/items' } } },
}

async function connected(wire: Client['wire'], config: JsonObject = CONFIG) {
  const tenant = await createApiTenant(app)
  const team = app.client(wire, { token: tenant.teamToken })
  const client = app.client(wire, { token: tenant.environmentToken })
  const named = { name: freshName('moved'), config }
  const integration_id = await idOf(team, IntegrationService.method.createIntegration, named)
  const installationId = await idOf(client, install, { integration_id })
  const accountId = await idOf(client, connect, {
    environment_integration_id: installationId,
    tenant_id: 'a',
    credentials: { key: 'customer-key', note: 'n' },
  })
  const call = { integrated_account_id: accountId, resource: 'items', method: 'list' }
  return {
    tenant,
    client,
    installationId,
    accountId,
    call,
    move: { id: installationId, override: { base_url: after } },
  }
}

const { call: callMethod } = ProxyService.method

describe.each(inTurn(app.clients()))('an override that moves the hosts of accounts over $wire', ({ wire }) => {
  it('is taken of an environment token, which is the application: calls go there', async () => {
    const { client, move, call } = await connected(wire)
    await client.ok(callMethod, call)
    await client.ok(update, move)
    await client.ok(callMethod, call)
    expect(received).toEqual({ before: ['customer-key'], after: ['customer-key'] })
  })

  it('ends their credentials with the answer when it asks for that, before any task has run', async () => {
    const { client, move, accountId, call } = await connected(wire)
    await client.ok(update, { ...move, reauthorize_accounts: true })
    expect(await client.callError(callMethod, call)).toMatchObject({
      reason: 'ACCOUNT_NOT_ACTIVE',
      metadata: { status: 'needs_reauth' },
    })
    expect(await client.callError(refresh, { id: accountId })).toMatchObject({ reason: 'METHOD_NOT_DEFINED' })
    expect(received).toEqual({ before: [], after: [] })
  })

  it('takes the accounts back with new credentials alone, none of which stays of before', async () => {
    const { client, move, accountId, call } = await connected(wire)
    await client.ok(update, { ...move, reauthorize_accounts: true })
    expect(await client.callError(reconnect, { id: accountId, credentials: { note: 'm' } })).toMatchObject({
      reason: 'CREDENTIALS_INVALID',
    })
    await client.ok(reconnect, { id: accountId, credentials: { key: 'new-key' } })
    const worker = app.startWorker()
    await expect
      .poll(async () => (await client.ok(getIntegratedAccount, { id: accountId })).status, EVENTUALLY)
      .toBe('active')
    await client.ok(callMethod, call)
    await worker.drain()
    expect(received).toEqual({ before: [], after: ['new-key'] })
  })

  it('puts all accounts to needs_reauth by a task that no call cancels, with an event of paths and hosts', async () => {
    const { tenant, client, move, accountId, installationId } = await connected(wire)
    await addAccounts(app.database, { ...tenant, integratedAccountId: accountId }, 60)
    await client.ok(update, { ...move, reauthorize_accounts: true })
    const [task] = (await client.ok(TaskService.method.listTasks, {})).tasks as unknown as JsonObject[]
    expect(task).toMatchObject({
      kind: 'reauthorize_accounts',
      params: { environment_integration_id: installationId },
    })
    const id = String(task?.id)
    expect((await client.ok(TaskService.method.cancelTask, { id })).state).toBe('queued')
    const worker = app.startWorker()
    await expect
      .poll(async () => await client.ok(TaskService.method.getTask, { id }), EVENTUALLY)
      .toMatchObject({ state: 'completed', result: { integrated_accounts: 61 } })
    await worker.drain()
    const { listIntegratedAccounts } = IntegratedAccountService.method
    const listed = await client.ok(listIntegratedAccounts, { status: 'needs_reauth', page_size: 1000 })
    expect((listed.integrated_accounts as unknown as JsonObject[]).length).toBe(61)
    const { events } = await client.ok(EventService.method.listEvents, { subject_id: installationId })
    expect((events as unknown as JsonObject[])[0]?.payload).toMatchObject({
      changed_paths: ['base_url'],
      hosts_added: [after],
      hosts_removed: [before],
      reauthorizes_accounts: true,
    })
    const changed = await client.ok(EventService.method.listEvents, { subject_id: accountId })
    expect((changed.events as unknown as JsonObject[])[0]?.type).toBe('integrated_account:authentication_error')
  })

  it('asked for again, or without other hosts, ends nothing', async () => {
    const { client, move, accountId, call, installationId: id } = await connected(wire)
    await client.ok(update, { ...move, reauthorize_accounts: true })
    await client.ok(reconnect, { id: accountId, credentials: { key: 'new-key' } })
    await client.ok(update, { ...move, reauthorize_accounts: true })
    await client.ok(update, { id, show_in_catalog: true, reauthorize_accounts: true })
    expect((await client.ok(TaskService.method.listTasks, {})).tasks).toHaveLength(1)
    const worker = app.startWorker()
    await expect
      .poll(async () => (await client.ok(getIntegratedAccount, { id: accountId })).status, EVENTUALLY)
      .toBe('active')
    await worker.drain()
    await client.ok(callMethod, call)
    expect(received.after).toEqual(['new-key'])
  })
})
