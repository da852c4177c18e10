import type { DescMethodUnary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { ApiTokenService } from '../../../gen/patchbay/v1/api_token_service_pb.ts'
import { EnvironmentIntegrationService } from '../../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { EnvironmentService } from '../../../gen/patchbay/v1/environment_service_pb.ts'
import { IntegratedAccountService } from '../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../../gen/patchbay/v1/integration_service_pb.ts'
import { ProxyService } from '../../../gen/patchbay/v1/proxy_service_pb.ts'
import { SyncJobCronTriggerService } from '../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { SyncJobService } from '../../../gen/patchbay/v1/sync_job_service_pb.ts'
import { TeamService } from '../../../gen/patchbay/v1/team_service_pb.ts'
import { WebhookService } from '../../../gen/patchbay/v1/webhook_service_pb.ts'
import { type JsonObject, newId } from '../../../src/base/index.ts'
import { startTestApp } from '../../support/app.ts'
import type { Client } from '../../support/client.ts'
import { idFieldsOf, OPERATIONS } from '../../support/operations.ts'
import { makeEnvironment, makeTenant, makeWorld, NEVER, type World } from '../../support/world.ts'

const app = await startTestApp()
const own = await makeWorld(app, app.first)
/** Another environment of the same team. */
const sibling = await makeWorld(app, { ...app.first, ...(await makeEnvironment(app, app.first.teamToken)) })
/** Another team; it is not the operator, whom teams are no secret to. */
const stranger = await makeWorld(app, await makeTenant(app))
const otherStranger = await makeWorld(app, await makeTenant(app))

/** An id in a request: which operation, which field, whose id in a world, and what else the request needs. */
interface Place {
  readonly name: string
  readonly method: DescMethodUnary
  readonly field: string
  readonly noun: string
  readonly key: keyof World
  readonly also?: (world: World) => JsonObject
}

function place(method: DescMethodUnary, noun: string, key: keyof World, field = 'id', also?: Place['also']): Place {
  return { name: `${method.name}.${field}`, method, field, noun, key, ...(also === undefined ? {} : { also }) }
}

const plan = (world: World) => ({
  sync_job_id: world.syncJobId,
  integrated_account_id: world.integratedAccountId,
  daemon_group_key: 'group',
})
const scheduled = (world: World) => ({ ...plan(world), cron_expression: NEVER })
const { method: integrations } = IntegrationService
const { method: triggers } = SyncJobCronTriggerService

const TEAM_PLACES: readonly Place[] = [
  ...[TeamService.method.getTeam, TeamService.method.updateTeam].map((method) => place(method, 'team', 'teamId')),
  ...(['getEnvironment', 'updateEnvironment', 'deleteEnvironment'] as const).map((name) =>
    place(EnvironmentService.method[name], 'environment', 'environmentId'),
  ),
  ...(['getApiToken', 'updateApiToken', 'revokeApiToken', 'deleteApiToken'] as const).map((name) =>
    place(ApiTokenService.method[name], 'api_token', 'apiTokenId'),
  ),
  place(ApiTokenService.method.createApiToken, 'environment', 'environmentId', 'environment_id', () => ({
    kind: 'environment',
    name: 'x',
  })),
  ...(['getIntegration', 'updateIntegration', 'deleteIntegration', 'listIntegrationTools'] as const).map((name) =>
    place(integrations[name], 'integration', 'integrationId'),
  ),
  place(integrations.createIntegrationGrant, 'integration', 'integrationId', 'integration_id', ({ teamId }) => ({
    team_id: teamId,
  })),
  place(integrations.listIntegrationGrants, 'integration', 'integrationId', 'integration_id'),
  place(integrations.deleteIntegrationGrant, 'integration', 'integrationId', 'integration_id', ({ teamId }) => ({
    team_id: teamId,
  })),
]

const ENVIRONMENT_PLACES: readonly Place[] = [
  ...(
    [
      'getEnvironmentIntegration',
      'updateEnvironmentIntegration',
      'deleteEnvironmentIntegration',
      'resolveEnvironmentIntegration',
    ] as const
  ).map((name) =>
    place(EnvironmentIntegrationService.method[name], 'environment_integration', 'environmentIntegrationId'),
  ),
  ...(
    [
      'getIntegratedAccount',
      'updateIntegratedAccount',
      'updateIntegratedAccountCredentials',
      'refreshIntegratedAccountCredentials',
      'runIntegratedAccountActions',
      'deleteIntegratedAccount',
      'listIntegratedAccountHistory',
    ] as const
  ).map((name) => place(IntegratedAccountService.method[name], 'integrated_account', 'integratedAccountId')),
  place(
    IntegratedAccountService.method.createIntegratedAccount,
    'environment_integration',
    'environmentIntegrationId',
    'environment_integration_id',
    () => ({ tenant_id: 'acme', credentials: { api_key: 'k' } }),
  ),
  ...(['getSyncJob', 'updateSyncJob', 'deleteSyncJob'] as const).map((name) =>
    place(SyncJobService.method[name], 'sync_job', 'syncJobId'),
  ),
  ...(
    [
      'getSyncJobCronTrigger',
      'updateSyncJobCronTrigger',
      'deleteSyncJobCronTrigger',
      'pauseSyncJobCronTrigger',
      'resumeSyncJobCronTrigger',
      'runSyncJobCronTrigger',
      'listSyncJobCronTriggerTicks',
    ] as const
  ).map((name) => place(triggers[name], 'sync_job_cron_trigger', 'syncJobCronTriggerId')),
  place(triggers.createSyncJobCronTrigger, 'sync_job', 'syncJobId', 'sync_job_id', scheduled),
  place(
    triggers.createSyncJobCronTrigger,
    'integrated_account',
    'integratedAccountId',
    'integrated_account_id',
    scheduled,
  ),
  ...(['getSyncJobRun', 'stopSyncJobRun', 'retrySyncJobRun'] as const).map((name) =>
    place(SyncJobRunService.method[name], 'sync_job_run', 'syncJobRunId'),
  ),
  place(SyncJobRunService.method.createSyncJobRun, 'sync_job', 'syncJobId', 'sync_job_id', plan),
  place(
    SyncJobRunService.method.createSyncJobRun,
    'integrated_account',
    'integratedAccountId',
    'integrated_account_id',
    plan,
  ),
  place(ProxyService.method.call, 'integrated_account', 'integratedAccountId', 'integrated_account_id', () => ({
    resource: 'repos',
    method: 'list',
  })),
  ...(['getWebhook', 'updateWebhook', 'deleteWebhook', 'rotateWebhookSecret'] as const).map((name) =>
    place(WebhookService.method[name], 'webhook', 'webhookId'),
  ),
]

/** The refusal of one id, with the id itself taken out. */
async function refusalOf(client: Client, { method, field, also }: Place, world: World, id: string) {
  const refusal = await client.refusal(method, { ...also?.(world), [field]: id })
  return JSON.parse(JSON.stringify(refusal).replaceAll(id, '<id>'))
}

function notFoundOf(client: Client, noun: string) {
  return {
    code: 'NOT_FOUND',
    reason: 'RESOURCE_NOT_FOUND',
    resource: { type: noun, id: '<id>' },
    ...(client.wire === 'grpc' ? {} : { httpStatus: 404 }),
  }
}

describe.each(app.clients({ token: own.environmentToken }))('an id of another environment over $wire', (client) => {
  it.each(ENVIRONMENT_PLACES)('gets the answer of an unknown id: $name', async (at) => {
    const unknown = await refusalOf(client, at, own, newId())

    expect(unknown).toMatchObject(notFoundOf(client, at.noun))
    expect(await refusalOf(client, at, own, sibling[at.key])).toEqual(unknown)
    expect(await refusalOf(client, at, own, stranger[at.key])).toEqual(unknown)
  })
})

describe.each(app.clients({ token: stranger.teamToken }))('an id of another team over $wire', (client) => {
  it.each(TEAM_PLACES)('gets the answer of an unknown id: $name', async (at) => {
    const unknown = await refusalOf(client, at, stranger, newId())

    expect(unknown).toMatchObject(notFoundOf(client, at.noun))
    expect(await refusalOf(client, at, stranger, otherStranger[at.key])).toEqual(unknown)
  })
})

describe.each(app.clients({ token: own.environmentToken }))('a webhook of another environment over $wire', (client) => {
  it.each([
    { method: triggers.createSyncJobCronTrigger, request: scheduled },
    {
      method: triggers.updateSyncJobCronTrigger,
      request: ({ syncJobCronTriggerId }: World) => ({ id: syncJobCronTriggerId }),
    },
    { method: SyncJobRunService.method.createSyncJobRun, request: plan },
  ])('is no destination: $method.name', async ({ method, request }) => {
    const { daemon_group_key: _, ...rest }: JsonObject = request(own)

    for (const webhookId of [newId(), sibling.webhookId, stranger.webhookId]) {
      const refusal = await client.refusal(method, { ...rest, webhook_id: webhookId })
      expect(refusal).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'WEBHOOK_NOT_FOUND' })
      expect(refusal.violations).toEqual([expect.objectContaining({ field: 'webhook_id' })])
    }
  })
})

describe.each(app.clients())('a malformed id over $wire', (client) => {
  const places = OPERATIONS.flatMap((method) => idFieldsOf(method).map((field) => ({ method, field })))

  it.each(places)('is refused with its field: $method.name.$field', async ({ method, field }) => {
    const others = Object.fromEntries(idFieldsOf(method).map((name) => [name, newId()]))
    const { teamToken, environmentId } = own

    const refusal = await client.refusal(
      method,
      { ...others, [field]: 'no-uuid' },
      { token: teamToken, environment: environmentId },
    )

    expect(refusal).toMatchObject({ code: 'INVALID_ARGUMENT', ...(client.wire === 'grpc' ? {} : { httpStatus: 400 }) })
    expect(refusal.violations).toContainEqual(expect.objectContaining({ field, rule: 'string.uuid' }))
  })
})

describe.each(app.clients({ token: own.environmentToken }))('an id in capitals over $wire', (client) => {
  it('is the same id', async () => {
    const { method } = WebhookService
    const webhook = await client.ok(method.getWebhook, { id: own.webhookId })
    expect(await client.ok(method.getWebhook, { id: own.webhookId.toUpperCase() })).toEqual(webhook)
  })
})
