import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { EnvironmentService } from '../../gen/patchbay/v1/environment_service_pb.ts'
import { EventService } from '../../gen/patchbay/v1/event_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { TaskService } from '../../gen/patchbay/v1/task_service_pb.ts'
import { ToolServerService } from '../../gen/patchbay/v1/tool_server_service_pb.ts'
import { execute, query } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { claimReauthorizationWarnings } from '../../src/platform/accounts/sql/account-state.ts'
import { hideInstallationsOf } from '../../src/platform/integrations/sql/installations.ts'
import { startTestApp } from '../support/app.ts'
import { someCases } from '../support/case-count.ts'
import { EVENTUALLY } from '../support/eventually.ts'
import { addAccounts } from '../support/many-accounts.ts'
import { PATCH_METHODS, patchesOf } from '../support/patches.ts'
import { createApiTenant, seedTenant } from '../support/seeded-tenant.ts'
import {
  addHeldRun,
  addHistory,
  type IdLocation,
  idLocations,
  requestWith,
  sendAs,
  type TenancyFixture,
} from '../support/tenancy-matrix.ts'

const app = await startTestApp()
const { createEnvironmentIntegration, deleteEnvironmentIntegration, getEnvironmentIntegration } =
  EnvironmentIntegrationService.method

async function tenantWith(accounts: number) {
  const tenant = await seedTenant(app, await createApiTenant(app))
  await addAccounts(app.database, tenant, accounts)
  return { tenant, client: app.client('connect', { token: tenant.environmentToken }) }
}

const rowsOf = async (table: string, environmentId: string) =>
  (await query(app.database.pool, `select 1 from ${table} where environment_id = :environmentId`, { environmentId }))
    .length

describe('deleting an installation with many accounts by force', () => {
  it('is finished by a task, which no call cancels, while the new installation stays', async () => {
    const { tenant, client } = await tenantWith(130)
    const { environmentId, environmentIntegrationId: id, integrationId } = tenant
    await client.ok(deleteEnvironmentIntegration, { id, force: true })
    await client.ok(createEnvironmentIntegration, { integration_id: integrationId })
    const tasks = (await client.ok(TaskService.method.listTasks, { state: 'queued' })).tasks as unknown as JsonObject[]
    expect(tasks).toMatchObject([
      { kind: 'delete_environment_integration', params: { environment_integration_id: id } },
    ])
    const taskId = String(tasks[0]?.id)
    expect((await client.ok(TaskService.method.cancelTask, { id: taskId })).state).toBe('queued')
    const worker = app.startWorker()
    await expect
      .poll(async () => (await client.ok(TaskService.method.getTask, { id: taskId })).state, EVENTUALLY)
      .toBe('completed')
    await worker.drain()
    expect(await rowsOf('integrated_account', environmentId)).toBe(0)
    expect(await rowsOf('environment_integration', environmentId)).toBe(1)
    const deleted = await client.ok(EventService.method.listEvents, {
      type: 'integrated_account:deleted',
      page_size: 1000,
    })
    expect((deleted.events as unknown as JsonObject[]).length).toBe(131)
  })

  it('leaves nothing that is found or acts from its answer on', async () => {
    const { tenant, client } = await tenantWith(120)
    const { environmentIntegrationId: id, integratedAccountId, integrationId } = tenant
    await client.ok(deleteEnvironmentIntegration, { id, force: true })
    expect(await client.callError(getEnvironmentIntegration, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    expect(await client.callError(deleteEnvironmentIntegration, { id, force: true })).toMatchObject({
      reason: 'RESOURCE_NOT_FOUND',
    })
    const hidden = await query<{ readonly id: string }>(
      app.database.pool,
      'select id from integrated_account where environment_id = :environmentId limit 1',
      { environmentId: tenant.environmentId },
    )
    const accountId = hidden[0]?.id ?? integratedAccountId
    const { getIntegratedAccount, listIntegratedAccounts } = IntegratedAccountService.method
    expect((await client.ok(listIntegratedAccounts, {})).integrated_accounts).toEqual([])
    expect(await client.callError(getIntegratedAccount, { id: accountId })).toMatchObject({
      reason: 'RESOURCE_NOT_FOUND',
    })
    const inbound = await fetch(`${app.url}/integrated-account-webhook/${accountId}`, { method: 'POST', body: '{}' })
    expect(inbound.status).toBe(404)
    const again = await client.ok(createEnvironmentIntegration, { integration_id: integrationId })
    expect(again.id).not.toBe(id)
    await execute(
      app.database.pool,
      `update integrated_account set reauthorization_warning_at = now() - interval '1 hour' where environment_id = :environmentId`,
      { environmentId: tenant.environmentId },
    )
    expect(await claimReauthorizationWarnings(app.database.pool, { regions: undefined, limit: 200 })).toEqual([])
  })

  const PARENTS = ['integration', 'environment'] as const
  it.each(someCases(PARENTS, 1))('does not keep the %s from being deleted by force', async (what) => {
    const { tenant, client } = await tenantWith(60)
    await client.ok(deleteEnvironmentIntegration, { id: tenant.environmentIntegrationId, force: true })
    const admin = app.client('connect', { token: tenant.teamToken })
    if (what === 'integration')
      await admin.ok(IntegrationService.method.deleteIntegration, { id: tenant.integrationId, force: true })
    else await admin.ok(EnvironmentService.method.deleteEnvironment, { id: tenant.environmentId, force: true })
    expect(await rowsOf('integrated_account', tenant.environmentId)).toBe(0)
  })
})

/** What belongs to an account and ends with it. */
const OF_ACCOUNTS: readonly (keyof TenancyFixture)[] = [
  'environmentIntegrationId',
  'integratedAccountId',
  'syncJobCronTriggerId',
  'syncJobRunId',
  'heldRunId',
  'toolServerId',
  'inboundEventId',
]
/** Writes that also succeed meanwhile, and why. */
const ENDS: Readonly<Record<string, string>> = {
  StopSyncJobRun: 'ends the run, which stays as a record',
  Heartbeat: 'tells the holder of the run to stop',
  ReportProgress: 'tells the holder of the run to stop',
  CompleteRun: 'ends the run',
  FailRun: 'ends the run',
  ReleaseRun: 'ends the lease of the run',
  ExpungeInboundEvent: 'erases content',
}
const WRITES = idLocations().filter(
  ({ method, key }) =>
    OF_ACCOUNTS.includes(key) && method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
)

describe('while the accounts of an installation are being deleted', async () => {
  const tenant = await seedTenant(app, await createApiTenant(app))
  const client = app.client('connect', { token: tenant.environmentToken })
  const world = { ...(await addHeldRun(client, tenant)), ...(await addHistory(app.database, tenant)) }
  await hideInstallationsOf(app.database.pool, 'environment_id', [tenant.environmentId])
  const authorization = `Bearer ${tenant.teamToken}`
  const send = sendAs(client, app.url, { authorization, 'patchbay-environment': tenant.environmentId })
  const requestsFor = (place: IdLocation): readonly JsonObject[] => {
    const patches = PATCH_METHODS.filter((method) => method === place.method).flatMap((method) =>
      patchesOf(method, world),
    )
    return (patches.length === 0 ? [{}] : patches).map((patch) => ({
      ...requestWith(place, world, world[place.key]),
      ...patch,
    }))
  }

  it.each(WRITES.filter(({ method }) => ENDS[method.name] === undefined))(
    'a write is rejected: $name',
    async (place) => {
      for (const request of requestsFor(place)) expect(await send(place.method, request)).not.toContain('"ok":true')
    },
  )

  it('its tool server is not found, and what holds its runs may end them', async () => {
    for (const [method, id] of [
      [ToolServerService.method.getToolServer, world.toolServerId],
      [SyncJobCronTriggerService.method.getSyncJobCronTrigger, world.syncJobCronTriggerId],
    ] as const)
      expect(await client.callError(method, { id })).toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    expect((await client.ok(ToolServerService.method.listToolServers, {})).tool_servers).toEqual([])
    const allowed = WRITES.filter(({ method }) => ENDS[method.name] !== undefined)
    expect(new Set(allowed.map(({ method }) => method.name))).toEqual(new Set(Object.keys(ENDS)))
    await client.ok(SyncJobRunService.method.stopSyncJobRun, { id: world.syncJobRunId })
  })
})
