import { afterAll, expect, it, vi } from 'vitest'
import { IntegratedAccountService } from '../../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../../../gen/patchbay/v1/integration_service_pb.ts'
import { SyncJobCronTriggerService } from '../../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { SyncJobService } from '../../../../gen/patchbay/v1/sync_job_service_pb.ts'
import { WebhookService } from '../../../../gen/patchbay/v1/webhook_service_pb.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { connectAccount, LOCAL_UPSTREAM } from '../../../product/calls.ts'
import { startTestApp } from '../../../support/app.ts'
import { EVENTUALLY } from '../../../support/eventually.ts'
import { firstTenant, idOf } from '../../../support/seeded-tenant.ts'
import { readOne } from '../../../support/tenant.ts'
import { type Received, startReceiver } from '../../../support/webhook-receiver.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

/** A token endpoint, an API and a webhook receiver. */
const upstream = await startReceiver(answer)
const app = await startTestApp(LOCAL_UPSTREAM)
const client = app.client('connect')
const admin = app.client('connect', { token: app.first.teamToken })
afterAll(() => upstream[Symbol.asyncDispose]())

let tokens = 0

function answer({ path, body }: Received) {
  if (path === '/hook') return { status: 204 }
  const region = new URLSearchParams(body).get('client_id')
  const json = path === '/token' ? { access_token: `${region}-${++tokens}`, expires_in: 3600 } : { items: [{ id: 1 }] }
  return { status: 200, headers: JSON_TYPE, body: JSON.stringify(json) }
}

/** Requests so far with a token of the region's account, or for one. */
function requestsOf(region: string): string[] {
  const isOf = ({ headers, body }: Received) =>
    headers.authorization?.startsWith(`Bearer ${region}-`) === true || body.includes(`client_id=${region}`)
  return upstream.received.filter(isOf).map(({ path }) => path)
}

const origin = new URL(upstream.url).origin
const DEFINITION: JsonObject = {
  label: 'Example',
  base_url: origin,
  credentials: {
    oauth2_client_credentials: {
      config: { auth: { tokenHost: origin, tokenPath: '/token' }, options: { authorizationMethod: 'body' } },
    },
  },
  authorization: { format: 'bearer', config: { token: '{{oauth.token.access_token}}' } },
  resources: { items: { list: { method: 'get', path: '/items', response_path: 'items' } } },
  actions: { validation: { steps: [{ name: 'me', type: 'request', config: { method: 'GET', path: '/me' } }] } },
}

async function connectIn(region: string): Promise<{ readonly accountId: string; readonly integrationName: string }> {
  const credentials = { client_id: region, client_secret: 's' }
  const { accountId, integrationId } = await connectAccount(app, firstTenant(app), DEFINITION, { region, credentials })
  const integration = await admin.ok(IntegrationService.method.getIntegration, { id: integrationId })
  return { accountId, integrationName: String(integration.name) }
}

const statusOf = async (id: string) =>
  (await client.ok(IntegratedAccountService.method.getIntegratedAccount, { id })).status
const tokenVersionOf = async (id: string) =>
  (
    await readOne<{ version: number }>(
      app.database,
      'select version from account_token where integrated_account_id = :id',
      { id },
    )
  ).version

/** A trigger that is due now, a manual run, and a token that is due. */
async function addWork({ accountId, integrationName }: Awaited<ReturnType<typeof connectIn>>, webhook_id: string) {
  const sync_job_id = await idOf(client, SyncJobService.method.createSyncJob, {
    label: 'items',
    integration_name: integrationName,
    resources: [{ resource: 'items', method: 'list' }],
  })
  const plan = { sync_job_id, integrated_account_id: accountId, webhook_id }
  const { createSyncJobCronTrigger } = SyncJobCronTriggerService.method
  const triggerId = await idOf(client, createSyncJobCronTrigger, { ...plan, cron_expression: '0 0 1 1 *' })
  const runId = await idOf(client, SyncJobRunService.method.createSyncJobRun, plan)
  await execute(
    app.database.pool,
    `update trigger_schedule set next_fire_at = now() - interval '1 second' where trigger_id = :triggerId`,
    { triggerId },
  )
  await execute(
    app.database.pool,
    `update account_token set due_at = now() - interval '1 second' where integrated_account_id = :accountId`,
    { accountId },
  )
  return {
    async expectDone() {
      await vi.waitFor(async () => {
        const { runs } = await listRuns(triggerId)
        expect(runs.map(({ status }) => status)).toEqual(['completed'])
        expect(await client.ok(SyncJobRunService.method.getSyncJobRun, { id: runId })).toMatchObject({
          status: 'completed',
        })
        expect(await tokenVersionOf(accountId)).toBe(2)
      }, EVENTUALLY)
    },
    async expectUntouched() {
      expect((await listRuns(triggerId)).runs).toEqual([])
      expect(await client.ok(SyncJobRunService.method.getSyncJobRun, { id: runId })).toMatchObject({
        status: 'created',
        waiting: { reason: 'no_worker' },
      })
      expect(await tokenVersionOf(accountId)).toBe(1)
    },
  }
}

async function listRuns(trigger_id: string) {
  const { sync_job_runs } = await client.ok(SyncJobRunService.method.listSyncJobRuns, { trigger_id })
  return { runs: sync_job_runs as unknown as readonly JsonObject[] }
}

it('workers of different regions activate, refresh, tick and run for the accounts of their regions alone', async () => {
  const [eu, wnam] = [await connectIn('eu'), await connectIn('wnam')]
  const euWorker = app.startWorker({ PATCHBAY_REGION: 'eu,apac' })
  await vi.waitFor(async () => expect(await statusOf(eu.accountId)).toBe('active'), EVENTUALLY)
  expect(await statusOf(wnam.accountId)).toBe('connecting')
  expect(requestsOf('wnam')).toEqual([])
  await euWorker.drain()

  const wnamWorker = app.startWorker({ PATCHBAY_REGION: 'wnam' })
  await vi.waitFor(async () => expect(await statusOf(wnam.accountId)).toBe('active'), EVENTUALLY)
  expect(requestsOf('wnam')).toEqual(['/token', '/me'])
  await wnamWorker.drain()

  const webhookId = await idOf(client, WebhookService.method.createWebhook, { target_url: upstream.url })
  const [euWork, wnamWork] = [await addWork(eu, webhookId), await addWork(wnam, webhookId)]
  app.startWorker({ PATCHBAY_REGION: 'eu' })
  await euWork.expectDone()
  await wnamWork.expectUntouched()
  expect(requestsOf('wnam')).toEqual(['/token', '/me'])

  app.startWorker({ PATCHBAY_REGION: 'wnam,enam' })
  await wnamWork.expectDone()
  expect(requestsOf('wnam').toSorted()).toEqual(['/items', '/items', '/me', '/token', '/token'])
})
