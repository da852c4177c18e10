import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { SyncJobCronTriggerService } from '../../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { SyncJobService } from '../../../../gen/patchbay/v1/sync_job_service_pb.ts'
import { UnifiedMappingService } from '../../../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import { WebhookService } from '../../../../gen/patchbay/v1/webhook_service_pb.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { RunQueue } from '../../../../src/sync/runs/index.ts'
import { LOCAL_UPSTREAM } from '../../../product/calls.ts'
import { connectMapped, contact, storeContacts } from '../../../product/unified.ts'
import { startTestApp } from '../../../support/app.ts'
import { testDatabase } from '../../../support/database.ts'
import { firstTenant, idOf, NEVER_FIRES } from '../../../support/seeded-tenant.ts'
import { type Received, startReceiver } from '../../../support/webhook-receiver.ts'
import { startPagedUpstream, type UpstreamScript } from '../../cli/daemon/support/paged-upstream.ts'
import { startDaemon } from '../../cli/daemon/support/running-daemon.ts'

const app = await startTestApp(LOCAL_UPSTREAM)
const tenant = firstTenant(app)
const client = app.client('connect')
const { url: storeUrl } = await testDatabase()
const store = new pg.Pool({ connectionString: storeUrl, max: 2 })
const { listUnifiedMappings, deleteUnifiedMapping } = UnifiedMappingService.method
const { createSyncJob, updateSyncJob } = SyncJobService.method
const { createSyncJobRun, getSyncJobRun } = SyncJobRunService.method
const { createSyncJobCronTrigger } = SyncJobCronTriggerService.method

afterAll(() => store.end())

const NODE: JsonObject = { resource: 'crm/contacts', method: 'list' }
const ids = (count: number) => Array.from({ length: count }, (_, index) => index + 1)
const records = (count: number) => (path: string) => (path === '/contacts' ? ids(count).map((id) => contact(id)) : [])

/** An account whose contacts are mapped, and a job that syncs them. */
async function makeCustomer(script: UpstreamScript, resources: readonly JsonObject[] = [NODE]) {
  const upstream = await startPagedUpstream(script)
  const { accountId, integrationName } = await connectMapped(app, tenant, upstream.url)
  const job = { label: 'Contacts', integration_name: integrationName, resources }
  const jobId = await idOf(client, createSyncJob, job)
  return {
    upstream,
    accountId,
    integrationName,
    subject: { sync_job_id: jobId, integrated_account_id: accountId },
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  }
}

/** A webhook that gets what the run sends it, and nothing else. */
async function makeReceiver() {
  const waiting: ((events: readonly SyncEvent[]) => void)[] = []
  let events: SyncEvent[] = []
  const receiver = await startReceiver((request) => {
    const event = eventOf(request)
    events.push(event)
    if (!/:(completed|failed)$/.test(event.event)) return { status: 204 }
    waiting.shift()?.(events)
    events = []
    return { status: 204 }
  })
  const hook = { target_url: receiver.url, event_types: ['record:*'] }
  const webhookId = await idOf(client, WebhookService.method.createWebhook, hook)
  const nextEnd = () => new Promise<readonly SyncEvent[]>((resolve) => waiting.push(resolve))
  return {
    webhookId,
    nextEnd,
    /** The events of a run, once it has ended. */
    async eventsOf(subject: JsonObject): Promise<readonly SyncEvent[]> {
      const ended = nextEnd()
      await client.ok(createSyncJobRun, { ...subject, webhook_id: webhookId })
      return await ended
    },
    [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
  }
}

interface SyncEvent {
  readonly event: string
  readonly payload: JsonObject & { readonly records?: readonly JsonObject[] }
}

function eventOf({ body }: Received): SyncEvent {
  return JSON.parse(body)
}

/** Lets the lease of a run expire, as that of a process that died. */
async function loseLease(id: string) {
  const expire = `update run_lease set expires_at = now() - interval '1 second' where run_id = :id`
  await execute(app.database.pool, expire, { id })
  await new RunQueue({ database: app.database, random: Math.random }).reap()
}

const recordsIn = (events: readonly SyncEvent[]) => events.flatMap(({ payload }) => payload.records ?? [])

describe('a sync of a unified resource into a webhook', () => {
  it('delivers every record in the shape of the model, then asks for those that have changed since', async () => {
    await using customer = await makeCustomer({ records: records(3) })
    await using receiver = await makeReceiver()
    const worker = app.startWorker()
    const events = await receiver.eventsOf(customer.subject)
    expect(events.map(({ event }) => event.split(':')[1])).toEqual(['started', 'record', 'record', 'completed'])
    expect(events[1]?.payload).toMatchObject({ resource: 'crm/contacts', sequence: 1 })
    expect(recordsIn(events)).toMatchObject(
      ids(3).map((id) => ({
        id: String(id),
        remote_id: String(id),
        lifecycle_stage: 'lead',
        owner: { id: `${id + 10}` },
      })),
    )
    const asked = customer.upstream.requests.length
    expect(customer.upstream.requests[0]).not.toContain('since')
    await receiver.eventsOf(customer.subject)
    expect(customer.upstream.requests[asked]).toMatch(/since=20\d\d-/)
    await worker.drain()
  })

  it('reads children for each unified parent, which is asked for whole, and delivers both', async () => {
    const child = { resource: 'users', method: 'get', depends_on: 'crm/contacts', persist: true }
    const resources = [NODE, { ...child, id: '{{resources.crm.contacts.owner.id}}' }]
    await using customer = await makeCustomer({ records: records(2) }, resources)
    await using receiver = await makeReceiver()
    const worker = app.startWorker()
    await receiver.eventsOf(customer.subject)
    await receiver.eventsOf(customer.subject)
    expect(customer.upstream.requests.filter((path) => path.startsWith('/users/'))).toEqual(
      ['/users/11', '/users/12', '/users/11', '/users/12'].map((path) => expect.stringContaining(path)),
    )
    expect(customer.upstream.requests.join()).not.toContain('since')
    await worker.drain()
  })

  it('fails with the reason when its mapping is gone', async () => {
    await using customer = await makeCustomer({ records: records(1) })
    await using receiver = await makeReceiver()
    const { webhookId } = receiver
    const { id } = await client.ok(createSyncJobRun, { ...customer.subject, webhook_id: webhookId })
    const { unified_mappings } = await client.ok(listUnifiedMappings, { integration_name: customer.integrationName })
    for (const { id } of unified_mappings as { id: string }[]) await client.ok(deleteUnifiedMapping, { id })
    const worker = app.startWorker()
    const events = receiver.nextEnd()
    expect((await events).at(-1)?.event).toBe('sync_job_run:failed')
    await worker.drain()
    const failed = await client.ok(getSyncJobRun, { id: String(id) })
    expect(failed).toMatchObject({ status: 'failed', error: { reason: 'UNIFIED_NOT_MAPPED' } })
  })
})

describe('a sync of a unified resource into the PostgreSQL of a daemon', () => {
  it('resumes at its page after a kill, and shows typed rows', async () => {
    const [reached, mayGoOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let isKilled = false
    await using customer = await makeCustomer({
      records: records(8),
      async beforePage(_, page) {
        if (page !== 3 || isKilled) return
        reached.resolve()
        await mayGoOn.promise
      },
    })
    const target = { url: app.url, token: tenant.environmentToken, group: 'unified', store: storeUrl, schema: 'crm' }
    const { id } = await client.ok(createSyncJobRun, { ...customer.subject, daemon_group_key: target.group })
    {
      await using _killed = startDaemon(target)
      await reached.promise
      isKilled = true
    }
    await loseLease(String(id))
    await using next = startDaemon(target)
    mayGoOn.resolve()
    await next.logged('a run ended here', { run_id: id, outcome: 'completed' })
    const pages = customer.upstream.requests.map((path) => Number(new URL(path, 'http://x').searchParams.get('page')))
    // Progress is saved ten times a second: the page before may be read again.
    expect([pages.filter((page) => page === 1).length, pages.slice(0, 3), pages.slice(-3)]).toEqual([
      1,
      [1, 2, 3],
      [3, 4, 5],
    ])
    const { rows } = await store.query(
      `select id, remote_id, first_name, lifecycle_stage, emails->0->>'address' as email,
         updated_at - timestamptz '2026-01-01' as age, run_id
       from crm.unified_crm_contacts where updated_at < '2026-01-03' order by id`,
    )
    expect(rows).toMatchObject([
      { id: '1', remote_id: '1', first_name: 'Ada 1', lifecycle_stage: 'lead', email: 'a1@b.example', run_id: id },
      { id: '2', age: { days: 1, milliseconds: 250 } },
    ])
    expect((await store.query(`select id from crm.unified_crm_contacts`)).rowCount).toBe(8)
  })
})

describe('a node of a unified resource', () => {
  it.each<[string, JsonObject, string]>([
    ['an unknown model', { resource: 'crn/contacts' }, 'resources[0].resource'],
    ['an unknown resource', { resource: 'crm/contact' }, 'resources[0].resource'],
    ['a resource without mapping', { resource: 'crm/leads' }, 'resources[0].resource'],
    ['an unknown method', { method: 'lists' }, 'resources[0].resource'],
    ['a filter that is not passed on', { query: { first_name: 'Ada' } }, 'resources[0].query.first_name'],
    ['an order that is not passed on', { query: { sort_by: 'name' } }, 'resources[0].query.sort_by'],
    ['no comparison', { query: { updated_at: { since: 'x' } } }, 'resources[0].query.updated_at[since]'],
  ])('is rejected for %s, when a job is created or changed', async (_, fields, field) => {
    await using customer = await makeCustomer({ records: records(1) })
    const resources = [{ ...NODE, ...fields }]
    const job = { label: 'x', integration_name: customer.integrationName, resources }
    const created = await client.callError(createSyncJob, job)
    expect([created.reason, created.violations[0]?.field]).toEqual(['RESOURCES_INVALID', field])
    const change = { id: customer.subject.sync_job_id, resources }
    const changed = await client.callError(updateSyncJob, change)
    expect([changed.reason, changed.violations[0]?.field]).toEqual(['RESOURCES_INVALID', field])
  })

  it('may have filters by template, and such as are left out', async () => {
    await using customer = await makeCustomer({ records: records(1) })
    const query = {
      updated_at: { gt: '{{args.since}}' },
      first_name: 'Ada',
      strict_filters: false,
      limit: '{{args.limit}}',
    }
    const job = { label: 'x', integration_name: customer.integrationName, resources: [{ ...NODE, query }] }
    expect(await client.ok(createSyncJob, job)).toMatchObject({ resources: [{ query }] })
  })

  it('is rejected for an account without the mapping, when a run or trigger is created', async () => {
    await using customer = await makeCustomer({ records: records(1) })
    await storeContacts(app, tenant, customer.integrationName, { list: { method: null } }, customer.accountId)
    const request = { ...customer.subject, daemon_group_key: 'g' }
    const run = await client.callError(createSyncJobRun, request)
    expect([run.reason, run.violations[0]?.field]).toEqual(['RESOURCES_INVALID', 'resources[0].resource'])
    const trigger = await client.callError(createSyncJobCronTrigger, { ...request, cron_expression: NEVER_FIRES })
    expect([trigger.reason, trigger.violations[0]?.field]).toEqual(['RESOURCES_INVALID', 'resources[0].resource'])
  })
})
