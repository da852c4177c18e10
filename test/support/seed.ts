import { expectJson } from './rest.ts'

/** Ids of a complete chain: definition → installation → account → job → webhook → trigger. */
export interface Seed {
  readonly integrationId: string
  readonly environmentIntegrationId: string
  readonly integratedAccountId: string
  readonly syncJobId: string
  readonly webhookId: string
  readonly webhookSecret: string
  readonly triggerId: string
}

/** What the chain is made for. */
export interface SeedOptions {
  readonly url: string
  readonly teamToken: string
  readonly environmentToken: string
  readonly environmentId: string
  /** Base address of the third-party API. */
  readonly upstreamUrl?: string
  readonly webhookUrl?: string
  readonly cronExpression?: string
  readonly name?: string
}

/** A definition with one flat list, paged by number, and one child list per parent. */
function exampleDefinition(baseUrl: string): object {
  return {
    label: 'Example CRM',
    base_url: baseUrl,
    headers: { accept: 'application/json' },
    credentials: {
      format: 'api_key',
      config: { fields: [{ name: 'api_key', label: 'API key', type: 'password', required: true }] },
    },
    authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
    pagination: { format: 'page', config: { page_key: 'page', limit_key: 'limit', limit: 100 } },
    resources: {
      contacts: { list: { method: 'get', path: '/contacts', response_path: 'data' } },
      notes: { list: { method: 'get', path: '/contacts/{{resources.contacts.id}}/notes', response_path: 'data' } },
    },
  }
}

/** Makes the chain over REST, the way a user would. */
export async function seedChain(options: SeedOptions): Promise<Seed> {
  const { url, teamToken, environmentToken } = options
  const team = (path: string, body: object) => expectJson('POST', `${url}${path}`, teamToken, body)
  const environment = (path: string, body: object) => expectJson('POST', `${url}${path}`, environmentToken, body)
  const name = options.name ?? 'example-crm'
  const integration = await team('/integration', {
    name,
    config: exampleDefinition(options.upstreamUrl ?? 'http://127.0.0.1:9'),
  })
  const installation = await environment('/environment-integration', { integration_id: integration.id })
  const account = await environment('/integrated-account', {
    environment_integration_id: installation.id,
    tenant_id: 'acme',
    credentials: { api_key: 'secret-key' },
    context: { plan: 'gold', seats: 12 },
  })
  const job = await environment('/sync-job', {
    label: 'Contacts',
    integration_name: name,
    resources: [{ resource: 'contacts', method: 'list', persist: true }],
  })
  // It gets what the run sends it, and nothing else.
  const target_url = options.webhookUrl ?? 'http://127.0.0.1:9/hook'
  const webhook = await environment('/webhook', { target_url, event_types: ['record:*'] })
  const trigger = await environment('/sync-job-cron-trigger', {
    sync_job_id: job.id,
    integrated_account_id: account.id,
    cron_expression: options.cronExpression ?? '0 3 * * *',
    webhook_id: webhook.id,
  })
  return {
    integrationId: integration.id,
    environmentIntegrationId: installation.id,
    integratedAccountId: account.id,
    syncJobId: job.id,
    webhookId: webhook.id,
    webhookSecret: webhook.secret,
    triggerId: trigger.id,
  }
}
