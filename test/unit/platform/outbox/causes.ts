import type { EventType } from '../../../../src/platform/outbox/index.ts'

/** Something that records an event, in the transaction of the change. */
export interface EventCause {
  /** What happens, as a clause: `a caller changes it`. */
  readonly cause: string
  /** The file, relative to `src/`, and the function in it that records the event. */
  readonly file: string
  readonly function: string
}

function cause(text: string, file: string, name: string): EventCause {
  return { cause: text, file, function: name }
}

const PROCESSED = ['webhooks/inbound/store-effects.ts', 'storeEffects'] as const
const RUN_SETTLED = ['sync/runs/run-queue.ts', 'recordSettled'] as const

/** Every cause of every event. A type without one is not recorded yet: its payload is described for receivers nevertheless. */
export const EVENT_CAUSES: Readonly<Record<EventType, readonly EventCause[]>> = {
  'integrated_account:created': [
    cause('a caller or a link session connects an account', 'platform/accounts/create-account.ts', 'storeNewAccount'),
  ],
  'integrated_account:updated': [
    cause('a caller changes tenant or context', 'platform/accounts/account.ts', 'updateIntegratedAccount'),
    cause(
      'a caller or a customer replaces the credentials',
      'platform/accounts/replace-credentials.ts',
      'changeAccountStatus',
    ),
    cause('a caller has the steps run again', 'platform/accounts/account-activator.ts', 'changeAccountStatus'),
    cause('a call or step changes the context', 'platform/accounts/credential-refresher.ts', 'storeContext'),
    cause('a token response changes the context', 'platform/accounts/refresh-token.ts', 'storeToken'),
    cause('an inbound webhook changes the context', 'platform/accounts/webhook-context.ts', 'storeContext'),
  ],
  'integrated_account:deleted': [
    cause(
      'it is deleted, by itself, with its installation or with its integration',
      'platform/accounts/account.ts',
      'deleteIntegratedAccount',
    ),
  ],
  'integrated_account:active': [
    cause('it is created without steps that verify it', 'platform/accounts/create-account.ts', 'storeNewAccount'),
    cause('its steps have passed', 'platform/accounts/account-activator.ts', 'changeAccountStatus'),
  ],
  'integrated_account:post_connect_form_submitted': [
    cause('the customer or a caller submits the form', 'platform/links/post-connect-form.ts', 'storePostConnectForm'),
  ],
  'integrated_account:post_install_error': [
    cause('a post-install step fails', 'platform/accounts/account-activator.ts', 'changeAccountStatus'),
  ],
  'integrated_account:validation_error': [
    cause('a validation step fails', 'platform/accounts/account-activator.ts', 'changeAccountStatus'),
  ],
  'integrated_account:authentication_error': [
    cause('the third party declines to refresh its token', 'platform/accounts/refresh-token.ts', 'changeAccountStatus'),
    cause('a call is answered with 401', 'platform/accounts/credential-refresher.ts', 'storeSignal'),
  ],
  'integrated_account:forbidden_error': [
    cause('a call is answered with 403', 'platform/accounts/credential-refresher.ts', 'storeSignal'),
  ],
  'integrated_account:reactivated': [
    cause('a call succeeds again', 'platform/accounts/credential-refresher.ts', 'storeSignal'),
    cause('a token is granted after the grant was refused', 'platform/accounts/refresh-token.ts', 'storeToken'),
  ],
  'integrated_account:token_issued': [
    cause('a client asks for its token or key', 'platform/accounts/issue-access-token.ts', 'issueAccessToken'),
  ],
  'integrated_account:reauthorization_due': [
    cause(
      'the time before the end of the grant begins',
      'platform/accounts/reauthorization-warner.ts',
      'warnOfReauthorization',
    ),
  ],
  'integrated_account:webhook_error': [
    cause('a request for its subscription has failed for good', 'platform/subscriptions/subscriber.ts', 'appendError'),
  ],
  'integrated_account:webhook_silent': [
    cause('the usual time between its webhooks has passed', 'platform/subscriptions/activity.ts', 'silenceMonitor'),
  ],
  'link_token:completed': [
    cause('the last step of a session is done', 'platform/links/change-status.ts', 'changeLinkStatus'),
  ],
  'link_token:connection_error': [
    cause('an attempt or the session fails', 'platform/links/change-status.ts', 'changeLinkStatus'),
  ],
  'environment_integration:created': [
    cause('an integration is installed', 'platform/integrations/installation.ts', 'createEnvironmentIntegration'),
  ],
  'environment_integration:updated': [
    cause('a caller changes it', 'platform/integrations/installation.ts', 'updateEnvironmentIntegration'),
  ],
  'environment_integration:deleted': [
    cause(
      'it is deleted, by itself or with its integration',
      'platform/integrations/delete-installation.ts',
      'deleteEnvironmentIntegration',
    ),
  ],
  'environment_integration:client_secret_expiring': [
    cause(
      'the time before the end of the secret begins',
      'platform/integrations/client-secret-expiry.ts',
      'checkInstallation',
    ),
  ],
  'sync_job_run:created': [
    cause('a tick fires or is skipped', 'sync/runs/run-queue.ts', 'enqueueTicks'),
    cause('a caller or a hint of the third party starts a run', 'sync/runs/run-actions.ts', 'enqueueNewRun'),
  ],
  'sync_job_run:updated': [
    cause('a worker or daemon claims it again', 'sync/runs/run-queue.ts', 'claimEvent'),
    cause('an attempt fails, is released or loses its lease, or it stops', ...RUN_SETTLED),
    cause('a caller stops it while it waits', 'sync/runs/run-actions.ts', 'stopRun'),
    cause('a caller retries it', 'sync/runs/run-actions.ts', 'retryRun'),
  ],
  'sync_job_run:started': [
    cause('a worker or daemon claims it for the first time', 'sync/runs/run-queue.ts', 'claimEvent'),
    cause('it begins; to its destination', 'sync/jobs/webhook-sink.ts', 'createWebhookSink'),
  ],
  'sync_job_run:record': [
    cause('a page is read; to its destination', 'sync/jobs/webhook-sink.ts', 'createWebhookSink'),
  ],
  'sync_job_run:record_error': [
    cause('something cannot be read; to its destination', 'sync/jobs/webhook-sink.ts', 'createWebhookSink'),
  ],
  'sync_job_run:rate_limited': [cause('a worker or daemon reports that it waits', ...RUN_SETTLED)],
  'sync_job_run:completed': [
    cause('a worker or daemon reports its end', ...RUN_SETTLED),
    cause('it ends; to its destination', 'sync/jobs/webhook-sink.ts', 'createWebhookSink'),
  ],
  'sync_job_run:failed': [
    cause('a worker or daemon reports its end, or its last lease expires', ...RUN_SETTLED),
    cause('it ends; to its destination', 'sync/jobs/webhook-sink.ts', 'createWebhookSink'),
  ],
  'sync_job_run:deleted': [],
  'sync_job_cron_trigger:failed': [
    cause('a tick is skipped for another reason than an overlap', 'sync/runs/run-queue.ts', 'enqueueTicks'),
    cause('an error suspends the schedule', 'sync/schedules/fire-ticks.ts', 'suspendTrigger'),
  ],
  'record:created': [cause('an inbound webhook is mapped to it, or processed again', ...PROCESSED)],
  'record:updated': [cause('an inbound webhook is mapped to it, or processed again', ...PROCESSED)],
  'record:deleted': [cause('an inbound webhook is mapped to it, or processed again', ...PROCESSED)],
  'record:unmapped': [cause('an inbound webhook has no mapping, is mapped to it, or is processed again', ...PROCESSED)],
  'record:meta': [cause('an inbound webhook is mapped to it, or processed again', ...PROCESSED)],
  'api_token:created': [
    cause('a caller creates a token of the environment', 'platform/tenancy/api-tokens.ts', 'createApiToken'),
    cause('the first start creates one', 'platform/tenancy/bootstrap.ts', 'insertBootstrapToken'),
  ],
  'api_token:deleted': [
    cause('a caller deletes a token of the environment', 'platform/tenancy/api-tokens.ts', 'deleteApiToken'),
  ],
  'webhook:failing': [cause('attempts fail for half of the time', 'webhooks/outbound/health.ts', 'announceFailing')],
  'webhook:disabled': [
    cause('the receiver answers 410, or attempts fail for the whole time', 'webhooks/outbound/health.ts', 'disable'),
  ],
  'webhook:recovered': [cause('an attempt is accepted again', 'webhooks/outbound/health.ts', 'recordSuccesses')],
}
