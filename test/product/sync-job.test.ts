import { describe, expect, it } from 'vitest'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobService } from '../../gen/patchbay/v1/sync_job_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { statusOver, TIME, UUID } from '../support/matchers.ts'
import { seedTenant } from '../support/seeded-tenant.ts'

const {
  createSyncJob: create,
  getSyncJob: get,
  listSyncJobs: list,
  updateSyncJob: update,
  deleteSyncJob: remove,
} = SyncJobService.method

const app = await startTestApp()
const clients = app.clients()
const RESOURCES = [
  { resource: 'repos', method: 'list', query: { owner: '{{args.owner}}' }, loop_on: 'owners', persist: true },
  { resource: 'issues', method: 'list', query: {}, depends_on: 'repos', look_back_seconds: 3_600 },
]

/** The job is stored all the same: it may be written before its integration is installed. */
const NOT_INSTALLED = {
  path: 'integration_name',
  rule: 'integration.not_installed',
  message: 'not-installed is not installed in this environment, so that no account can run the job yet',
}

const make = (client: Client, fields: JsonObject = {}) =>
  client.ok(create, { label: 'Issues', integration_name: 'not-installed', resources: RESOURCES, ...fields })

describe.each(inTurn(clients))('storing a job over $wire', (client) => {
  it('answers with every field, and the same reads back on every wire', async () => {
    const argsSchema = { type: 'object', properties: { owners: { type: 'array', items: { type: 'string' } } } }
    const job = await make(client, {
      args_schema: argsSchema,
      args_validation: '$count(args.owners) > 9 ? {"message": "many"}',
    })

    expect(job).toEqual({
      id: UUID,
      environment_id: app.first.environmentId,
      label: 'Issues',
      integration_name: 'not-installed',
      args_schema: argsSchema,
      args_validation: '$count(args.owners) > 9 ? {"message": "many"}',
      resources: RESOURCES,
      error_handling: 'ignore',
      give_up_after_seconds: 86_400,
      created_at: TIME,
      updated_at: job.created_at,
      etag: '"v1"',
      warnings: [NOT_INSTALLED],
    })
    for (const other of clients) expect(await other.ok(get, { id: job.id })).toEqual(job)
  })

  it('takes any arguments when there is no schema', async () => {
    expect(await make(client)).toMatchObject({ args_schema: {}, args_validation: '' })
  })
})

describe.each(inTurn(clients))('resources that form no plan over $wire', (client) => {
  it('are rejected with every violation, and nothing is stored', async () => {
    const before = await client.ok(list, { page_size: 1000 })
    const resources = [
      { resource: 'issues', method: 'list', depends_on: 'nobody' },
      { resource: 'repos', method: 'list', query: { q: '{{args.' } },
    ]

    const rejection = await client.callError(create, { label: 'x', integration_name: 'x', resources })

    expect(rejection).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'RESOURCES_INVALID',
      httpStatus: statusOver(client, 400),
    })
    expect(rejection.violations.map(({ field }) => field)).toEqual(['resources[0].depends_on', 'resources[1].query.q'])
    expect(await client.ok(list, { page_size: 1000 })).toEqual(before)
  })

  it('must be there', async () => {
    const { violations } = await client.callError(create, { label: 'x', integration_name: 'x', resources: [] })
    expect(violations).toEqual([expect.objectContaining({ field: 'resources', rule: 'repeated.min_items' })])
  })

  it('are checked one by one against the contract', async () => {
    const resources = [
      { resource: 'repos', method: 'list' },
      { resource: '', method: '' },
    ]
    const { violations } = await client.callError(create, { label: 'x', integration_name: 'x', resources })
    expect(violations.map(({ field }) => field)).toEqual(['resources[1].resource', 'resources[1].method'])
  })
})

describe.each(inTurn(clients))('a check of arguments that does not parse over $wire', (client) => {
  it('is rejected', async () => {
    const rejection = await client.callError(create, {
      label: 'x',
      integration_name: 'x',
      resources: RESOURCES,
      args_validation: '$count(',
    })
    expect(rejection).toMatchObject({
      reason: 'EXPRESSION_FAILED',
      violations: [expect.objectContaining({ field: 'args_validation' })],
    })
  })
})

describe.each(inTurn(clients))('what errors do in runs of a job over $wire', (client) => {
  it('is set with the job and changed alone', async () => {
    const job = await make(client, { error_handling: 'batch' })
    expect(job).toMatchObject({ error_handling: 'batch' })
    expect(await client.ok(update, { id: job.id, label: 'other' })).toMatchObject({ error_handling: 'batch' })
    const updated = await client.ok(update, { id: job.id, error_handling: 'fail_fast' })
    expect(updated).toEqual({ ...job, label: 'other', error_handling: 'fail_fast', updated_at: TIME, etag: '"v3"' })
  })

  it.each(['', 'explode'])('is none of the words when it is "%s"', async (error_handling) => {
    const { violations } = await client.callError(update, { id: (await make(client)).id, error_handling })
    expect(violations).toEqual([expect.objectContaining({ field: 'error_handling', rule: 'string.in' })])
  })
})

describe.each(inTurn(clients))('how long runs of a job go on trying over $wire', (client) => {
  it('is set with the job and changed alone, also to none', async () => {
    const job = await make(client, { give_up_after_seconds: 3_600 })
    expect(job).toMatchObject({ give_up_after_seconds: 3_600 })
    expect(await client.ok(update, { id: job.id, label: 'other' })).toMatchObject({ give_up_after_seconds: 3_600 })
    const none = await client.ok(update, { id: job.id, give_up_after_seconds: 0 })
    expect(none.give_up_after_seconds ?? 0).toBe(0)
  })

  it.each([-1, 604_801])('is not %d s', async (give_up_after_seconds) => {
    const { violations } = await client.callError(update, { id: (await make(client)).id, give_up_after_seconds })
    expect(violations).toEqual([expect.objectContaining({ field: 'give_up_after_seconds' })])
  })
})

describe.each(inTurn(clients))('changing a job over $wire', (client) => {
  it('replaces resources and schema whole, and keeps what is not given', async () => {
    const before = await make(client, { args_schema: { type: 'object' }, args_validation: 'null' })
    const resources = [{ resource: 'repos', method: 'list', query: {} }]

    const after = await client.ok(update, { id: before.id, resources, args_schema: {} })

    expect(after).toEqual({ ...before, resources, args_schema: {}, updated_at: TIME, etag: '"v2"' })
    expect(await client.ok(update, { id: before.id, args_validation: '' })).toMatchObject({ args_validation: '' })
  })

  it('cannot empty its resources: an empty list counts as not given', async () => {
    const before = await make(client)
    expect(await client.ok(update, { id: before.id, resources: [] })).toEqual(before)
  })

  it('to resources that form no plan is rejected and changes nothing', async () => {
    const before = await make(client)
    const resources = [{ resource: 'a', method: 'list', depends_on: 'a' }]

    expect(await client.callError(update, { id: before.id, label: 'x', resources })).toMatchObject({
      reason: 'RESOURCES_INVALID',
    })
    expect(await client.ok(get, { id: before.id })).toEqual(before)
  })
})

describe.each(inTurn(clients))('a job of an installed integration over $wire', (client) => {
  it('has no warning, unlike one whose integration is misspelt, which is told the name', async () => {
    const world = await seedTenant(app, app.first)
    const job = await client.ok(get, { id: world.syncJobId })
    expect(job.warnings).toEqual([])
    const misspelt = await make(client, { integration_name: `${job.integration_name}x` })
    const message = expect.stringContaining(`did you mean ${job.integration_name}?`)
    const warnings = [{ path: 'integration_name', rule: 'integration.not_installed', message }]
    expect(misspelt).toMatchObject({ warnings })
    expect(await client.ok(list, { page_size: 1 })).toMatchObject({ sync_jobs: [{ id: misspelt.id, warnings }] })
    expect(await client.ok(update, { id: misspelt.id, label: 'Again' })).toMatchObject({ warnings })
  })

  it('may name only what the integration offers', async () => {
    const world = await seedTenant(app, app.first)
    const { integration_name } = await client.ok(get, { id: world.syncJobId })
    const resources = [
      { resource: 'repos', method: 'archive' },
      { resource: 'planets', method: 'list' },
    ]

    const rejection = await client.callError(create, {
      label: 'x',
      integration_name: integration_name ?? '',
      resources,
    })

    expect(rejection.reason).toBe('RESOURCES_INVALID')
    expect(rejection.violations.map(({ field }) => field)).toEqual(['resources[0].method', 'resources[1].resource'])
  })
})

describe.each(inTurn(clients))('deleting a job over $wire', (client) => {
  it('that triggers run is rejected, and with force takes them along', async () => {
    const world = await seedTenant(app, app.first)
    const id = world.syncJobId
    const { getSyncJobCronTrigger } = SyncJobCronTriggerService.method

    expect(await client.callError(remove, { id })).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'RESOURCE_IN_USE',
      resource: { type: 'sync_job', id },
      httpStatus: statusOver(client, 400),
    })
    expect(await client.ok(remove, { id, force: true })).toEqual({})
    expect(await client.callError(getSyncJobCronTrigger, { id: world.syncJobCronTriggerId })).toMatchObject({
      code: 'NOT_FOUND',
    })
  })
})
