import { beforeAll, describe, expect, it } from 'vitest'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { SyncJobService } from '../../gen/patchbay/v1/sync_job_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { type Client, JSON_PROTOCOLS } from '../support/client.ts'
import { statusOver, TIME, UUID } from '../support/matchers.ts'
import { createApiTenant, type SeededTenant, seedTenant } from '../support/seeded-tenant.ts'

const {
  createSyncJobRun: create,
  getSyncJobRun: get,
  listSyncJobRuns: list,
  stopSyncJobRun: stop,
  retrySyncJobRun: retry,
} = SyncJobRunService.method

const app = await startTestApp()
const clients = app.clients()
const world = await seedTenant(app, app.first)
const plan = { sync_job_id: world.syncJobId, integrated_account_id: world.integratedAccountId }

const make = (client: Client, fields: JsonObject = {}) =>
  client.ok(create, { ...plan, daemon_group_key: 'warehouse', ...fields })

describe.each(inTurn(clients))('running a job by hand over $wire', (client) => {
  it('answers with every field, and the same reads back on every wire', async () => {
    const run = await client.ok(create, {
      ...plan,
      webhook_id: world.webhookId,
      args: { owner: 'acme' },
      error_handling: 'fail_fast',
      ignore_previous_run: true,
    })

    expect(run).toEqual({
      id: UUID,
      environment_id: app.first.environmentId,
      ...plan,
      kind: 'manual',
      status: 'created',
      args: { owner: 'acme' },
      resources: [{ resource: 'repos', method: 'list', query: {}, persist: true }],
      webhook_id: world.webhookId,
      daemon_group_key: null,
      error_handling: 'fail_fast',
      ignore_previous_run: true,
      scheduled_for: TIME,
      created_at: TIME,
      updated_at: TIME,
      resource_stats: [],
      attempt: 0,
      etag: '"v1"',
      waiting: { reason: 'no_worker', message: expect.stringContaining('region wnam') },
    })
    for (const other of clients) expect(await other.ok(get, { id: run.id })).toEqual(run)
  })

  it('passes over errors of records and syncs what is new unless told otherwise', async () => {
    expect(await make(client)).toMatchObject({
      args: {},
      error_handling: 'ignore',
      ignore_previous_run: false,
      daemon_group_key: 'warehouse',
    })
  })

  it('needs a destination', async () => {
    expect(await client.callError(create, plan)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'DESTINATION_REQUIRED',
      httpStatus: statusOver(client, 400),
    })
  })

  it('needs an account of the integration that the job is for', async () => {
    const other = await seedTenant(app, app.first)
    const request = { ...plan, integrated_account_id: other.integratedAccountId, daemon_group_key: 'g' }

    const rejection = await client.callError(create, request)
    expect(rejection).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'INVALID_FIELD' })
    expect(rejection.violations).toEqual([expect.objectContaining({ field: 'integrated_account_id' })])
  })
})

describe.each(inTurn(clients))('a run that cannot be executed over $wire', (client) => {
  it('because the account is not active is rejected with its status', async () => {
    const step = { type: 'request', config: { method: 'get', path: '/me' } }
    const other = await seedTenant(app, app.first)
    const { updateEnvironmentIntegration } = EnvironmentIntegrationService.method
    await client.ok(updateEnvironmentIntegration, {
      id: other.environmentIntegrationId,
      override: { actions: { validation: step } },
    })
    const account = await client.ok(IntegratedAccountService.method.createIntegratedAccount, {
      environment_integration_id: other.environmentIntegrationId,
      tenant_id: 'acme',
      credentials: { api_key: 'k' },
    })
    const request = { sync_job_id: other.syncJobId, integrated_account_id: account.id, daemon_group_key: 'g' }

    expect(await client.callError(create, request)).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'ACCOUNT_NOT_ACTIVE',
      metadata: { status: 'connecting' },
      httpStatus: statusOver(client, 400),
    })
  })

  it('because the job rejects the arguments is rejected with what it says', async () => {
    const other = await seedTenant(app, app.first)
    await client.ok(SyncJobService.method.updateSyncJob, {
      id: other.syncJobId,
      args_validation: 'args.owner = "nobody" ? {"message": "nobody owns nothing"}',
    })
    const request = {
      sync_job_id: other.syncJobId,
      integrated_account_id: other.integratedAccountId,
      daemon_group_key: 'g',
    }

    expect(await client.callError(create, { ...request, args: { owner: 'nobody' } })).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'ARGS_INVALID',
      violations: [expect.objectContaining({ field: 'args', description: 'nobody owns nothing' })],
      httpStatus: statusOver(client, 400),
    })
    expect(await client.ok(create, { ...request, args: { owner: 'acme' } })).toMatchObject({ args: { owner: 'acme' } })
  })

  it('because the integration is disabled is rejected', async () => {
    const other = await seedTenant(app, app.first)
    const { updateEnvironmentIntegration } = EnvironmentIntegrationService.method
    await client.ok(updateEnvironmentIntegration, { id: other.environmentIntegrationId, is_enabled: false })
    const request = {
      sync_job_id: other.syncJobId,
      integrated_account_id: other.integratedAccountId,
      daemon_group_key: 'g',
    }

    expect(await client.callError(create, request)).toMatchObject({ reason: 'INTEGRATION_DISABLED' })
  })
})

describe.each(JSON_PROTOCOLS.map((wire) => app.client(wire)))('both destinations over $wire', (client) => {
  it('are rejected', async () => {
    const rejection = await client.callError(create, { ...plan, daemon_group_key: 'g', webhook_id: world.webhookId })
    expect(rejection).toMatchObject({ reason: 'DESTINATION_CONFLICT', httpStatus: 400 })
  })
})

describe.each(inTurn(clients))('stopping a run over $wire', (client) => {
  it('that waits ends it at once, and may be repeated', async () => {
    const { id } = await make(client)

    const stopped = await client.ok(stop, { id })

    expect(stopped).toMatchObject({ status: 'stopped', finished_at: TIME })
    expect(await client.ok(stop, { id })).toEqual(stopped)
    expect(await client.ok(get, { id })).toEqual(stopped)
  })
})

describe.each(inTurn(clients))('retrying a run over $wire', (client) => {
  it('that was stopped lets it wait again', async () => {
    const { id } = await make(client)
    await client.ok(stop, { id })

    const again = await client.ok(retry, { id })

    expect(again).toMatchObject({ id, status: 'created' })
    expect(again).not.toHaveProperty('finished_at')
  })

  it('that still waits is rejected with its status', async () => {
    const { id } = await make(client)

    expect(await client.callError(retry, { id })).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'RUN_STATE_CONFLICT',
      metadata: { status: 'created' },
      httpStatus: statusOver(client, 400),
    })
  })
})

describe.each(inTurn(clients))('listing runs over $wire', (client) => {
  let other: SeededTenant
  let stopped: string

  beforeAll(async () => {
    other = await seedTenant(app, await createApiTenant(app))
    const token = other.environmentToken
    const request = {
      sync_job_id: other.syncJobId,
      integrated_account_id: other.integratedAccountId,
      daemon_group_key: 'g',
    }
    stopped = (await client.ok(create, request, { token })).id
    await client.ok(stop, { id: stopped }, { token })
  })

  it('filters by job, account, trigger and status', async () => {
    const found = async (filter: JsonObject) => {
      const answer = await client.ok(list, filter, { token: other.environmentToken })
      return (answer.sync_job_runs as unknown as readonly JsonObject[]).map(({ id }) => id)
    }
    const both = [stopped, other.syncJobRunId]
    expect(await found({})).toEqual(both)
    expect(await found({ sync_job_id: other.syncJobId, integrated_account_id: other.integratedAccountId })).toEqual(
      both,
    )
    expect(await found({ status: 'stopped' })).toEqual([stopped])
    expect(await found({ status: 'created', sync_job_id: other.syncJobId })).toEqual([other.syncJobRunId])
    expect(await found({ trigger_id: other.syncJobCronTriggerId })).toEqual([])
    expect(await found({ integrated_account_id: newId() })).toEqual([])
  })

  it('rejects a status that is none', async () => {
    const { violations } = await client.callError(list, { status: 'sleeping' })
    expect(violations).toEqual([expect.objectContaining({ field: 'status', rule: 'string.in' })])
  })
})
