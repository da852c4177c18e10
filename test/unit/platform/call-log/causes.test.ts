import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { CallLogService } from '../../../../gen/patchbay/v1/call_log_service_pb.ts'
import { IntegratedAccountService } from '../../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../../../gen/patchbay/v1/integration_service_pb.ts'
import { SyncJobRunService } from '../../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { SyncJobService } from '../../../../gen/patchbay/v1/sync_job_service_pb.ts'
import { ToolServerService } from '../../../../gen/patchbay/v1/tool_server_service_pb.ts'
import { WebhookService } from '../../../../gen/patchbay/v1/webhook_service_pb.ts'
import { query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { handleCallback, submitForm } from '../../../../src/platform/links/index.ts'
import { callDefinition, connectAccount, LOCAL_UPSTREAM } from '../../../product/calls.ts'
import { startTestApp } from '../../../support/app.ts'
import { firstTenant, freshName } from '../../../support/seeded-tenant.ts'
import { startUpstream } from '../../../support/upstream.ts'
import { startReceiver } from '../../../support/webhook-receiver.ts'
import { callTool, connectClient } from '../../tools/mcp/client.ts'
import { startToolServerFixture } from '../../tools/servers/fixture.ts'
import { linksFixture } from '../links/fixture.ts'
import { startThirdParty } from '../links/third-party.ts'

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
app.startWorker()
const tenant = firstTenant(app)
const client = app.client('connect')
const receiver = await startReceiver()
const tools = await startToolServerFixture()
const links = await linksFixture()
const peer = await startThirdParty()
const { listCallLogEntries } = CallLogService.method

afterAll(async () => {
  await receiver[Symbol.asyncDispose]()
  await upstream[Symbol.asyncDispose]()
})
afterEach(() => upstream.verify())

const entriesOf = async (filter: JsonObject) =>
  ((await client.ok(listCallLogEntries, filter)).call_log_entries ?? []) as JsonObject[]

describe('the cause of a request', () => {
  it('is the run whose page it reads: a run is followed page by page', async () => {
    const pages = [1, 2, 3].map((page) => ({
      request: `GET /contacts?page=${page}&limit=2`,
      answer: { json: { data: page < 3 ? [{ id: 2 * page }, { id: 2 * page + 1 }] : [] } },
    }))
    upstream.script(...pages)
    const { accountId, integrationId } = await connectAccount(app, tenant, callDefinition(upstream.url))
    const team = app.client('connect', { token: tenant.teamToken })
    const integration = await team.ok(IntegrationService.method.getIntegration, { id: integrationId })
    const { getIntegratedAccount } = IntegratedAccountService.method
    await expect.poll(() => client.ok(getIntegratedAccount, { id: accountId })).toMatchObject({ status: 'active' })
    const job = await client.ok(SyncJobService.method.createSyncJob, {
      label: freshName('job'),
      integration_name: String(integration.name),
      resources: [{ resource: 'contacts', method: 'list', persist: true }],
    })
    const webhook = await client.ok(WebhookService.method.createWebhook, {
      target_url: receiver.url,
      event_types: ['record:*'],
    })
    const run = await client.ok(SyncJobRunService.method.createSyncJobRun, {
      sync_job_id: job.id,
      integrated_account_id: accountId,
      webhook_id: webhook.id,
    })
    const status = async () => (await client.ok(SyncJobRunService.method.getSyncJobRun, { id: run.id })).status
    await expect.poll(status).toBe('completed')

    const followed: string[] = []
    let page_token = ''
    do {
      const listed = await client.ok(listCallLogEntries, { cause_id: run.id, page_size: 1, page_token })
      for (const { cause, url } of listed.call_log_entries as JsonObject[]) followed.push(`${cause} ${url}`)
      page_token = String(listed.next_page_token ?? '')
    } while (page_token !== '')
    expect(followed).toEqual([3, 2, 1].map((page) => `run ${upstream.url}/contacts?page=${page}&limit=2`))
  })

  it('is the webhook subscription that it orders', async () => {
    upstream.script({ request: 'POST /hooks', answer: { status: 201, json: { id: 'first' } } })
    const create = { type: 'request', config: { method: 'POST', path: '/hooks', body: {} } }
    const remove = { type: 'request', config: { method: 'DELETE', path: '/hooks/{{subscription.id}}' } }
    const { accountId } = await connectAccount(app, tenant, {
      ...callDefinition(upstream.url),
      webhook: { subscription: { create, delete: remove, id: 'result.id' } },
    })
    const entries = () => entriesOf({ integrated_account_id: accountId })
    await expect
      .poll(entries)
      .toMatchObject([{ cause: 'subscription', url: `${upstream.url}/hooks`, class: 'success' }])
    expect((await entries())[0]).not.toHaveProperty('cause_id')
    upstream.script({ request: 'DELETE /hooks/first', answer: { status: 204 } })
    await client.ok(IntegratedAccountService.method.deleteIntegratedAccount, { id: accountId })
    await expect
      .poll(() => entriesOf({ cause_id: 'first' }))
      .toMatchObject([{ cause: 'subscription', http_method: 'DELETE' }])
  })

  it('is the call of a tool, by the id of its record', async () => {
    tools.upstream.script({ request: 'GET /contacts/7', answer: { json: { id: 7 } } })
    const server = await tools.createServer()
    await callTool(await connectClient(server, 'modern'), 'get_contact', { id: '7' })
    const own = tools.app.client('connect')
    const { listToolServerCalls } = ToolServerService.method
    const recorded = async () => (await own.ok(listToolServerCalls, { id: server.id })).calls as JsonObject[]
    await expect.poll(recorded).toHaveLength(1)
    const [call] = await recorded()
    const { call_log_entries: entries } = await own.ok(listCallLogEntries, { cause_id: String(call?.id) })
    expect(entries).toMatchObject([
      {
        cause: 'tool_call',
        request_id: expect.stringMatching(/./),
        http_method: 'GET',
        url: `${tools.upstream.url}/contacts/7`,
      },
    ])
  })

  it('is the consent of a customer, whose tokens are not in the log', async () => {
    const { name } = await links.install(peer.oauth())
    const ref = await links.open({ integrations: [name] })
    const begun = await submitForm(links.links, ref, {})
    if (begun.kind !== 'redirect') throw new Error('no redirect')
    const state = new URL(begun.url).searchParams.get('state') ?? ''
    const browserKeyOf = () => ref.browserKey
    await handleCallback(links.links, {
      params: { code: 'code-canary', state },
      browserKeyOf,
      sessionIds: [],
      canRepost: false,
    })
    await links.domain.callLog.flush()
    const rows = await query(links.database.pool, 'select * from call_log_entry', {})
    expect(rows).toMatchObject([
      { cause: 'authorization', causeId: ref.id, url: `${peer.url}/token`, class: 'success', content: null },
    ])
    expect(JSON.stringify(rows)).not.toContain('canary')
  })
})
