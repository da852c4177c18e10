import type { DescMethodUnary, DescService } from '@bufbuild/protobuf'
import { ApiTokenService } from '../../gen/patchbay/v1/api_token_service_pb.ts'
import { AuditService } from '../../gen/patchbay/v1/audit_service_pb.ts'
import { CallLogService } from '../../gen/patchbay/v1/call_log_service_pb.ts'
import { CatalogService } from '../../gen/patchbay/v1/catalog_service_pb.ts'
import { DaemonService } from '../../gen/patchbay/v1/daemon_service_pb.ts'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { EnvironmentService } from '../../gen/patchbay/v1/environment_service_pb.ts'
import { EventService } from '../../gen/patchbay/v1/event_service_pb.ts'
import { InboundEventService } from '../../gen/patchbay/v1/inbound_event_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { LinkTokenService } from '../../gen/patchbay/v1/link_token_service_pb.ts'
import { OverviewService } from '../../gen/patchbay/v1/overview_service_pb.ts'
import { ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { SyncJobService } from '../../gen/patchbay/v1/sync_job_service_pb.ts'
import { TaskService } from '../../gen/patchbay/v1/task_service_pb.ts'
import { TeamService } from '../../gen/patchbay/v1/team_service_pb.ts'
import { ToolServerService } from '../../gen/patchbay/v1/tool_server_service_pb.ts'
import { UnifiedMappingService } from '../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import { UnifiedModelService } from '../../gen/patchbay/v1/unified_model_service_pb.ts'
import { UnifiedService } from '../../gen/patchbay/v1/unified_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import type { Client } from './client.ts'
import { EXAMPLE_CONFIG, freshName, idOf, NEVER_FIRES, type SeededTenant } from './seeded-tenant.ts'

/** A mapping of which a check finds nothing: warnings are answered to writes alone. */
const LISTS_REPOS = { resource: 'repos', method: 'list', response: { fields: { id: 'id', name: 'name' } } }

/** Every service of the contract, in the order of its table. */
export const SERVICES: readonly DescService[] = [
  TeamService,
  EnvironmentService,
  ApiTokenService,
  IntegrationService,
  EnvironmentIntegrationService,
  CatalogService,
  IntegratedAccountService,
  LinkTokenService,
  SyncJobService,
  SyncJobCronTriggerService,
  SyncJobRunService,
  DaemonService,
  WebhookService,
  EventService,
  InboundEventService,
  CallLogService,
  OverviewService,
  TaskService,
  ProxyService,
  UnifiedModelService,
  UnifiedMappingService,
  UnifiedService,
  ToolServerService,
  AuditService,
]

/** What a kind of resource lets clients do, for tests that hold of all kinds. */
export interface ResourceKind {
  /** As errors name it. */
  readonly noun: string
  /** Which token the operations below need. */
  readonly token: 'team' | 'environment'
  readonly create: DescMethodUnary
  /** A request that creates another one; different every time. `admin` may make what it needs. */
  createRequest(tenant: SeededTenant, admin: Client): JsonObject | Promise<JsonObject>
  /** A field of the create request, and another value for it. */
  readonly otherCreate: JsonObject
  readonly get: DescMethodUnary
  readonly list: DescMethodUnary
  /** The field of the list answer that holds the items. */
  readonly items: string
  readonly update?: { readonly method: DescMethodUnary; change(): JsonObject }
  readonly delete?: DescMethodUnary
}

/** The table of kinds; each row is tested for the conventions that all share. */
export const KINDS: readonly ResourceKind[] = [
  {
    noun: 'team',
    token: 'team',
    create: TeamService.method.createTeam,
    createRequest: () => ({ name: freshName('team') }),
    otherCreate: { domain: 'other.example' },
    get: TeamService.method.getTeam,
    list: TeamService.method.listTeams,
    items: 'teams',
    update: { method: TeamService.method.updateTeam, change: () => ({ name: 'Changed' }) },
    delete: TeamService.method.deleteTeam,
  },
  {
    noun: 'environment',
    token: 'team',
    create: EnvironmentService.method.createEnvironment,
    createRequest: () => ({ name: freshName('environment') }),
    otherCreate: { name: 'other' },
    get: EnvironmentService.method.getEnvironment,
    list: EnvironmentService.method.listEnvironments,
    items: 'environments',
    update: { method: EnvironmentService.method.updateEnvironment, change: () => ({ name: freshName('changed') }) },
    delete: EnvironmentService.method.deleteEnvironment,
  },
  {
    noun: 'api_token',
    token: 'team',
    create: ApiTokenService.method.createApiToken,
    createRequest: () => ({ kind: 'team', name: freshName('token'), preset: 'full' }),
    otherCreate: { name: 'other' },
    get: ApiTokenService.method.getApiToken,
    list: ApiTokenService.method.listApiTokens,
    items: 'api_tokens',
    update: { method: ApiTokenService.method.updateApiToken, change: () => ({ name: 'changed' }) },
    delete: ApiTokenService.method.deleteApiToken,
  },
  {
    noun: 'integration',
    token: 'team',
    create: IntegrationService.method.createIntegration,
    createRequest: () => ({ name: freshName('integration'), config: EXAMPLE_CONFIG }),
    otherCreate: { category: 'other' },
    get: IntegrationService.method.getIntegration,
    list: IntegrationService.method.listIntegrations,
    items: 'integrations',
    update: { method: IntegrationService.method.updateIntegration, change: () => ({ category: 'crm' }) },
    delete: IntegrationService.method.deleteIntegration,
  },
  {
    noun: 'environment_integration',
    token: 'environment',
    create: EnvironmentIntegrationService.method.createEnvironmentIntegration,
    createRequest: async (_, admin) => ({
      integration_id: await idOf(admin, IntegrationService.method.createIntegration, {
        name: freshName('integration'),
        config: EXAMPLE_CONFIG,
      }),
    }),
    otherCreate: { is_enabled: false },
    get: EnvironmentIntegrationService.method.getEnvironmentIntegration,
    list: EnvironmentIntegrationService.method.listEnvironmentIntegrations,
    items: 'environment_integrations',
    update: {
      method: EnvironmentIntegrationService.method.updateEnvironmentIntegration,
      change: () => ({ show_in_catalog: true }),
    },
    delete: EnvironmentIntegrationService.method.deleteEnvironmentIntegration,
  },
  {
    noun: 'integrated_account',
    token: 'environment',
    create: IntegratedAccountService.method.createIntegratedAccount,
    createRequest: ({ environmentIntegrationId }) => ({
      environment_integration_id: environmentIntegrationId,
      tenant_id: freshName('tenant'),
      credentials: { api_key: 'k-456' },
    }),
    otherCreate: { tenant_id: 'other' },
    get: IntegratedAccountService.method.getIntegratedAccount,
    list: IntegratedAccountService.method.listIntegratedAccounts,
    items: 'integrated_accounts',
    update: {
      method: IntegratedAccountService.method.updateIntegratedAccount,
      change: () => ({ tenant_id: 'changed' }),
    },
    delete: IntegratedAccountService.method.deleteIntegratedAccount,
  },
  {
    noun: 'link_token',
    token: 'environment',
    create: LinkTokenService.method.createLinkToken,
    createRequest: () => ({ tenant_id: freshName('tenant') }),
    otherCreate: { tenant_id: 'other' },
    get: LinkTokenService.method.getLinkToken,
    list: LinkTokenService.method.listLinkTokens,
    items: 'link_tokens',
  },
  {
    noun: 'sync_job',
    token: 'environment',
    create: SyncJobService.method.createSyncJob,
    createRequest: () => ({
      label: freshName('job'),
      integration_name: 'example',
      resources: [{ resource: 'repos', method: 'list' }],
    }),
    otherCreate: { label: 'other' },
    get: SyncJobService.method.getSyncJob,
    list: SyncJobService.method.listSyncJobs,
    items: 'sync_jobs',
    update: { method: SyncJobService.method.updateSyncJob, change: () => ({ label: 'changed' }) },
    delete: SyncJobService.method.deleteSyncJob,
  },
  {
    noun: 'sync_job_cron_trigger',
    token: 'environment',
    create: SyncJobCronTriggerService.method.createSyncJobCronTrigger,
    createRequest: ({ syncJobId, integratedAccountId }) => ({
      sync_job_id: syncJobId,
      integrated_account_id: integratedAccountId,
      cron_expression: NEVER_FIRES,
      daemon_group_key: freshName('group'),
    }),
    otherCreate: { cron_expression: '0 0 2 1 *' },
    get: SyncJobCronTriggerService.method.getSyncJobCronTrigger,
    list: SyncJobCronTriggerService.method.listSyncJobCronTriggers,
    items: 'sync_job_cron_triggers',
    update: {
      method: SyncJobCronTriggerService.method.updateSyncJobCronTrigger,
      change: () => ({ cron_expression: '0 0 2 1 *' }),
    },
    delete: SyncJobCronTriggerService.method.deleteSyncJobCronTrigger,
  },
  {
    noun: 'sync_job_run',
    token: 'environment',
    create: SyncJobRunService.method.createSyncJobRun,
    createRequest: ({ syncJobId, integratedAccountId }) => ({
      sync_job_id: syncJobId,
      integrated_account_id: integratedAccountId,
      daemon_group_key: freshName('group'),
    }),
    otherCreate: { ignore_previous_run: true },
    get: SyncJobRunService.method.getSyncJobRun,
    list: SyncJobRunService.method.listSyncJobRuns,
    items: 'sync_job_runs',
  },
  {
    noun: 'webhook',
    token: 'environment',
    create: WebhookService.method.createWebhook,
    createRequest: () => ({ target_url: `https://app.example.com/${freshName('hook')}` }),
    otherCreate: { is_active: false },
    get: WebhookService.method.getWebhook,
    list: WebhookService.method.listWebhooks,
    items: 'webhooks',
    update: { method: WebhookService.method.updateWebhook, change: () => ({ is_active: false }) },
    delete: WebhookService.method.deleteWebhook,
  },
  {
    noun: 'tool_server',
    token: 'environment',
    create: ToolServerService.method.createToolServer,
    createRequest: ({ integratedAccountId }) => ({
      name: freshName('tools'),
      integrated_account_id: integratedAccountId,
    }),
    otherCreate: { name: 'other' },
    get: ToolServerService.method.getToolServer,
    list: ToolServerService.method.listToolServers,
    items: 'tool_servers',
    update: { method: ToolServerService.method.updateToolServer, change: () => ({ name: 'changed' }) },
    delete: ToolServerService.method.deleteToolServer,
  },
  {
    noun: 'unified_mapping',
    token: 'environment',
    create: UnifiedMappingService.method.createUnifiedMapping,
    createRequest: async (_, admin) => {
      const name = freshName('integration')
      await idOf(admin, IntegrationService.method.createIntegration, { name, config: EXAMPLE_CONFIG })
      return {
        model: 'crm',
        resource: 'contacts',
        integration_name: name,
        method: 'list',
        config: LISTS_REPOS,
      }
    },
    otherCreate: { resource: 'accounts' },
    get: UnifiedMappingService.method.getUnifiedMapping,
    list: UnifiedMappingService.method.listUnifiedMappings,
    items: 'unified_mappings',
    update: {
      method: UnifiedMappingService.method.updateUnifiedMapping,
      change: () => ({ config: { ...LISTS_REPOS, custom_fields: { mode: 'none' } } }),
    },
    delete: UnifiedMappingService.method.deleteUnifiedMapping,
  },
]

/** The token of a tenant that the kind's operations need. */
export function tokenFor({ token }: Pick<ResourceKind, 'token'>, tenant: SeededTenant): string {
  return token === 'team' ? tenant.teamToken : tenant.environmentToken
}

/** Every operation of the contract. */
export const OPERATIONS: readonly DescMethodUnary[] = SERVICES.flatMap(({ methods }) =>
  methods.filter((method): method is DescMethodUnary => method.methodKind === 'unary'),
)

/** Fields whose identifiers are not this service's. */
const FOREIGN_IDS = [
  'CreateIntegratedAccountRequest.tenant_id',
  'UpdateIntegratedAccountRequest.tenant_id',
  'ListIntegratedAccountsRequest.tenant_id',
  'CreateLinkTokenRequest.tenant_id',
  'ListLinkTokensRequest.tenant_id',
  'CallRequest.id',
  'ListAuditEntriesRequest.target_id',
  'ListCallLogEntriesRequest.cause_id',
  'CreateToolServerRequest.tenant_id',
  'ListToolServersRequest.tenant_id',
  'UnifiedServiceCallRequest.id',
]

/** Names of request fields that hold a uuid: identifiers of resources. A `request_id` is any text. */
export function idFieldsOf({ input }: DescMethodUnary): readonly string[] {
  return input.fields
    .filter(({ name, fieldKind }) => fieldKind === 'scalar' && /(^|_)id$/.test(name) && name !== 'request_id')
    .filter(({ name }) => !FOREIGN_IDS.includes(`${input.name}.${name}`))
    .map(({ name }) => name)
}

/** Values of the fields of unified resources that are part of an address and no identifiers. */
export function namesInPath({ input, parent }: DescMethodUnary): JsonObject {
  if (parent.name !== 'UnifiedModelService') return {}
  const names = input.fields.map(({ name }) => name).filter((name) => name === 'name' || name === 'model')
  return Object.fromEntries(names.map((name) => [name, 'crm']))
}
