import type { JsonObject } from '../../foundation/json/index.ts'
import type { EventType } from './catalog.ts'

const ACCOUNT_ID = '01940f8a-0c00-7000-8000-0000000000a1'
const ENVIRONMENT_ID = '01940f8a-0c00-7000-8000-000000000002'
const INSTALLATION_ID = '01940f8a-0c00-7000-8000-0000000000e1'
const RUN_ID = '01940f8a-0c00-7000-8000-0000000000f1'
const TRIGGER_ID = '01940f8a-0c00-7000-8000-0000000000c1'
const JOB_ID = '01940f8a-0c00-7000-8000-0000000000b1'
const AT = '2025-01-15T09:30:00.000Z'

const IDENTITY = {
  id: ACCOUNT_ID,
  environment_id: ENVIRONMENT_ID,
  environment_integration_id: INSTALLATION_ID,
  integration: { id: '01940f8a-0c00-7000-8000-0000000000d1', name: 'hubspot' },
  tenant_id: 'acme-inc',
}

const ACCOUNT = {
  ...IDENTITY,
  authentication_method: 'oauth2',
  credential: 'oauth2',
  status: 'active',
  last_error: '',
  last_action_result: { post_install: [], validation: [] },
  last_forbidden_error: null,
  reauthorization_due_at: null,
  terms_url: '',
  terms_accepted_at: null,
  context: { portal_id: '4711' },
  region: 'eu',
  is_sandbox: false,
  object_store_context_fields: [],
  created_at: AT,
  updated_at: AT,
}

const LINK_TOKEN = {
  id: '01940f8a-0c00-7000-8000-000000000101',
  status: 'completed',
  step: 'done',
  tenant_id: 'acme-inc',
  integrated_account_id: ACCOUNT_ID,
  environment_integration_id: INSTALLATION_ID,
  integration: 'hubspot',
  error_code: null,
  error_message: null,
}

const INSTALLATION = {
  id: INSTALLATION_ID,
  environment_id: ENVIRONMENT_ID,
  integration_id: IDENTITY.integration.id,
  show_in_catalog: true,
  is_enabled: true,
  changed_paths: ['base_url'],
  hosts_added: ['https://eu.api.example.com'],
  hosts_removed: ['https://api.example.com'],
  reauthorizes_accounts: false,
}

const RUN = {
  id: RUN_ID,
  sync_job_id: JOB_ID,
  trigger_id: TRIGGER_ID,
  integrated_account_id: ACCOUNT_ID,
  tenant_id: 'acme-inc',
  status: 'running',
  args: {},
  error_handling: 'ignore',
  scheduled_for: AT,
  attempt: 1,
  resource_stats: [],
}

const RUN_STATS = {
  resource: 'contacts',
  method: 'list',
  pages: 2,
  fetched: 150,
  delivered: 150,
  failed: 0,
  complete: true,
  distinct: 150,
  duplicates: 0,
  stop_reason: 'no_cursor',
}

const RUN_ERROR = { reason: 'UPSTREAM_ERROR', message: 'the third party answered with status 502' }

const RUN_PAGE = {
  sync_job_run_id: RUN_ID,
  trigger_id: TRIGGER_ID,
  integrated_account_id: ACCOUNT_ID,
  tenant_id: 'acme-inc',
  resource: 'contacts',
  sequence: 0,
}

const RECORD = {
  integrated_account_id: ACCOUNT_ID,
  tenant_id: 'acme-inc',
  environment_integration_id: INSTALLATION_ID,
  integration: IDENTITY.integration,
  resource: 'contacts',
  record_id: '512',
  data: { id: 512, email: 'ada@example.com' },
  occurred_at: AT,
  inbound_event_id: '01940f8a-0c00-7000-8000-000000000111',
  replay: false,
  received_at: AT,
}

const API_TOKEN = {
  id: '01940f8a-0c00-7000-8000-000000000121',
  kind: 'environment',
  environment_id: ENVIRONMENT_ID,
  name: 'backend',
  hint: 'x7Qz',
  expires_at: null,
}

const WEBHOOK_ID = '01940f8a-0c00-7000-8000-000000000003'

const FAILING_WEBHOOK = { id: WEBHOOK_ID, failing_since: AT, failed_attempts: 12 }

const EXAMPLES: Readonly<Record<EventType, JsonObject>> = {
  'integrated_account:created': { ...ACCOUNT, status: 'connecting' },
  'integrated_account:updated': ACCOUNT,
  'integrated_account:deleted': IDENTITY,
  'integrated_account:active': ACCOUNT,
  'integrated_account:post_connect_form_submitted': ACCOUNT,
  'integrated_account:post_install_error': {
    ...ACCOUNT,
    status: 'post_install_error',
    last_error: 'the step register answered with status 500',
  },
  'integrated_account:validation_error': {
    ...ACCOUNT,
    status: 'validation_error',
    last_error: 'the step whoami answered with status 404',
  },
  'integrated_account:authentication_error': {
    ...ACCOUNT,
    status: 'needs_reauth',
    last_error: 'the third party answered invalid_grant',
  },
  'integrated_account:forbidden_error': {
    ...ACCOUNT,
    last_forbidden_error: { resource: 'contacts', method: 'list', occurred_at: AT },
  },
  'integrated_account:reactivated': ACCOUNT,
  'integrated_account:reauthorization_due': { ...ACCOUNT, reauthorization_due_at: '2025-01-22T09:30:00.000Z' },
  'integrated_account:webhook_error': {
    ...ACCOUNT,
    webhook_subscription: { event: '', last_error: 'create failed at request_1: the upstream answered 403' },
  },
  'integrated_account:webhook_silent': ACCOUNT,
  'integrated_account:token_issued': ACCOUNT,
  'link_token:completed': LINK_TOKEN,
  'link_token:connection_error': {
    ...LINK_TOKEN,
    status: 'failed',
    step: 'failed',
    integrated_account_id: null,
    error_code: 'access_denied',
    error_message: 'the customer did not permit the access',
  },
  'environment_integration:created': INSTALLATION,
  'environment_integration:updated': INSTALLATION,
  'environment_integration:deleted': INSTALLATION,
  'environment_integration:client_secret_expiring': {
    ...INSTALLATION,
    client_secret_expires_at: '2025-02-14T09:30:00.000Z',
  },
  'sync_job_run:created': { ...RUN, status: 'created', attempt: 0 },
  'sync_job_run:updated': { ...RUN, status: 'created', error: RUN_ERROR },
  'sync_job_run:started': RUN,
  'sync_job_run:record': { ...RUN_PAGE, has_more: true, records: [RECORD.data] },
  'sync_job_run:record_error': { ...RUN_PAGE, error: RUN_ERROR },
  'sync_job_run:rate_limited': { ...RUN, status: 'rate_limited' },
  'sync_job_run:completed': { ...RUN, status: 'completed', resource_stats: [RUN_STATS], complete: true },
  'sync_job_run:failed': { ...RUN, status: 'failed', error: RUN_ERROR },
  'sync_job_run:deleted': { ...RUN, status: 'completed' },
  'sync_job_cron_trigger:failed': {
    id: TRIGGER_ID,
    sync_job_id: JOB_ID,
    integrated_account_id: ACCOUNT_ID,
    reason: 'account_needs_reauth',
    message: 'the account has to be connected again',
    scheduled_for: AT,
    sync_job_run_id: RUN_ID,
  },
  'record:created': RECORD,
  'record:updated': RECORD,
  'record:deleted': { ...RECORD, data: null },
  'record:unmapped': { ...RECORD, resource: null, record_id: null, data: { type: 'reaction_added', user: 'U2' } },
  'record:meta': { ...RECORD, resource: 'webhooks', record_id: null, data: { type: 'ping' } },
  'api_token:created': API_TOKEN,
  'api_token:deleted': API_TOKEN,
  'webhook:failing': FAILING_WEBHOOK,
  'webhook:disabled': { ...FAILING_WEBHOOK, reason: 'failing' },
  'webhook:recovered': { id: WEBHOOK_ID },
}

/** A payload as events of the type have it, for tests of a receiver; valid under the schema of the type. */
export function examplePayload(type: EventType): JsonObject {
  return EXAMPLES[type]
}
