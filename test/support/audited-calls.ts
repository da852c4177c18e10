import type { DescMethodUnary } from '@bufbuild/protobuf'
import { ApiTokenService } from '../../gen/patchbay/v1/api_token_service_pb.ts'
import { EnvironmentService } from '../../gen/patchbay/v1/environment_service_pb.ts'
import { EventService } from '../../gen/patchbay/v1/event_service_pb.ts'
import { InboundEventService } from '../../gen/patchbay/v1/inbound_event_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { LinkTokenService } from '../../gen/patchbay/v1/link_token_service_pb.ts'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { TaskService } from '../../gen/patchbay/v1/task_service_pb.ts'
import { TeamService } from '../../gen/patchbay/v1/team_service_pb.ts'
import { ToolServerService } from '../../gen/patchbay/v1/tool_server_service_pb.ts'
import { UnifiedMappingService } from '../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import { UnifiedModelService } from '../../gen/patchbay/v1/unified_model_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import { execute } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { callDefinition, connectAccount } from '../product/calls.ts'
import type { TestApp } from './app.ts'
import { KINDS, tokenFor } from './operations.ts'
import { EXAMPLE_CONFIG, freshName, idOf, type SeededTenant } from './seeded-tenant.ts'
import { addHistory } from './tenancy-matrix.ts'
import type { Upstream } from './upstream.ts'

/** A call that succeeds, and what its entry in the audit log is about. */
export interface AuditedCall {
  readonly method: DescMethodUnary
  /** Makes what the call needs. */
  request(): JsonObject | Promise<JsonObject>
  readonly token: 'team' | 'environment'
  readonly targetType: string
  /** The target's id, given request and answer; absent: that of the request. */
  targetId?(request: JsonObject, answer: JsonObject): unknown
}

/**
 * A successful call of each operation that changes something.
 *
 * @param upstream the third party of those that reach one
 */
export function auditedCalls(app: TestApp, tenant: SeededTenant, upstream: Upstream): readonly AuditedCall[] {
  const team = app.client('connect', { token: tenant.teamToken })
  const environment = app.client('connect', { token: tenant.environmentToken })
  const { pool } = app.database
  const make = async (noun: string): Promise<JsonObject> => {
    const kind = KINDS.find((each) => each.noun === noun)
    if (kind === undefined) throw new Error(`there is no kind ${noun}`)
    const client = kind.token === 'team' ? team : environment
    return { id: await idOf(client, kind.create, await kind.createRequest(tenant, team)) }
  }
  const ofMade = (of: { readonly noun: string; readonly service: Calls }): readonly AuditedCall[] =>
    of.service.map(({ method, also }) => ({
      method,
      request: async () => ({ ...(await make(of.noun)), ...also?.() }),
      token: KINDS.find(({ noun }) => noun === of.noun)?.token ?? 'environment',
      targetType: of.noun,
    }))
  const since = { since: '2026-01-01T00:00:00Z' }
  const grant = async () => {
    const config = { name: freshName('shared'), config: EXAMPLE_CONFIG, sharing: 'ask' }
    const integrationId = await idOf(team, IntegrationService.method.createIntegration, config)
    const teamId = await idOf(team, TeamService.method.createTeam, { name: freshName('guest') })
    return { integration_id: integrationId, team_id: teamId }
  }
  const ofGrant = {
    token: 'team',
    targetType: 'integration_grant',
    targetId: ({ integration_id }: JsonObject) => integration_id,
  } as const
  const model = async () => {
    await team.ok(UnifiedModelService.method.deleteUnifiedModel, { name: 'crm' }).catch(() => undefined)
    return { name: 'crm', config: { description: freshName('model') } }
  }
  const storedModel = async () => {
    await team.ok(UnifiedModelService.method.createUnifiedModel, await model())
    return { name: 'crm' }
  }
  const ofModel = {
    token: 'team',
    targetType: 'unified_model',
    targetId: ({ name }: JsonObject) => name,
  } as const
  const history = async () => await addHistory(app.database, tenant)
  return [
    ...connectedCalls(app, tenant, upstream),
    ...KINDS.flatMap((kind): readonly AuditedCall[] => [
      {
        method: kind.create,
        request: async () => await kind.createRequest(tenant, team),
        token: kind.token,
        targetType: kind.noun,
        targetId: (_, answer) => answer.id,
      },
      ...ofMade({
        noun: kind.noun,
        service: [
          ...(kind.update === undefined ? [] : [{ method: kind.update.method, also: kind.update.change }]),
          ...(kind.delete === undefined ? [] : [{ method: kind.delete }]),
        ],
      }),
    ]),
    ...ofMade({ noun: 'api_token', service: [{ method: ApiTokenService.method.revokeApiToken }] }),
    { method: IntegrationService.method.createIntegrationGrant, request: grant, ...ofGrant },
    {
      method: IntegrationService.method.deleteIntegrationGrant,
      request: async () => {
        const pair = await grant()
        await team.ok(IntegrationService.method.createIntegrationGrant, pair)
        return pair
      },
      ...ofGrant,
    },
    ...ofMade({
      noun: 'integrated_account',
      service: [
        {
          method: IntegratedAccountService.method.updateIntegratedAccountCredentials,
          also: () => ({ credentials: { api_key: 'k-789' } }),
        },
        { method: IntegratedAccountService.method.issueBrowserToken },
      ],
    }),
    {
      method: IntegratedAccountService.method.runIntegratedAccountActions,
      request: async () => {
        const { id } = await make('integrated_account')
        await execute(pool, `update integrated_account set status = 'validation_error' where id = :id`, {
          id: String(id),
        })
        return { id: String(id) }
      },
      token: 'environment',
      targetType: 'integrated_account',
    },
    ...ofMade({ noun: 'link_token', service: [{ method: LinkTokenService.method.cancelLinkToken }] }),
    ...ofMade({
      noun: 'sync_job_cron_trigger',
      service: [
        { method: SyncJobCronTriggerService.method.pauseSyncJobCronTrigger },
        { method: SyncJobCronTriggerService.method.resumeSyncJobCronTrigger },
        { method: SyncJobCronTriggerService.method.runSyncJobCronTrigger },
      ],
    }),
    ...ofMade({ noun: 'sync_job_run', service: [{ method: SyncJobRunService.method.stopSyncJobRun }] }),
    {
      method: SyncJobRunService.method.retrySyncJobRun,
      request: async () => {
        const { id } = await make('sync_job_run')
        await environment.ok(SyncJobRunService.method.stopSyncJobRun, { id: String(id) })
        return { id: String(id) }
      },
      token: 'environment',
      targetType: 'sync_job_run',
    },
    ...ofMade({
      noun: 'webhook',
      service: [
        { method: WebhookService.method.rotateWebhookSecret },
        { method: WebhookService.method.testWebhook },
        { method: WebhookService.method.recoverWebhookDeliveries, also: () => since },
        { method: WebhookService.method.replayMissingWebhookDeliveries, also: () => since },
      ],
    }),
    {
      method: WebhookService.method.replayWebhookDelivery,
      request: async () => ({ id: (await history()).deliveryId }),
      token: 'environment',
      targetType: 'webhook_delivery',
    },
    ...[InboundEventService.method.replayInboundEvent, InboundEventService.method.expungeInboundEvent].map(
      (method): AuditedCall => ({
        method,
        request: async () => {
          const { inboundEventId: id } = await history()
          await execute(
            pool,
            `insert into inbound_content (environment_id, id, headers, body) values (:environmentId, :id, '[]', '{}')`,
            { environmentId: tenant.environmentId, id },
          )
          return { id }
        },
        token: 'environment',
        targetType: 'inbound_event',
      }),
    ),
    {
      method: InboundEventService.method.replayInboundEvents,
      request: () => ({ state: 'failed', ...since }),
      token: 'environment',
      targetType: 'inbound_event',
      targetId: () => null,
    },
    {
      method: TaskService.method.cancelTask,
      request: async () => {
        const { id } = await make('webhook')
        const request = { id: String(id), ...since }
        return { id: await idOf(environment, WebhookService.method.recoverWebhookDeliveries, request) }
      },
      token: 'environment',
      targetType: 'task',
    },
    { method: UnifiedModelService.method.createUnifiedModel, request: model, ...ofModel },
    {
      method: UnifiedModelService.method.updateUnifiedModel,
      request: async () => ({ ...(await storedModel()), config: { description: 'changed' } }),
      ...ofModel,
    },
    { method: UnifiedModelService.method.deleteUnifiedModel, request: storedModel, ...ofModel },
    {
      method: UnifiedMappingService.method.pushUnifiedMappings,
      request: () => ({ scope: 'environment', models: [], mappings: [] }),
      token: 'environment',
      targetType: 'unified_mapping',
      targetId: () => null,
    },
    ...ofMade({ noun: 'tool_server', service: [{ method: ToolServerService.method.rotateToolServerToken }] }),
    // Last: deliveries above are of this event.
    {
      method: EventService.method.expungeEvent,
      request: () => ({ id: tenant.eventId }),
      token: 'environment',
      targetType: 'event',
    },
  ]
}

/** Calls about an account of the third party. */
function connectedCalls(app: TestApp, tenant: SeededTenant, upstream: Upstream): readonly AuditedCall[] {
  const { issueAccessToken, recreateWebhookSubscriptions, refreshIntegratedAccountCredentials, submitPostConnectForm } =
    IntegratedAccountService.method
  const definition = callDefinition(upstream.url)
  const active = async (also: JsonObject = {}, fields: JsonObject = {}) => {
    const { accountId: id } = await connectAccount(app, tenant, { ...definition, ...also }, fields)
    await execute(app.database.pool, `update integrated_account set status = 'active' where id = :id`, { id })
    return { id }
  }
  const ofAccount = { token: 'environment', targetType: 'integrated_account' } as const
  return [
    {
      method: issueAccessToken,
      request: async () => {
        const team = app.client('connect', { token: tenant.teamToken })
        const allowed = { id: tenant.environmentId, allow_access_tokens: true }
        await team.ok(EnvironmentService.method.updateEnvironment, allowed)
        return await active()
      },
      ...ofAccount,
    },
    {
      method: refreshIntegratedAccountCredentials,
      request: async () => {
        const auth = { tokenHost: upstream.url, tokenPath: '/token' }
        const answer = { json: { access_token: 'a', expires_in: 3_600 } }
        upstream.script({ request: 'POST /token', answer })
        return await active(
          {
            credentials: { oauth2_client_credentials: { config: { auth } } },
            authorization: { format: 'bearer', config: { token: '{{oauth.token.access_token}}' } },
          },
          { credentials: { client_id: 'id', client_secret: 'secret' } },
        )
      },
      ...ofAccount,
    },
    {
      method: recreateWebhookSubscriptions,
      request: async () => {
        const request = { method: 'POST', path: '/hooks' }
        const create = { type: 'request', config: request }
        return await active({ webhook: { subscription: { create, id: 'result.id', expires: '"30d"' } } })
      },
      ...ofAccount,
    },
    {
      method: submitPostConnectForm,
      request: async () => {
        const form = { type: 'form', config: { fields: [{ name: 'days', type: 'number' }] } }
        const { id } = await active({ actions: { post_connect_user_form: form } })
        return { id, values: { days: 3 } }
      },
      ...ofAccount,
    },
  ]
}

type Calls = readonly { readonly method: DescMethodUnary; readonly also?: () => JsonObject }[]

/** The token that the call needs. */
export function tokenOf({ token }: AuditedCall, tenant: SeededTenant): string {
  return tokenFor({ token }, tenant)
}
