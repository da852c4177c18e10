import { beforeAll, describe, expect, it } from 'vitest'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobService } from '../../gen/patchbay/v1/sync_job_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import { execute } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { type Client, JSON_PROTOCOLS } from '../support/client.ts'
import { statusOver, TIME, UUID } from '../support/matchers.ts'
import { createApiTenant, NEVER_FIRES, type SeededTenant, seedTenant } from '../support/seeded-tenant.ts'

const {
  createSyncJobCronTrigger: create,
  getSyncJobCronTrigger: get,
  listSyncJobCronTriggers: list,
  updateSyncJobCronTrigger: update,
  deleteSyncJobCronTrigger: remove,
  pauseSyncJobCronTrigger: pause,
  resumeSyncJobCronTrigger: resume,
  runSyncJobCronTrigger: runNow,
  listSyncJobCronTriggerTicks: ticks,
} = SyncJobCronTriggerService.method

const app = await startTestApp()
const clients = app.clients()
const world = await seedTenant(app, app.first)
const plan = { sync_job_id: world.syncJobId, integrated_account_id: world.integratedAccountId }

const make = (client: Client, fields: JsonObject = {}) =>
  client.ok(create, { ...plan, cron_expression: NEVER_FIRES, daemon_group_key: 'warehouse', ...fields })

async function count(client: Client): Promise<number> {
  const { sync_job_cron_triggers } = await client.ok(list, { page_size: 1000 })
  return Array.isArray(sync_job_cron_triggers) ? sync_job_cron_triggers.length : Number.NaN
}

/** First of January, the moment NEVER means next. */
const NEXT_NEVER: unknown = expect.stringMatching(/^\d{4}-01-01T00:00:00\.000Z$/)

describe.each(inTurn(clients))('scheduling a job over $wire', (client) => {
  it('answers with every field of the specification, and the same reads back on every wire', async () => {
    const trigger = await client.ok(create, {
      ...plan,
      cron_expression: '0 0 1 JAN *',
      webhook_id: world.webhookId,
      args: { repos: ['a', 'b'], nested: { deep: null } },
      resources: [
        { resource: 'repos', method: 'list', persist: true, query: { owner: '{{args.owner}}' } },
        { resource: 'issues', method: 'list', depends_on: 'repos', query: { repo: '{{resources.repos.name}}' } },
        { resource: 'issues', method: 'create', id: '{{args.id}}', loop_on: 'repos', persist: false },
      ],
    })

    expect(trigger).toEqual({
      id: UUID,
      ...plan,
      cron_expression: '0 0 1 JAN *',
      webhook_id: world.webhookId,
      daemon_group_key: null,
      args: { repos: ['a', 'b'], nested: { deep: null } },
      resources: [
        { resource: 'repos', method: 'list', persist: true, query: { owner: '{{args.owner}}' } },
        { resource: 'issues', method: 'list', depends_on: 'repos', query: { repo: '{{resources.repos.name}}' } },
        { resource: 'issues', method: 'create', id: '{{args.id}}', loop_on: 'repos', persist: false, query: {} },
      ],
      resources_inherited: false,
      created_at: TIME,
      updated_at: trigger.created_at,
      paused: false,
      next_run_at: NEXT_NEVER,
      etag: '"v1"',
    })
    for (const other of clients) expect(await other.ok(get, { id: trigger.id })).toEqual(trigger)
  })

  it('for a daemon group has no webhook, the resources of the job, and free-form fields although empty', async () => {
    const trigger = await make(client)
    const { resources } = await client.ok(SyncJobService.method.getSyncJob, { id: world.syncJobId })
    expect(trigger).toMatchObject({ daemon_group_key: 'warehouse', args: {}, resources, resources_inherited: true })
    expect(trigger.webhook_id).toBe(null)
    const listed = await client.ok(list, { page_size: 1 })
    expect(listed.sync_job_cron_triggers).toEqual([trigger])
  })

  it('stores the expression as it was written', async () => {
    const text = '  0   0 1  jan  * '
    expect(await make(client, { cron_expression: text })).toMatchObject({ cron_expression: text })
  })
})

describe.each(inTurn(clients))('the destination of a new trigger over $wire', (client) => {
  it('must be given', async () => {
    const before = await count(client)
    const rejection = await client.callError(create, { ...plan, cron_expression: NEVER_FIRES })

    expect(rejection).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'DESTINATION_REQUIRED',
      httpStatus: statusOver(client, 400),
    })
    expect(await count(client)).toBe(before)
  })

  it.each(['', 'with spaces', 'x'.repeat(129)])('must be a group key of the contract: "%s"', async (key) => {
    const rejection = await client.callError(create, { ...plan, cron_expression: NEVER_FIRES, daemon_group_key: key })
    expect(rejection.violations).toEqual([
      expect.objectContaining({ field: 'daemon_group_key', rule: 'string.pattern' }),
    ])
  })
})

describe.each(JSON_PROTOCOLS.map((wire) => app.client(wire)))('a destination that is null over $wire', (client) => {
  const required = {
    code: 'INVALID_ARGUMENT',
    reason: 'DESTINATION_REQUIRED',
    httpStatus: 400,
    message: expect.stringContaining('records need a destination, give daemon_group_key or webhook_id'),
  }

  it.each([{ webhook_id: null }, { daemon_group_key: null }, { webhook_id: null, cron_expression: '@daily' }])(
    'is rejected without the other, and nothing is stored: %j',
    async (fields) => {
      const trigger = await make(client)
      expect(await client.callError(update, { id: trigger.id, ...fields })).toMatchObject(required)
      expect(await client.callError(create, { ...plan, cron_expression: NEVER_FIRES, ...fields })).toMatchObject(
        required,
      )
      expect(await client.ok(get, { id: trigger.id })).toEqual(trigger)
    },
  )

  it('counts as absent beside the other, so that an answer can be sent back', async () => {
    const { id, daemon_group_key = null, webhook_id = null } = await make(client)
    const moved = await client.ok(update, { id, daemon_group_key: null, webhook_id: world.webhookId })
    expect(moved).toMatchObject({ daemon_group_key: null, webhook_id: world.webhookId })
    expect(await client.ok(update, { id, daemon_group_key, webhook_id })).toMatchObject({
      daemon_group_key,
      webhook_id,
    })
  })

  it.each([[[]], [null]])('resources %j are those of the job again', async (empty) => {
    const own = [{ resource: 'repos', method: 'list', persist: true }]
    const { id } = await make(client, { resources: own })
    expect(await client.ok(update, { id, resources: empty })).toMatchObject({ resources_inherited: true })
  })
})

describe.each(inTurn(clients))('what a trigger syncs over $wire', (client) => {
  const repos = (query: JsonObject = {}) => [{ resource: 'repos', method: 'list', persist: true, query }]

  it('is changed with its resources and arguments, and kept where they are absent', async () => {
    const { id, etag } = await make(client, { args: { owner: 'a' } })
    const own = await client.ok(update, { id, resources: repos({ owner: '{{args.owner}}' }) })
    expect(own).toMatchObject({
      resources: repos({ owner: '{{args.owner}}' }),
      resources_inherited: false,
      args: { owner: 'a' },
    })
    expect(own.etag).not.toBe(etag)
    const both = await client.ok(update, { id, args: { owner: 'b' } })
    expect(both).toMatchObject({ args: { owner: 'b' }, resources_inherited: false })
    expect(await client.ok(update, { id, args: {} })).toMatchObject({ args: {}, resources_inherited: false })
    const again = await client.ok(update, { id, resources_inherited: true })
    expect(again).toMatchObject({ resources_inherited: true })
    expect(await client.ok(get, { id })).toEqual(again)
  })

  it('stays that of the job when the answer is sent back, and follows the job', async () => {
    const { id, etag, resources = null, args = null } = await make(client)
    expect(await client.ok(update, { id, resources, args })).toMatchObject({ etag, resources_inherited: true })
  })

  it.each<[string, JsonObject, string]>([
    ['resources that the definition lacks', { resources: [{ resource: 'repo', method: 'list' }] }, 'RESOURCES_INVALID'],
    ['resources without their parent', { resources: [{ ...repos()[0], depends_on: 'x' }] }, 'RESOURCES_INVALID'],
    ['both kinds of resources', { resources: repos(), resources_inherited: true }, 'INVALID_FIELD'],
    ['an old version', { args: { a: 1 }, etag: '"v9"' }, 'ETAG_MISMATCH'],
  ])('is not changed by %s', async (_, fields, reason) => {
    const trigger = await make(client)
    expect(await client.callError(update, { id: trigger.id, ...fields })).toMatchObject({ reason })
    expect(await client.ok(get, { id: trigger.id })).toEqual(trigger)
  })

  it('has arguments that the job accepts', async () => {
    const job = {
      label: 'Owned',
      integration_name: 'any',
      resources: repos(),
      args_schema: { properties: { owner: { type: 'string', default: 'acme' } }, additionalProperties: false },
    }
    await client.ok(SyncJobService.method.updateSyncJob, { id: world.syncJobId, args_schema: job.args_schema })
    const { id } = await make(client)
    expect(await client.ok(update, { id, args: {} })).toMatchObject({ args: { owner: 'acme' } })
    expect(await client.callError(update, { id, args: { owner: 1 } })).toMatchObject({
      reason: 'ARGS_INVALID',
      violations: [expect.objectContaining({ field: 'args.owner' })],
    })
    await client.ok(SyncJobService.method.updateSyncJob, { id: world.syncJobId, args_schema: {} })
  })

  it('is read whole by a run that is asked to', async () => {
    const { id } = await make(client)
    expect(await client.ok(runNow, { id, ignore_previous_run: true })).toMatchObject({ ignore_previous_run: true })
    expect(await client.ok(runNow, { id })).toMatchObject({ ignore_previous_run: false })
  })
})

// A gRPC message cannot hold both members of a oneof: the last one on the wire wins.
describe.each(JSON_PROTOCOLS.map((wire) => app.client(wire)))(
  'both destinations in one request over $wire',
  (client) => {
    const both = { daemon_group_key: 'warehouse', webhook_id: world.webhookId }
    const conflict = {
      code: 'INVALID_ARGUMENT',
      reason: 'DESTINATION_CONFLICT',
      httpStatus: 400,
      violations: [expect.objectContaining({ field: 'webhook_id', rule: 'oneof' })],
    }

    it('are rejected by a create, and nothing is stored', async () => {
      const before = await count(client)
      expect(await client.callError(create, { ...plan, cron_expression: NEVER_FIRES, ...both })).toMatchObject(conflict)
      expect(await count(client)).toBe(before)
    })

    it('are rejected by an update, and nothing is changed', async () => {
      const trigger = await make(client)
      const rejection = await client.callError(update, { id: trigger.id, cron_expression: '@hourly', ...both })

      expect(rejection).toMatchObject(conflict)
      expect(await client.ok(get, { id: trigger.id })).toEqual(trigger)
    })

    it('are fine when one of them is null, which counts as not given', async () => {
      const { id } = await make(client)
      const moved = await client.ok(update, { id, daemon_group_key: null, webhook_id: world.webhookId })
      expect(moved).toMatchObject({ webhook_id: world.webhookId })
      const unchanged = await client.ok(update, { id, daemon_group_key: null, webhook_id: null, cron_expression: null })
      expect(unchanged).toEqual(moved)
    })
  },
)

describe.each(inTurn(clients))('updating a trigger over $wire', (client) => {
  it('with a webhook replaces the daemon group, and back', async () => {
    const trigger = await make(client)

    const { daemon_group_key: _, ...rest } = trigger
    const toWebhook = await client.ok(update, { id: trigger.id, webhook_id: world.webhookId })
    const moved = { webhook_id: world.webhookId, daemon_group_key: null }
    expect(toWebhook).toEqual({ ...rest, ...moved, updated_at: TIME, etag: '"v2"' })

    const toGroup = await client.ok(update, { id: trigger.id, daemon_group_key: 'lake' })
    expect(toGroup).toEqual({ ...rest, daemon_group_key: 'lake', updated_at: TIME, etag: '"v3"' })
    for (const other of clients) expect(await other.ok(get, { id: trigger.id })).toEqual(toGroup)
  })

  it('with a new expression moves the next run', async () => {
    const trigger = await make(client)
    const updated = await client.ok(update, { id: trigger.id, cron_expression: '30 12 24 12 *' })

    expect(updated).toEqual({
      ...trigger,
      cron_expression: '30 12 24 12 *',
      next_run_at: expect.stringMatching(/^\d{4}-12-24T12:30:00\.000Z$/),
      updated_at: TIME,
      etag: '"v2"',
    })
  })

  it('with the stored expression moves nothing', async () => {
    const trigger = await make(client)
    expect(await client.ok(update, { id: trigger.id, cron_expression: NEVER_FIRES })).toEqual(trigger)
  })

  it('with an empty body changes nothing', async () => {
    const trigger = await make(client)
    expect(await client.ok(update, { id: trigger.id })).toEqual(trigger)
  })

  it('with both a destination and an expression changes both at once', async () => {
    const { id } = await make(client)
    const updated = await client.ok(update, { id, webhook_id: world.webhookId, cron_expression: '@yearly' })
    expect(updated).toMatchObject({ webhook_id: world.webhookId, cron_expression: '@yearly', etag: '"v2"' })
  })

  it('with error_handling replaces what the job says, and with an empty one goes back to that', async () => {
    const trigger = await make(client)
    const { id } = trigger
    expect(trigger).not.toHaveProperty('error_handling')
    const own = await client.ok(update, { id, error_handling: 'fail_fast' })
    expect(own).toEqual({ ...trigger, error_handling: 'fail_fast', updated_at: TIME, etag: '"v2"' })
    expect(await client.ok(update, { id, error_handling: 'fail_fast' })).toEqual(own)
    const moved = await client.ok(update, { id, webhook_id: world.webhookId, error_handling: 'batch' })
    expect(moved).toMatchObject({ webhook_id: world.webhookId, error_handling: 'batch', next_run_at: NEXT_NEVER })
    expect(await client.ok(update, { id, error_handling: '' })).not.toHaveProperty('error_handling')
  })

  it('with an error_handling that is none changes nothing', async () => {
    const trigger = await make(client)
    const { violations } = await client.callError(update, { id: trigger.id, error_handling: 'explode' })
    expect(violations).toEqual([expect.objectContaining({ field: 'error_handling' })])
    expect(await client.ok(get, { id: trigger.id })).toEqual(trigger)
  })

  it('with a webhook that is none changes nothing, not even the expression', async () => {
    const trigger = await make(client)
    const request = { id: trigger.id, webhook_id: newId(), cron_expression: '@yearly' }

    expect(await client.callError(update, request)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'WEBHOOK_NOT_FOUND',
      httpStatus: statusOver(client, 400),
      violations: [expect.objectContaining({ field: 'webhook_id' })],
    })
    expect(await client.ok(get, { id: trigger.id })).toEqual(trigger)
  })
})

describe.each(inTurn(clients))('resources that form no plan over $wire', (client) => {
  it('are rejected with every violation, and nothing is stored', async () => {
    const before = await count(client)
    const resources = [
      { resource: 'issues', method: 'list', depends_on: 'nobody' },
      { resource: 'a', method: 'list', depends_on: 'b' },
      { resource: 'b', method: 'list', depends_on: 'a' },
    ]

    const rejection = await client.callError(create, {
      ...plan,
      cron_expression: NEVER_FIRES,
      daemon_group_key: 'g',
      resources,
    })

    expect(rejection).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'RESOURCES_INVALID',
      httpStatus: statusOver(client, 400),
    })
    expect(rejection.violations.map(({ field }) => field)).toContain('resources[0].depends_on')
    expect(rejection.violations.length).toBeGreaterThan(1)
    expect(await count(client)).toBe(before)
  })
})

describe.each(inTurn(clients))('arguments against the job’s schema over $wire', (client) => {
  it('are rejected with their fields', async () => {
    const job = await client.ok(SyncJobService.method.createSyncJob, {
      label: 'strict',
      integration_name: String((await jobOf(client)).integration_name),
      resources: [{ resource: 'repos', method: 'list' }],
      args_schema: { type: 'object', properties: { owner: { type: 'string' } }, required: ['owner'] },
    })
    const request = { ...plan, sync_job_id: job.id, cron_expression: NEVER_FIRES, daemon_group_key: 'g' }

    expect(await client.callError(create, { ...request, args: { owner: 7 } })).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'ARGS_INVALID',
      httpStatus: statusOver(client, 400),
      violations: [expect.objectContaining({ field: 'args.owner' })],
    })
    expect(await client.ok(create, { ...request, args: { owner: 'acme' } })).toMatchObject({ args: { owner: 'acme' } })
  })

  const jobOf = (client: Client) => client.ok(SyncJobService.method.getSyncJob, { id: world.syncJobId })
})

describe.each(inTurn(clients))('pausing over $wire', (client) => {
  it('lets the schedule stand still until it is resumed; both may be repeated', async () => {
    const trigger = await make(client)
    const { next_run_at: _, ...rest } = trigger

    const paused = await client.ok(pause, { id: trigger.id })
    expect(paused).toMatchObject({ ...rest, paused: true, updated_at: TIME, etag: expect.any(String) })
    expect(paused).not.toHaveProperty('next_run_at')
    expect(await client.ok(pause, { id: trigger.id })).toEqual(paused)

    const resumed = await client.ok(resume, { id: trigger.id })
    expect(resumed).toMatchObject({ paused: false, next_run_at: NEXT_NEVER })
    expect(await client.ok(resume, { id: trigger.id })).toEqual(resumed)
  })

  it('says why it stands still when it could not be evaluated, until it is resumed', async () => {
    const { id } = await make(client)
    const sql = 'update trigger_schedule set next_fire_at = null, error = :error where trigger_id = :id'
    await execute(app.database.pool, sql, { error: 'no such month', id: String(id) })
    const suspended = await client.ok(get, { id })
    expect(suspended).toMatchObject({ paused: false, schedule_error: 'no such month' })
    expect(suspended).not.toHaveProperty('next_run_at')
    expect(await client.ok(resume, { id })).not.toHaveProperty('schedule_error')
  })
})

describe.each(inTurn(clients))('running a trigger now over $wire', (client) => {
  it('creates a manual run with its arguments and destination, also while it is paused', async () => {
    const { id } = await make(client, { daemon_group_key: null, webhook_id: world.webhookId, args: { a: 1 } })
    await client.ok(pause, { id })

    const run = await client.ok(runNow, { id })

    expect(run).toMatchObject({
      trigger_id: id,
      kind: 'manual',
      status: 'created',
      args: { a: 1 },
      webhook_id: world.webhookId,
      sync_job_id: world.syncJobId,
      integrated_account_id: world.integratedAccountId,
      scheduled_for: TIME,
    })
    expect(await client.ok(get, { id })).toMatchObject({
      last_run_at: run.scheduled_for,
      last_run_status: 'created',
      paused: true,
    })
  })

  it.each([
    { own: undefined, expected: 'ignore' },
    { own: 'fail_fast', expected: 'fail_fast' },
  ])('hands the run its error_handling, $own, before that of the job', async ({ own, expected }) => {
    const { id } = await make(client, own === undefined ? {} : { error_handling: own })
    expect(await client.ok(runNow, { id })).toMatchObject({ error_handling: expected })
  })

  it('answers the same run again for the same request_id', async () => {
    const { id } = await make(client)
    const request = { id, request_id: newId() }
    expect(await client.ok(runNow, request)).toEqual(await client.ok(runNow, request))
    expect((await client.ok(runNow, { id })).id).not.toBe((await client.ok(runNow, { id })).id)
  })

  it('is rejected while the integration is disabled', async () => {
    const { id } = await make(client)
    const { updateEnvironmentIntegration } = EnvironmentIntegrationService.method
    const enable = (isEnabled: boolean) =>
      client.ok(updateEnvironmentIntegration, { id: world.environmentIntegrationId, is_enabled: isEnabled })
    await enable(false)

    expect(await client.callError(runNow, { id })).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'INTEGRATION_DISABLED',
      httpStatus: statusOver(client, 400),
    })
    await enable(true)
  })
})

describe.each(inTurn(clients))('the ledger of a trigger that never fired over $wire', (client) => {
  it('is empty', async () => {
    const { id } = await make(client)
    expect(await client.ok(ticks, { id })).toEqual({ ticks: [], next_page_token: '' })
  })
})

describe.each(inTurn(clients))('listing triggers over $wire', (client) => {
  let other: SeededTenant
  let second: string

  beforeAll(async () => {
    other = await seedTenant(app, await createApiTenant(app))
    const request = {
      sync_job_id: other.syncJobId,
      integrated_account_id: other.integratedAccountId,
      cron_expression: NEVER_FIRES,
      daemon_group_key: 'g',
    }
    second = (await client.ok(create, request, { token: other.environmentToken })).id
  })

  it('filters by job and account', async () => {
    const found = async (filter: JsonObject) => {
      const answer = await client.ok(list, filter, { token: other.environmentToken })
      return (answer.sync_job_cron_triggers as unknown as readonly JsonObject[]).map(({ id }) => id)
    }
    const both = [second, other.syncJobCronTriggerId]
    expect(await found({})).toEqual(both)
    expect(await found({ sync_job_id: other.syncJobId })).toEqual(both)
    expect(await found({ integrated_account_id: other.integratedAccountId, sync_job_id: other.syncJobId })).toEqual(
      both,
    )
    expect(await found({ sync_job_id: newId() })).toEqual([])
    expect(await found({ integrated_account_id: newId() })).toEqual([])
  })
})

describe.each(inTurn(clients))('deleting a trigger over $wire', (client) => {
  it('forgets it and keeps its runs', async () => {
    const { id } = await make(client)
    await client.ok(runNow, { id })

    expect(await client.ok(remove, { id })).toEqual({})
    expect(await client.callError(get, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})
