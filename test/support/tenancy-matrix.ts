import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromJson,
  getOption,
  toJson,
} from '@bufbuild/protobuf'
import { field as fieldRules } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { Code, ConnectError } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { FieldBehavior, field_behavior } from '../../gen/google/api/field_behavior_pb.ts'
import { DaemonService } from '../../gen/patchbay/v1/daemon_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { Database } from '../../src/foundation/database/index.ts'
import { execute } from '../../src/foundation/database/index.ts'
import type { Json, JsonObject } from '../../src/foundation/json/index.ts'
import { enqueueDeliveries } from '../../src/webhooks/outbound/sql/delivery.ts'
import type { Client } from './client.ts'
import { SERVICES } from './operations.ts'
import { freshName, NEVER_FIRES, type SeededTenant } from './seeded-tenant.ts'

/** A seeded tenant with a daemon that holds a run, and with what only workers and third parties make. */
export interface TenancyFixture extends SeededTenant, History {
  readonly daemonId: string
  readonly heldRunId: string
  readonly leaseId: string
}

/** Rows that no call makes. */
export interface History {
  readonly deliveryId: string
  readonly inboundEventId: string
  readonly callLogEntryId: string
}

/** Makes a delivery of an event of the tenant, as the dispatcher does, and a request of a third party. */
export async function addHistory(database: Database, tenant: SeededTenant): Promise<History> {
  const { pool } = database
  const { environmentId, webhookId, eventId } = tenant
  const [deliveryId] = await database.transaction((tx) =>
    enqueueDeliveries(tx, [{ environmentId, webhookId, eventId, trigger: 'automatic' }]),
  )
  if (deliveryId === undefined) throw new Error('the event is gone')
  const inboundEventId = newId()
  await execute(
    pool,
    `insert into inbound_event (environment_id, id, source_kind, source_id, environment_integration_id,
       integrated_account_id, method, path, query, remote_address, body_bytes, state, signature)
     values (:environmentId, :inboundEventId, 'integrated_account', :accountId, :installationId, :accountId, 'POST', '/', '',
       '192.0.2.1', 0, 'processed', 'none')`,
    {
      environmentId,
      inboundEventId,
      accountId: tenant.integratedAccountId,
      installationId: tenant.environmentIntegrationId,
    },
  )
  const callLogEntryId = newId()
  await execute(
    pool,
    `insert into call_log_entry (environment_id, id, integrated_account_id, environment_integration_id, resource, method,
       http_method, url, class, started_at, total_ms, attempt, bytes_sent, bytes_received, cause, cause_id)
     values (:environmentId, :callLogEntryId, :accountId, :installationId, 'rare', 'list', 'GET', 'https://api.example.com/',
       'error', now(), 1, 1, 0, 0, 'run', 'rare')`,
    {
      environmentId,
      callLogEntryId,
      accountId: tenant.integratedAccountId,
      installationId: tenant.environmentIntegrationId,
    },
  )
  return { deliveryId, inboundEventId, callLogEntryId }
}

/** What a second page of a list takes, where no call of `seedTenant` makes two of it. */
export async function addSecondRows({ pool }: Database, world: SeededTenant): Promise<void> {
  const { environmentId, integrationId, syncJobCronTriggerId: triggerId, toolServerId } = world
  const statements = [
    `insert into integration_grant (integration_id, team_id) select :integrationId, id from team limit 2`,
    `update environment_integration set show_in_catalog = true where environment_id = :environmentId`,
    `insert into missed_ticks (environment_id, trigger_id, first_at, last_at, count)
     select :environmentId, :triggerId, now() - n * interval '1 hour', now() - n * interval '1 hour', 1 from generate_series(1, 2) n`,
    `insert into tool_server_call
       (environment_id, id, tool_server_id, tool, token_hint, error_type, duration_ms, result_bytes, is_dry_run)
     select :environmentId, id, :toolServerId, 'tool', '', '', 1, 1, false from unnest(:ids::uuid[]) as made (id)`,
    `insert into call_log_entry (environment_id, id, resource, method, http_method, url, class, started_at, total_ms, attempt,
       bytes_sent, bytes_received, cause)
     select :environmentId, id, '', '', 'GET', '', 'success', now(), 1, 1, 0, 0, 'call' from unnest(:ids::uuid[]) as made (id)`,
  ]
  const parameters = { environmentId, integrationId, triggerId, toolServerId, ids: [newId(), newId()] }
  for (const statement of statements) await execute(pool, statement, parameters)
}

/** A field of a request, at any depth, that holds the id of a resource. */
export interface IdLocation {
  /** `Method.field.field`. */
  readonly name: string
  readonly method: DescMethod
  readonly path: readonly string[]
  readonly key: keyof TenancyFixture
}

/** Adds a claimed run of a daemon to a seeded tenant. */
export async function addHeldRun<Made extends SeededTenant>(
  client: Client,
  tenant: Made,
): Promise<Made & Pick<TenancyFixture, 'daemonId' | 'heldRunId' | 'leaseId'>> {
  const group = freshName('group')
  const request = { sync_job_id: tenant.syncJobId, integrated_account_id: tenant.integratedAccountId }
  await client.ok(SyncJobRunService.method.createSyncJobRun, { ...request, daemon_group_key: group })
  const daemon = await client.ok(DaemonService.method.registerDaemon, { label: 'host', group_key: group })
  const claimed = await client.ok(DaemonService.method.claimRuns, { daemon_id: daemon.daemon_id ?? '' })
  const [held] = claimed.runs as unknown as readonly {
    readonly lease_id: string
    readonly run: { readonly id: string }
  }[]
  if (held === undefined) throw new Error('the run was not claimed')
  return { ...tenant, daemonId: String(daemon.daemon_id), heldRunId: held.run.id, leaseId: held.lease_id }
}

/** Resources of a team; all its environments see them. */
const OF_TEAMS: readonly (keyof TenancyFixture)[] = ['teamId', 'environmentId', 'integrationId', 'apiTokenId']

/** Whether the resource belongs to one environment. */
export function isOfEnvironment({ key }: IdLocation): boolean {
  return !OF_TEAMS.includes(key)
}

/** Names another team on purpose: who may install an integration. */
const OTHER_TEAMS = ['CreateIntegrationGrant.team_id', 'DeleteIntegrationGrant.team_id']

/** The account of a limited token, within a message that has other limits too; `token-limits.test.ts` names a foreign one. */
const TOKEN_LIMIT = 'CreateApiToken.limits.integrated_account_id'

/** Filters of a task, whose answer has an id and times of its own; `inbound-event.test.ts` shows what it leaves alone. */
const TASK_FILTERS = ['ReplayInboundEvents.source_id', 'ReplayInboundEvents.integrated_account_id']

/** Which resource a field names, by its own name; `id` names the resource of the RPC or of the service. */
const KEYS: Readonly<Record<string, keyof TenancyFixture>> = {
  'CallLogService.id': 'callLogEntryId',
  actor_id: 'apiTokenId',
  team_id: 'teamId',
  environment_id: 'environmentId',
  integration_id: 'integrationId',
  environment_integration_id: 'environmentIntegrationId',
  integrated_account_id: 'integratedAccountId',
  sync_job_id: 'syncJobId',
  webhook_id: 'webhookId',
  trigger_id: 'syncJobCronTriggerId',
  daemon_id: 'daemonId',
  run_id: 'heldRunId',
  sync_job_run_id: 'syncJobRunId',
  lease_id: 'leaseId',
  subject_id: 'integratedAccountId',
  event_id: 'eventId',
  'GetWebhookDelivery.id': 'deliveryId',
  'ReplayWebhookDelivery.id': 'deliveryId',
  'TeamService.id': 'teamId',
  'EnvironmentService.id': 'environmentId',
  'ApiTokenService.id': 'apiTokenId',
  'IntegrationService.id': 'integrationId',
  'EnvironmentIntegrationService.id': 'environmentIntegrationId',
  'IntegratedAccountService.id': 'integratedAccountId',
  'LinkTokenService.id': 'linkTokenId',
  'SyncJobService.id': 'syncJobId',
  'SyncJobCronTriggerService.id': 'syncJobCronTriggerId',
  'SyncJobRunService.id': 'syncJobRunId',
  'WebhookService.id': 'webhookId',
  'EventService.id': 'eventId',
  'TaskService.id': 'taskId',
  'InboundEventService.id': 'inboundEventId',
  'ToolServerService.id': 'toolServerId',
  'UnifiedMappingService.id': 'unifiedMappingId',
  source_id: 'integratedAccountId',
}

/** Identifiers that the client chooses. */
const OWN_IDS = ['request_id', 'log_id']

/** What the request log of the caller's environment names as the cause: it is not looked up, and finds nothing. */
const LOG_LABEL = 'ListPages.sync_job_run_id'

/**
 * Every field of every request of the contract that the rules say is a uuid, found in the descriptors: a new operation or
 * field is in the matrix without being listed.
 *
 * @throws Error for a field of a name that KEYS does not know
 */
export function idLocations(): readonly IdLocation[] {
  return SERVICES.flatMap(({ methods }) =>
    methods.flatMap((method) =>
      uuidPaths(method.input).map((path) => ({
        name: `${method.name}.${path.join('.')}`,
        method,
        path,
        key: keyOf(method, path),
      })),
    ),
  ).filter(
    ({ name }) =>
      name !== LOG_LABEL && !OTHER_TEAMS.includes(name) && !TASK_FILTERS.includes(name) && name !== TOKEN_LIMIT,
  )
}

function uuidPaths({ fields, typeName }: DescMessage): readonly (readonly string[])[] {
  if (typeName.startsWith('google.protobuf.')) return []
  return fields.flatMap((field) => {
    if (isUuid(field)) return OWN_IDS.includes(field.name) ? [] : [[field.name]]
    const inner = field.fieldKind === 'message' || field.fieldKind === 'list' ? field.message : undefined
    return inner === undefined ? [] : uuidPaths(inner).map((path) => [field.name, ...path])
  })
}

function isUuid(field: DescField): boolean {
  const { type } = getOption(field, fieldRules)
  return type.case === 'string' && type.value.wellKnown.case === 'uuid' && type.value.wellKnown.value
}

function keyOf({ name, parent }: DescMethod, path: readonly string[]): keyof TenancyFixture {
  const last = path.at(-1) ?? ''
  const key = last === 'id' ? (KEYS[`${name}.id`] ?? KEYS[`${parent.name}.id`]) : KEYS[last]
  if (key === undefined) throw new Error(`${name}.${path.join('.')}: the tenancy matrix does not know whose id this is`)
  return key
}

/** Values of required fields that are no ids, by field name. */
const VALUES: Readonly<Record<string, () => Json>> = {
  name: () => freshName('name'),
  label: () => 'label',
  kind: () => 'team',
  resource: () => 'repos',
  model: () => 'crm',
  field: () => 'channel',
  tenant_id: () => 'acme',
  cron_expression: () => NEVER_FIRES,
  group_key: () => 'group',
  method: () => 'list',
  integration_name: () => 'example',
  target_url: () => 'https://app.example.com/hook',
  resources: () => [{ resource: 'repos', method: 'list' }],
  credentials: () => ({ api_key: 'k' }),
  error: () => ({ reason: 'INTERNAL', message: 'x' }),
  reason: () => 'INTERNAL',
  message: () => 'x',
  config: () => ({}),
  since: () => '2026-01-01T00:00:00Z',
}

/** Operations that need more than their required fields to get as far as looking an id up. */
const MORE: Readonly<Record<string, () => JsonObject>> = {
  CreateApiToken: () => ({ kind: 'environment', preset: 'full' }),
  CreateUnifiedModel: () => ({ name: freshName('model').replaceAll('-', '_') }),
  CheckUnifiedModel: () => ({ name: freshName('model').replaceAll('-', '_') }),
  CreateSyncJobCronTrigger: () => ({ daemon_group_key: 'group' }),
  CreateSyncJobRun: () => ({ daemon_group_key: 'group' }),
  Call: () => ({ resource: 'repos', method: 'list' }),
}

/** A request about the tenant's own resources that passes validation: the required fields, and no more than it needs. */
export function acceptableRequest(method: DescMethod, tenant: TenancyFixture): JsonObject {
  return { ...requiredOf(method.input, method, tenant), ...MORE[method.name]?.() }
}

/** The same with `id` at the place. */
export function requestWith({ method, path }: IdLocation, tenant: TenancyFixture, id: string): JsonObject {
  const { daemon_group_key: group, ...rest } = acceptableRequest(method, tenant)
  const request = group === undefined || path[0] === 'webhook_id' ? rest : { ...rest, daemon_group_key: group }
  if (path[0] === 'team_id') return { ...request, kind: 'team', team_id: id }
  if (path[0] === 'held')
    return { ...request, held: [{ run_id: tenant.heldRunId, lease_id: tenant.leaseId, [path[1] ?? '']: id }] }
  return { ...request, [path[0] ?? '']: id }
}

function requiredOf(message: DescMessage, method: DescMethod, tenant: TenancyFixture): JsonObject {
  const required = message.fields.filter((field) => getOption(field, field_behavior).includes(FieldBehavior.REQUIRED))
  return Object.fromEntries(
    required.map((field) => {
      if (isUuid(field)) return [field.name, tenant[keyOf(method, [field.name])]]
      const value = VALUES[field.name]
      if (value === undefined) throw new Error(`${method.name}.${field.name}: the tenancy matrix has no value for it`)
      return [field.name, value()]
    }),
  )
}

/** Sends a request; what comes back, as text that does not depend on when it came. */
export type SendAs = (method: DescMethod, request: JsonObject) => Promise<string>

/** Sends as a client does; streams, which clients of all wires cannot read, over Connect until their first answer. */
export function sendAs(client: Client, baseUrl: string, headers: Readonly<Record<string, string>>): SendAs {
  const transport = createConnectTransport({ baseUrl, httpVersion: '1.1' })
  return async (method, request) => {
    if (method.methodKind === 'unary') {
      const outcome = await client.send(method as DescMethodUnary, request, { headers })
      return JSON.stringify(outcome.ok ? { ok: true, json: outcome.json } : outcome.error)
    }
    if (method.methodKind !== 'server_streaming') throw new Error(`${method.name}: no streams of requests`)
    const messages = (async function* () {
      yield fromJson(method.input, request as never) as never
    })()
    try {
      const { message } = await transport.stream(
        method as DescMethodServerStreaming,
        undefined,
        10_000,
        headers,
        messages,
      )
      for await (const answer of message)
        return JSON.stringify({ ok: true, json: toJson(method.output, answer as never) })
      return JSON.stringify({ ok: true })
    } catch (error) {
      const { code, rawMessage, details } = ConnectError.from(error)
      return `${Code[code]} ${rawMessage} ${JSON.stringify(details.map((detail) => ('debug' in detail ? detail.debug : detail)))}`
    }
  }
}

/**
 * Sends the id of another tenant and an unknown one, both as the same sender.
 *
 * @returns what is wrong, or `undefined`: a foreign id must be answered like an unknown one, and the answer names nothing
 *   of the other tenant
 */
export async function compareForeign(
  ask: SendAs,
  place: IdLocation,
  own: TenancyFixture,
  other: TenancyFixture,
): Promise<string | undefined> {
  const [unknownId, foreignId] = [newId(), other[place.key]]
  const neutral = (text: string, id: string) => text.replaceAll(id, '<id>')
  const unknown = neutral(await ask(place.method, requestWith(place, own, unknownId)), unknownId)
  const foreign = neutral(await ask(place.method, requestWith(place, own, foreignId)), foreignId)
  if (!LOOKED_UP.test(unknown)) return `${place.name}: the request was rejected before the id was looked up: ${unknown}`
  if (foreign !== unknown) return `${place.name}: ${foreign} instead of ${unknown}`
  return undefined
}

/** Errors that depend on the id, lists that find nothing, and what only the operator may name at all. */
const LOOKED_UP = /NotFound|RESOURCE_NOT_FOUND|WEBHOOK_NOT_FOUND|LEASE_LOST|OPERATOR_TEAM_REQUIRED|"ok":true/
