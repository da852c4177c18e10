import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConnectError, createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { afterAll, afterEach, expect, it } from 'vitest'
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import { UnifiedService } from '../../gen/patchbay/v1/unified_service_pb.ts'
import { startTestApp } from '../support/app.ts'
import { firstTenant } from '../support/seeded-tenant.ts'
import { LOCAL_UPSTREAM } from './calls.ts'
import { connectMapped } from './unified.ts'

/** A third party that begins to answer requests for files and never ends, and does not answer the others. */
const open = new Set<ServerResponse>()
const thirdParty = createServer(({ url = '' }, response) => {
  open.add(response)
  response.once('close', () => open.delete(response))
  if (url.startsWith('/files')) response.writeHead(200).write('begun')
}).listen(0, '127.0.0.1')
afterAll(() => thirdParty.close())
afterEach(() => {
  for (const response of open) response.destroy()
})
await once(thirdParty, 'listening')
const thirdPartyUrl = `http://127.0.0.1:${(thirdParty.address() as AddressInfo).port}`

const app = await startTestApp(LOCAL_UPSTREAM)
const tenant = firstTenant(app)
const headers = { authorization: `Bearer ${tenant.environmentToken}` }
const transport = createConnectTransport({ baseUrl: app.url, httpVersion: '2' })
const connect = app.client('connect')

/** The error with which an RPC ends. */
async function reasonOf(call: () => Promise<unknown>): Promise<string> {
  const error = await call().then(
    () => new Error('it succeeded'),
    (thrown: unknown) => thrown,
  )
  return ConnectError.from(error).findDetails(ErrorInfoSchema)[0]?.reason ?? String(error)
}

async function drain(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of messages);
}

/** How an answer over HTTP ends: with a reason, or without its end when it had begun. */
async function endOf(path: string): Promise<string> {
  try {
    const response = await fetch(`${app.url}${path}`, { headers })
    return JSON.parse(await response.text()).error.details[0].reason
  } catch {
    return 'broken off'
  }
}

/** Every way in which a request goes through an account, until it ends. */
const WAYS: Readonly<Record<string, (accountId: string) => Promise<string>>> = {
  'a stream of /custom': (id) => endOf(`/custom/files/1?integrated_account_id=${id}`),
  'a stream of /proxy': (id) => endOf(`/proxy/files/1?integrated_account_id=${id}`),
  'a call of /proxy': (id) => endOf(`/proxy/contacts?integrated_account_id=${id}`),
  'a call of /unified': (id) => endOf(`/unified/crm/contacts?integrated_account_id=${id}`),
  'ProxyService.Call': (integratedAccountId) => {
    const asked = { integratedAccountId, resource: 'contacts', method: 'list' }
    return reasonOf(() => createClient(ProxyService, transport).call(asked, { headers }))
  },
  'ProxyService.ListPages': (integratedAccountId) => {
    const asked = { integratedAccountId, resource: 'contacts', method: 'list' }
    return reasonOf(() => drain(createClient(ProxyService, transport).listPages(asked, { headers })))
  },
  'UnifiedService.Call': (integratedAccountId) => {
    const asked = { integratedAccountId, model: 'crm', resource: 'contacts', method: 'list' }
    return reasonOf(() => createClient(UnifiedService, transport).call(asked, { headers }))
  },
  'UnifiedService.ListPages': (integratedAccountId) => {
    const asked = { integratedAccountId, model: 'crm', resource: 'contacts', method: 'list' }
    return reasonOf(() => drain(createClient(UnifiedService, transport).listPages(asked, { headers })))
  },
}

const CAUSES: Readonly<Record<string, { readonly reason: string; end(accountId: string): Promise<unknown> }>> = {
  'its deletion': {
    reason: 'RESOURCE_NOT_FOUND',
    end: (id) => connect.ok(IntegratedAccountService.method.deleteIntegratedAccount, { id }),
  },
  'the disabling of its installation': {
    reason: 'INTEGRATION_DISABLED',
    async end(accountId) {
      const account = await connect.ok(IntegratedAccountService.method.getIntegratedAccount, { id: accountId })
      const change = { id: String(account.environment_integration_id), is_enabled: false }
      return await connect.ok(EnvironmentIntegrationService.method.updateEnvironmentIntegration, change)
    },
  },
}

it.each(Object.entries(CAUSES))('every request through an account ends with %s', async (_, { reason, end }) => {
  const { accountId } = await connectMapped(app, tenant, thirdPartyUrl)
  const requests = Object.entries(WAYS).map(async ([way, request]) => [way, await request(accountId)] as const)
  await expect.poll(() => open.size).toBe(requests.length)
  await end(accountId)
  const ends = Object.keys(WAYS).map((way) => [way, way.startsWith('a stream') ? 'broken off' : reason])
  expect(Object.fromEntries(await Promise.all(requests))).toEqual(Object.fromEntries(ends))
  await expect.poll(() => open.size).toBe(0)
})

it('a request goes on when its account is connected again', async () => {
  const { accountId } = await connectMapped(app, tenant, thirdPartyUrl)
  const answer = await fetch(`${app.url}/custom/files/1?integrated_account_id=${accountId}`, { headers })
  const change = { id: accountId, credentials: { api_key: 'another' } }
  await connect.ok(IntegratedAccountService.method.updateIntegratedAccountCredentials, change)
  // The request below is looked at with the stream, and in the same statement.
  const { accountId: deleted } = await connectMapped(app, tenant, thirdPartyUrl)
  const beside = endOf(`/proxy/contacts?integrated_account_id=${deleted}`)
  await expect.poll(() => open.size).toBe(2)
  await connect.ok(IntegratedAccountService.method.deleteIntegratedAccount, { id: deleted })
  expect(await beside).toBe('RESOURCE_NOT_FOUND')
  for (const response of open) response.end(' and ended')
  expect(await answer.text()).toBe('begun and ended')
})
