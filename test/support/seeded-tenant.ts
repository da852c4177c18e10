import { ApiTokenService } from '../../gen/patchbay/v1/api_token_service_pb.ts'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { EnvironmentService } from '../../gen/patchbay/v1/environment_service_pb.ts'
import { EventService } from '../../gen/patchbay/v1/event_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { LinkTokenService } from '../../gen/patchbay/v1/link_token_service_pb.ts'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { SyncJobService } from '../../gen/patchbay/v1/sync_job_service_pb.ts'
import { TaskService } from '../../gen/patchbay/v1/task_service_pb.ts'
import { TeamService } from '../../gen/patchbay/v1/team_service_pb.ts'
import { ToolServerService } from '../../gen/patchbay/v1/tool_server_service_pb.ts'
import { UnifiedMappingService } from '../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import type { TestApp } from './app.ts'
import type { Client, Protocol, Sender } from './client.ts'

/** A team with one environment and a token of each kind. */
export interface Tenant {
  readonly teamId: string
  readonly environmentId: string
  readonly teamToken: string
  readonly environmentToken: string
}

/** A tenant with one of everything, made through the API. */
export interface SeededTenant extends Tenant {
  readonly integrationId: string
  readonly environmentIntegrationId: string
  readonly integratedAccountId: string
  readonly linkTokenId: string
  readonly syncJobId: string
  readonly webhookId: string
  /** Runs in a daemon group, on the first of January only, so that no tick comes due in a test. */
  readonly syncJobCronTriggerId: string
  readonly syncJobRunId: string
  readonly apiTokenId: string
  /** One of the events of the environment. */
  readonly eventId: string
  readonly taskId: string
  readonly toolServerId: string
  readonly unifiedMappingId: string
}

/** Where tenants are seeded: the API of a test, or the running product. */
export interface SeedTarget {
  readonly first: { readonly teamToken: string }
  client(wire: Protocol, sender?: Sender): Client
}

/** The integration that every seeded tenant installs: `issues` and `repos`, paged, with an API key as bearer token. */
export const EXAMPLE_CONFIG: JsonObject = {
  label: 'Example',
  base_url: 'https://api.example.com/v1',
  headers: { accept: 'application/json' },
  credentials: {
    api_key: {
      config: { fields: [{ name: 'api_key', label: 'API key', type: 'password', required: true }] },
    },
  },
  authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
  pagination: { format: 'page', config: { page_key: 'page', limit_key: 'per_page' } },
  resources: {
    repos: { list: { method: 'get', path: '/repos', response_path: 'items', description: 'Lists repositories.' } },
    issues: {
      list: { method: 'get', path: '/repos/{{query.repo}}/issues', response_path: 'items' },
      create: { method: 'post', path: '/issues' },
    },
  },
}

/** A schedule that no test waits for. */
export const NEVER_FIRES = '0 0 1 1 *'

let names = 0

/** A name no other row of the test file has. */
export function freshName(noun: string): string {
  names += 1
  return `${noun.replaceAll('_', '-')}-${names}`
}

/** The team of the first start as a tenant. */
export function firstTenant({ first }: TestApp): Tenant {
  return first
}

/** Another team with an environment. */
export async function createApiTenant(app: SeedTarget): Promise<Tenant> {
  const operator = app.client('connect', { token: app.first.teamToken })
  const team = await operator.ok(TeamService.method.createTeam, { name: freshName('team') })
  const teamId = team.id
  const forTeam = await operator.ok(ApiTokenService.method.createApiToken, {
    kind: 'team',
    team_id: teamId,
    name: 'admin',
    preset: 'full',
  })
  const teamToken = String(forTeam.token)
  return { teamId, teamToken, ...(await createApiEnvironment(app, teamToken)) }
}

/** Another environment of the team whose token it is. */
export async function createApiEnvironment(
  app: SeedTarget,
  teamToken: string,
): Promise<Pick<Tenant, 'environmentId' | 'environmentToken'>> {
  const admin = app.client('connect', { token: teamToken })
  const environment = await admin.ok(EnvironmentService.method.createEnvironment, { name: freshName('environment') })
  const environmentId = environment.id
  const request = { kind: 'environment', environment_id: environmentId, name: 'application', preset: 'full' }
  const forEnvironment = await admin.ok(ApiTokenService.method.createApiToken, request)
  return { environmentId, environmentToken: String(forEnvironment.token) }
}

/** Fills a tenant with one of everything. */
export async function seedTenant(app: SeedTarget, tenant: Tenant): Promise<SeededTenant> {
  const team = app.client('connect', { token: tenant.teamToken })
  const environment = app.client('connect', { token: tenant.environmentToken })
  const integrationId = await idOf(team, IntegrationService.method.createIntegration, {
    name: freshName('example'),
    config: EXAMPLE_CONFIG,
  })
  const integration = await team.ok(IntegrationService.method.getIntegration, { id: integrationId })
  const environmentIntegrationId = await idOf(
    environment,
    EnvironmentIntegrationService.method.createEnvironmentIntegration,
    { integration_id: integrationId },
  )
  const integratedAccountId = await idOf(environment, IntegratedAccountService.method.createIntegratedAccount, {
    environment_integration_id: environmentIntegrationId,
    tenant_id: 'acme',
    credentials: { api_key: 'k-123' },
  })
  const linkTokenId = await idOf(environment, LinkTokenService.method.createLinkToken, { tenant_id: 'acme' })
  const syncJobId = await idOf(environment, SyncJobService.method.createSyncJob, {
    label: 'repos',
    integration_name: String(integration.name),
    resources: [{ resource: 'repos', method: 'list', persist: true }],
  })
  const webhookId = await idOf(environment, WebhookService.method.createWebhook, {
    target_url: 'https://app.example.com/hook',
  })
  const plan = { sync_job_id: syncJobId, integrated_account_id: integratedAccountId, daemon_group_key: 'warehouse' }
  const syncJobCronTriggerId = await idOf(environment, SyncJobCronTriggerService.method.createSyncJobCronTrigger, {
    ...plan,
    cron_expression: NEVER_FIRES,
  })
  const syncJobRunId = await idOf(environment, SyncJobRunService.method.createSyncJobRun, plan)
  const [event] = (await environment.ok(EventService.method.listEvents, {})).events as unknown as readonly {
    id: string
  }[]
  if (event === undefined) throw new Error('the environment has no event')
  const taskId = await idOf(environment, WebhookService.method.recoverWebhookDeliveries, {
    id: webhookId,
    since: '2026-01-01T00:00:00Z',
  })
  // An environment has a bounded number of unfinished tasks, and may be seeded often.
  await environment.ok(TaskService.method.cancelTask, { id: taskId })
  const toolServerId = await idOf(environment, ToolServerService.method.createToolServer, {
    name: 'tools',
    integrated_account_id: integratedAccountId,
  })
  const unifiedMappingId = await idOf(environment, UnifiedMappingService.method.createUnifiedMapping, {
    model: 'crm',
    resource: 'contacts',
    integration_name: String(integration.name),
    config: {},
  })
  const apiTokenId = await idOf(team, ApiTokenService.method.createApiToken, {
    kind: 'team',
    name: 'spare',
    preset: 'full',
  })
  return {
    ...tenant,
    integrationId,
    environmentIntegrationId,
    integratedAccountId,
    linkTokenId,
    syncJobId,
    webhookId,
    syncJobCronTriggerId,
    syncJobRunId,
    apiTokenId,
    eventId: event.id,
    taskId,
    toolServerId,
    unifiedMappingId,
  }
}

/** Makes something and returns its id. */
export async function idOf(
  client: Client,
  method: Parameters<Client['ok']>[0],
  request: JsonObject,
  also?: Sender,
): Promise<string> {
  return (await client.ok(method, request, also)).id
}
