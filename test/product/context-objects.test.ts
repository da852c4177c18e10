import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { DaemonService } from '../../gen/patchbay/v1/daemon_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { SyncJobService } from '../../gen/patchbay/v1/sync_job_service_pb.ts'
import { execute } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { EVENTUALLY } from '../support/eventually.ts'
import { statusOver } from '../support/matchers.ts'
import { S3_BUCKET, S3_KEY, startS3Server } from '../support/s3-server.ts'
import { firstTenant, idOf } from '../support/seeded-tenant.ts'
import { readOne } from '../support/tenant.ts'
import { startUpstream } from '../support/upstream.ts'
import { connectAccount, LOCAL_UPSTREAM } from './calls.ts'

const {
  getIntegratedAccount: get,
  listIntegratedAccounts: list,
  updateIntegratedAccount: update,
} = IntegratedAccountService.method

const upstream = await startUpstream()
const s3 = await startS3Server()
const app = await startTestApp({
  ...LOCAL_UPSTREAM,
  PATCHBAY_OBJECT_STORE_ENDPOINT: s3.endpoint,
  PATCHBAY_OBJECT_STORE_BUCKET: S3_BUCKET,
  PATCHBAY_OBJECT_STORE_REGION: S3_KEY.region,
  PATCHBAY_OBJECT_STORE_ACCESS_KEY: S3_KEY.accessKeyId,
  PATCHBAY_OBJECT_STORE_SECRET_KEY: S3_KEY.secretAccessKey,
  PATCHBAY_OBJECT_STORE_ALLOW: '127.0.0.0/8',
})
app.startWorker()
const clients = app.clients()

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

const DEFINITION: JsonObject = {
  label: 'Example',
  base_url: upstream.url,
  credentials: { api_key: { config: { fields: [{ name: 'api_key', type: 'password', required: true }] } } },
  authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
  resources: { items: { list: { method: 'get', path: '/items/{{context.archive.name}}' } } },
}
const CONTEXT = { archive: { name: 'a7', text: 'x'.repeat(100_000) }, plain: 1 }

async function connectStored(): Promise<string> {
  const fields = { context: CONTEXT, object_store_context_fields: ['archive'] }
  const { accountId } = await connectAccount(app, firstTenant(app), DEFINITION, fields)
  const sql =
    'select count(content) as count from context_object where integrated_account_id = :id and delete_at is null'
  const isStored = async () => expect(await readOne(app.database, sql, { id: accountId })).toEqual({ count: 0 })
  await vi.waitFor(isStored, EVENTUALLY)
  return accountId
}

describe.each(inTurn(clients))('a context key in a bucket over $wire', (client) => {
  it('reads and changes like any other, and calls read it', async () => {
    const id = await connectStored()
    expect(await client.ok(get, { id })).toMatchObject({ context: CONTEXT, context_errors: [] })
    upstream.script({ request: 'GET /items/a7', answer: { json: [] } })
    const call = { integrated_account_id: id, resource: 'items', method: 'list' }
    await client.ok(ProxyService.method.call, call)
    const changed = await client.ok(update, { id, context: { archive: { name: 'b8' } } })
    expect(changed).toMatchObject({ context: { archive: { name: 'b8' }, plain: 1 } })
    upstream.script({ request: 'GET /items/b8', answer: { json: [] } })
    await client.ok(ProxyService.method.call, call)
  })

  it('is in a list with the full view, and not read for one with the basic view', async () => {
    const id = await connectStored()
    const contextIn = async (view: string) => {
      const { integrated_accounts } = await client.ok(list, { view, page_size: 1 })
      const [account] = integrated_accounts as unknown as readonly JsonObject[]
      expect(account?.id).toBe(id)
      return account?.context
    }
    expect(await contextIn('full')).toEqual(CONTEXT)
    expect(await contextIn('basic')).toEqual({ plain: 1 })
  })

  it('that is too large is rejected, and nothing is stored', async () => {
    const id = await connectStored()
    const { version: _, ...before } = await client.ok(get, { id })
    const error = await client.callError(update, { id, context: { archive: 'x'.repeat(1024 * 1024), plain: 2 } })
    expect(error).toMatchObject({ reason: 'INVALID_FIELD', httpStatus: statusOver(client, 400) })
    expect(error.violations).toMatchObject([{ field: 'context.archive' }])
    expect(await client.ok(get, { id })).toEqual(before)
  })
})

describe('an object that the bucket does not have', () => {
  /** This process has read the values: the row names another object, which it has to ask for. */
  async function lose(id: string): Promise<void> {
    const sql = 'update context_object set id = gen_random_uuid(), content = null where integrated_account_id = :id'
    await execute(app.database.pool, sql, { id })
  }

  it('is an error of its key in answers, and of calls that read it', async () => {
    const id = await connectStored()
    await lose(id)
    for (const client of clients) {
      const account = await client.ok(get, { id })
      expect(account).toMatchObject({
        context: { plain: 1 },
        context_errors: [{ key: 'archive', reason: 'CONTEXT_OBJECT_MISSING' }],
      })
      const call = { integrated_account_id: id, resource: 'items', method: 'list' }
      const error = await client.callError(ProxyService.method.call, call)
      expect(error).toMatchObject({ reason: 'CONTEXT_OBJECT_MISSING', metadata: { key: 'archive' } })
    }
  })

  it('fails the run of a daemon, which is sent the whole context', async () => {
    const fields = { context: CONTEXT, object_store_context_fields: ['archive'] }
    const { accountId, integrationId } = await connectAccount(app, firstTenant(app), DEFINITION, fields)
    const [client] = clients
    if (client === undefined) throw new Error('no client')
    const admin = app.client('connect', { token: app.first.teamToken })
    const { name } = await admin.ok(IntegrationService.method.getIntegration, { id: integrationId })
    const resources = [{ resource: 'items', method: 'list' }]
    const job = { label: 'items', integration_name: String(name), resources }
    const sync_job_id = await idOf(client, SyncJobService.method.createSyncJob, job)
    const { daemon_id } = await client.ok(DaemonService.method.registerDaemon, { label: 'host', group_key: 'g' })
    const plan = { sync_job_id, integrated_account_id: accountId, daemon_group_key: 'g' }
    const claim = async () => {
      const id = await idOf(client, SyncJobRunService.method.createSyncJobRun, plan)
      const { runs } = await client.ok(DaemonService.method.claimRuns, { daemon_id: daemon_id ?? '' })
      return { id, runs: runs as unknown as readonly JsonObject[] }
    }
    expect((await claim()).runs).toMatchObject([{ context: CONTEXT }])
    await execute(app.database.pool, 'delete from run_lease')
    await lose(accountId)
    const { id, runs } = await claim()
    expect(runs).toEqual([])
    expect(await client.ok(SyncJobRunService.method.getSyncJobRun, { id })).toMatchObject({
      status: 'failed',
      error: { reason: 'CONTEXT_OBJECT_MISSING' },
    })
  })
})
