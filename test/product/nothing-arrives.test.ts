import { afterAll, describe, expect, it } from 'vitest'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobService } from '../../gen/patchbay/v1/sync_job_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import { runCommand } from '../../src/cli/commands/run-command.ts'
import type { Json, JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { keepPrinted } from '../support/printed-output.ts'
import { firstTenant, freshName, idOf } from '../support/seeded-tenant.ts'
import { type ReceiverResponse, startReceiver } from '../support/webhook-receiver.ts'
import { connectAccount, LOCAL_UPSTREAM } from './calls.ts'

const CONTACTS: ReceiverResponse = { status: 200, headers: { 'content-type': 'application/json' }, body: '[{"id":1}]' }
const TOKEN = { access_token: 'fresh-access-token', token_type: 'bearer', expires_in: 3600, refresh_token: 'refresh-1' }

/** What the third party answers, by the first part of the path: each customer has a part of its own. */
const answers = new Map<string, (path: string, body: string) => ReceiverResponse>()
const thirdParty = await startReceiver(({ path, body }) => {
  const [, customer = '', ...rest] = path.split('/')
  return answers.get(customer)?.(`/${rest.join('/')}`, body) ?? CONTACTS
})
const receiver = await startReceiver(({ path }) => ({ status: path === '/broken' ? 500 : 204 }))
const app = await startTestApp({ ...LOCAL_UPSTREAM, PATCHBAY_CALL_LOG_SAMPLE: '1' })
app.startWorker()
const tenant = firstTenant(app)
const client = app.client('connect')
const team = app.client('connect', { token: tenant.teamToken })
const printed = keepPrinted()

afterAll(async () => {
  await thirdParty[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

/** What a person sends to find the cause: a GET of the API, or a command. */
type Step = `GET ${string}` | `patchbay ${string}`

/** One step, as a terminal shows it. */
async function take(step: Step): Promise<Json> {
  const [verb = '', ...words] = step.split(' ')
  if (verb === 'GET') {
    const headers = { authorization: `Bearer ${tenant.environmentToken}` }
    return (await (await fetch(`${app.url}${words.join(' ')}`, { headers })).json()) as Json
  }
  printed.text = ''
  await runCommand(words, { PATCHBAY_TOKEN: tenant.environmentToken, PATCHBAY_PUBLIC_URL: app.url })
  return printed.text
}

/** A customer whose contacts are read and sent to a receiver, until something is in the way. */
interface Customer {
  readonly accountId: string
  readonly environmentIntegrationId: string
  readonly triggerId: string
  readonly webhookId: string
  /** Lets the trigger run once. */
  sync(): Promise<void>
}

async function customer(
  name: string,
  options: {
    readonly receiverPath?: string
    readonly filter?: JsonObject
    readonly definition?: JsonObject
    readonly unified?: boolean
  } = {},
): Promise<Customer> {
  const { receiverPath = '/hook', filter, definition = {} } = options
  const base = `${new URL(thirdParty.url).origin}/${name}`
  const config = {
    base_url: base,
    authorization: { format: 'bearer' },
    credentials: {
      format: 'oauth2_client_credentials',
      config: { auth: { tokenHost: base, tokenPath: '/token' } },
    },
    resources: { contacts: { list: { path: '/contacts', retry: { max_attempts: 1 } } } },
    ...definition,
  }
  answers.set(name, answers.get(name) ?? ((path) => (path === '/token' ? tokenAnswer() : CONTACTS)))
  const made = await connectAccount(app, tenant, config, {
    credentials: { client_id: 'app', client_secret: 'secret-1' },
  })
  await expect
    .poll(() => client.ok(IntegratedAccountService.method.getIntegratedAccount, { id: made.accountId }))
    .toMatchObject({ status: 'active' })
  const { name: integrationName } = await team.ok(IntegrationService.method.getIntegration, { id: made.integrationId })
  const jobId = await idOf(client, SyncJobService.method.createSyncJob, {
    label: freshName('job'),
    integration_name: String(integrationName),
    resources: [{ resource: 'contacts', method: 'list', persist: true }],
  })
  const webhookId = await idOf(client, WebhookService.method.createWebhook, {
    target_url: new URL(receiverPath, receiver.url).href,
    event_types: ['record:*', 'sync_job_run:*'],
    ...(filter === undefined ? {} : { filter }),
  })
  const triggerId = await idOf(client, SyncJobCronTriggerService.method.createSyncJobCronTrigger, {
    cron_expression: '0 0 1 1 *',
    sync_job_id: jobId,
    integrated_account_id: made.accountId,
    webhook_id: webhookId,
  })
  return {
    ...made,
    triggerId,
    webhookId,
    sync: async () => {
      await client.ok(SyncJobCronTriggerService.method.runSyncJobCronTrigger, { id: triggerId })
    },
  }
}

function tokenAnswer(): ReceiverResponse {
  return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(TOKEN) }
}

const json = (status: number, body: JsonObject, headers: Readonly<Record<string, string>> = {}): ReceiverResponse => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

interface Cause {
  /** Brings the customer into the state. */
  plant(): Promise<Customer>
  /** From the complaint to the reason; a step may read the answer to the one before. */
  readonly steps: readonly ((customer: Customer, before: Json) => Step)[]
  /** What the last answer says. */
  readonly reason: RegExp
}

const runsOf: Cause['steps'][number] = ({ accountId }) =>
  `GET /sync-job-run?integrated_account_id=${accountId}&page_size=1`
const accountOf: Cause['steps'][number] = ({ accountId }) => `GET /integrated-account/${accountId}`

/** The first value below that name in an answer. */
function findIn(answer: Json, name: string): string {
  const [, value = ''] = new RegExp(`"${name}":"([^"]+)"`).exec(JSON.stringify(answer)) ?? []
  return value
}

const CAUSES: Readonly<Record<string, Cause>> = {
  'the customer has revoked the grant': {
    async plant() {
      const made = await customer('revoked')
      answers.set('revoked', (path) =>
        path === '/token'
          ? json(400, { error: 'invalid_grant', error_description: 'consent withdrawn' })
          : json(401, {}),
      )
      await made.sync()
      await expect.poll(() => take(accountOf(made, null))).toMatchObject({ status: 'needs_reauth' })
      return made
    },
    steps: [accountOf],
    reason: /needs_reauth.*consent withdrawn|consent withdrawn.*needs_reauth/,
  },
  'the client secret is wrong': {
    async plant() {
      const made = await customer('secret')
      answers.set('secret', (path) => (path === '/token' ? json(401, { error: 'invalid_client' }) : json(401, {})))
      await made.sync()
      await expect.poll(() => take(runsOf(made, null)).then((runs) => findIn(runs, 'log_id'))).not.toBe('')
      return made
    },
    steps: [
      runsOf,
      ({ accountId }) => `patchbay calls --account ${accountId} --class error`,
      (_, before) => `patchbay calls ${/\/token .* token {2}(\S+)/.exec(String(before))?.[1]}`,
    ],
    reason: /POST \S*\/token {2}401 error[\s\S]*invalid_client/,
  },
  'the trigger is paused': {
    async plant() {
      const made = await customer('paused')
      await client.ok(SyncJobCronTriggerService.method.pauseSyncJobCronTrigger, { id: made.triggerId })
      return made
    },
    steps: [({ accountId }) => `GET /sync-job-cron-trigger?integrated_account_id=${accountId}`],
    reason: /"paused":true/,
  },
  'the installation is disabled': {
    async plant() {
      const made = await customer('disabled')
      const { updateEnvironmentIntegration } = EnvironmentIntegrationService.method
      await client.ok(updateEnvironmentIntegration, { id: made.environmentIntegrationId, is_enabled: false })
      return made
    },
    steps: [accountOf, (_, before) => `GET /environment-integration/${findIn(before, 'environment_integration_id')}`],
    reason: /"is_enabled":false/,
  },
  'the receiver answers 500': {
    async plant() {
      const made = await customer('receiver', { receiverPath: '/broken' })
      await made.sync()
      const newest = () => take(`GET /webhook-delivery?integrated_account_id=${made.accountId}&page_size=1`)
      await expect.poll(async () => JSON.stringify(await newest())).toMatch(/"attempt_count":[1-9]/)
      return made
    },
    steps: [
      ({ accountId }) => `GET /webhook-delivery?integrated_account_id=${accountId}&page_size=1`,
      (_, before) => `GET /webhook-delivery/${findIn(before, 'id')}`,
    ],
    reason: /"status":500|status 500/,
  },
  'the filter of the webhook is too narrow': {
    async plant() {
      const made = await customer('filter', { filter: { 'payload.resource': 'companies' } })
      await made.sync()
      await expect.poll(() => take(runsOf(made, null))).toMatchObject({ sync_job_runs: [{ status: 'completed' }] })
      return made
    },
    steps: [
      ({ accountId }) => `GET /webhook-delivery?integrated_account_id=${accountId}`,
      ({ webhookId }) => `GET /webhook/${webhookId}`,
    ],
    reason: /"filter":\{"payload.resource":"companies"\}/,
  },
  'an expression of the definition fails': {
    async plant() {
      const resources = {
        contacts: { list: { path: '/contacts', response_path: '$error("no list")' } },
      }
      const made = await customer('mapping', { definition: { resources } })
      await made.sync()
      await expect.poll(() => take(runsOf(made, null)).then((runs) => findIn(runs, 'log_id'))).not.toBe('')
      return made
    },
    steps: [runsOf],
    reason: /EXPRESSION_FAILED/,
  },
  'the third party limits': {
    async plant() {
      const made = await customer('limited')
      answers.set('limited', () => json(429, {}, { 'retry-after': '900' }))
      await made.sync()
      await expect.poll(() => take(runsOf(made, null))).toMatchObject({ sync_job_runs: [{ status: 'rate_limited' }] })
      return made
    },
    steps: [runsOf, ({ accountId }) => `patchbay calls --account ${accountId} --class rate_limited`],
    reason: /GET \S*\/contacts {2}429 rate_limited/,
  },
}

/** More steps than these no support case should take. */
const STEPS_MAX = 3

describe('"the customer says that nothing arrives"', () => {
  it.each(Object.entries(CAUSES))('is found: %s', async (_, { plant, steps, reason }) => {
    expect(steps.length).toBeLessThanOrEqual(STEPS_MAX)
    const made = await plant()
    let answer: Json = null
    for (const step of steps) answer = await take(step(made, answer))
    expect(typeof answer === 'string' ? answer : JSON.stringify(answer)).toMatch(reason)
  })
})
