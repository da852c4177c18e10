import { findShippedDefinition } from '../../../src/engine/catalog/definitions.ts'
import type { RunningProduct } from '../../support/product.ts'
import { expectJson, type JsonAnswer } from '../../support/rest.ts'
import { connectByLink, consentOverride, hasBrowser } from './connect-page.ts'
import type { GitHub } from './github.ts'
import type { Receiver } from './receiver.ts'
import { printFact, timeOf } from './report.ts'
import type { DemoSession } from './session.ts'

/** Records per page: few, so that there are several pages. */
export const PAGE_SIZE = 3
/** Paths of the first webhook, and of the one that a PATCH sets. */
export const PATHS = { inbox: '/hooks/inbox', archive: '/hooks/archive' } as const

const CRON_EXPRESSION = '*/10 * * * * *'

/** What the first steps create. */
export interface DemoSetup {
  readonly installationId: string
  readonly syncJobId: string
  readonly triggerId: string
  /** As returned on creation. */
  readonly trigger: JsonAnswer
  readonly webhookIds: Readonly<Record<keyof typeof PATHS, string>>
  /** A GET of the environment. */
  get(path: string): Promise<JsonAnswer>
  /** A POST to the environment. */
  post(path: string, body: object): Promise<JsonAnswer>
}

/** What the setup needs. */
export interface DemoSetupDeps {
  readonly session: DemoSession
  readonly product: RunningProduct
  readonly github: GitHub
  readonly receiver: Receiver
}

/** Creates everything from the shipped definition to a trigger over REST, and prints each step. */
export async function createSetup({ session, product, github, receiver }: DemoSetupDeps): Promise<DemoSetup> {
  const { url, bootstrap } = product
  const post = (path: string, body: object) => expectJson('POST', `${url}${path}`, bootstrap.environment_token, body)
  const get = (path: string) => expectJson('GET', `${url}${path}`, bootstrap.environment_token)

  const canConsent = hasBrowser()
  const integration = await expectJson('POST', `${url}/integration`, bootstrap.team_token, {
    name: 'github',
    config: findShippedDefinition('github')?.config,
  })
  printFact('integration', 'github, from src/engine/catalog/github.json')

  const installation = await post('/environment-integration', {
    integration_id: integration.id,
    override: { ...overrideFor(github.url), ...(canConsent ? consentOverride(github) : {}) },
  })
  const overridden = canConsent ? 'base_url, consent, webhook' : 'base_url, webhook'
  printFact('environment integration', `overridden: ${overridden}, ${PAGE_SIZE} records a page`)

  const connecting = { session, get, post, installationId: installation.id }
  if (!canConsent) printFact('connect page', 'no Chromium here: the account is connected with its key')
  const account = canConsent
    ? await connectByLink(connecting, 'acme')
    : await connectAccount(connecting, 'acme', github.token)

  const job = await post('/sync-job', { label: 'Issues', integration_name: 'github', resources: RESOURCES })
  printFact('sync job', 'repositories, then the issues of each through depends_on')

  const webhookIds = { inbox: '', archive: '' }
  for (const name of ['inbox', 'archive'] as const) {
    // Beside the records of inbound webhooks: a run sends its events whatever the webhook asks for.
    const webhook = await post('/webhook', { target_url: receiver.urlOf(PATHS[name]), event_types: ['record:*'] })
    receiver.trust(PATHS[name], webhook.secret)
    webhookIds[name] = webhook.id
    printFact('webhook', receiver.urlOf(PATHS[name]))
  }

  const trigger = await post('/sync-job-cron-trigger', {
    sync_job_id: job.id,
    integrated_account_id: account.id,
    cron_expression: CRON_EXPRESSION,
    webhook_id: webhookIds.inbox,
  })
  printFact('cron trigger', `${trigger.cron_expression}   first at ${timeOf(trigger.next_run_at)}, to ${PATHS.inbox}`)
  const ids = { installationId: installation.id, syncJobId: job.id, triggerId: trigger.id }
  return { ...ids, trigger, webhookIds, get, post }
}

/** Connects an account of GitHub and waits until it is active. */
export async function connectAccount(
  {
    session,
    get,
    post,
    installationId,
  }: Pick<DemoSetup, 'get' | 'post' | 'installationId'> & { readonly session: DemoSession },
  tenantId: string,
  token: string,
  context: object = {},
): Promise<JsonAnswer> {
  const account = await post('/integrated-account', {
    environment_integration_id: installationId,
    tenant_id: tenantId,
    authentication_method: 'api_key',
    credentials: { api_key: token },
    context,
  })
  const status = await session.pollFor('the account to become active', async () => {
    const { status, last_error } = await get(`/integrated-account/${account.id}`)
    if (status === 'connecting') return undefined
    if (status !== 'active') throw new Error(`the account is ${status}: ${last_error}`)
    return status
  })
  const progress = account.status === status ? status : `${account.status}, then ${status}: GitHub accepts its api_key`
  printFact('integrated account', `tenant ${tenantId}, ${progress}`)
  return account
}

const NOTE_ISSUE = `headers."x-github-event" = "ping"
  ? {"type": "meta"}
  : {"type": "payload", "update_context": {"last_issue": body.issue.number}}`

/** The address of the API, short pages so that there are several, and what webhooks change in the context of their account. */
function overrideFor(baseUrl: string): object {
  return {
    base_url: baseUrl,
    pagination: { config: { limit: PAGE_SIZE } },
    webhook: { handle_verification: NOTE_ISSUE },
  }
}

const RESOURCES = [
  { resource: 'repositories', method: 'list', persist: true },
  {
    resource: 'issues',
    method: 'list',
    depends_on: 'repositories',
    query: { owner: '{{resources.repositories.owner.login}}', repo: '{{resources.repositories.name}}' },
    persist: true,
  },
]
