import { type Database, query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import type { RunningProduct } from '../../../support/product.ts'
import type { JsonAnswer } from '../../../support/rest.ts'
import { startReceiver } from '../../../support/webhook-receiver.ts'
import { DaemonProcess } from '../../../unit/cli/daemon/support/daemon-process.ts'
import { Canaries, columnsOf, filesOf, findCanaries, type Haystack } from './canaries.ts'
import { authorised, type PlantedIntegration, rejectedIntegrations, tokenIntegration } from './canary-definitions.ts'
import { type EchoMode, startEchoUpstream } from './echo-upstream.ts'

/** What is exercised. */
export interface CanaryPlan {
  readonly modes: readonly EchoMode[]
  readonly authorizations: readonly string[]
}

/** What came of it. */
export interface CanaryReport {
  readonly planted: number
  /** Requests that the third party repeated or answered. */
  readonly echoed: number
  /** Texts looked at: answers, events, tables, files, log. */
  readonly haystacks: number
  readonly answers: number
  readonly hits: readonly string[]
}

/** Every scenario ends within this time, or is checked as it is then. */
const SETTLE_MS = 60_000
const POLL_MS = 100
/** Answers without the secrets that are shown once on purpose: of a webhook and a token that were just made. */
const SHOWN_ONCE: ReadonlySet<string> = new Set(['/webhook', '/api-token'])

/**
 * Plants a secret in every slot of a running product, lets third parties, receivers and token endpoints repeat all they are
 * sent, and looks for every encoding of every secret in every column, answer, event, line of the log and file.
 *
 * @param storeDir where a daemon keeps records
 */
export async function runCanaries(
  {
    product,
    database,
    dataDirs,
    storeDir,
  }: {
    readonly product: RunningProduct
    readonly database: Database
    readonly dataDirs: readonly string[]
    readonly storeDir: string
  },
  plan: CanaryPlan,
): Promise<CanaryReport> {
  const canaries = new Canaries()
  const tokens = {
    access_token: canaries.of('token.access'),
    refresh_token: canaries.of('token.refresh'),
    id_token: canaries.of('token.id'),
    session: canaries.of('token.other'),
    expires_in: 3_600,
  }
  await using party = await startEchoUpstream(tokens)
  const scenario = await startScenario(product, canaries, party.url)
  await using receiver = await startReceiver(({ body, headers }, index) => ({
    status: [200, 200, 400, 500, 302, 200][index % 6] ?? 200,
    headers: { location: `http://x.invalid/?${encodeURIComponent(String(headers['webhook-signature']))}` },
    body: `${body} ${JSON.stringify(headers)}`,
  }))
  await using daemon = new DaemonProcess(
    ['--url', product.url, '--group', 'canaries', '--store', `ndjson:${storeDir}`],
    { PATCHBAY_TOKEN: scenario.token, PATCHBAY_LOG_LEVEL: 'debug' },
  )
  const webhookId = await scenario.webhook(receiver.url)

  const working = [...plan.authorizations.map((format) => authorised(canaries, format, party.url))]
  for (const integration of [...working, tokenIntegration(canaries, party.url)]) {
    const accountId = await scenario.connect(integration)
    await scenario.untilConnected(accountId)
    for (const mode of plan.modes) await callEverything(scenario, accountId, mode)
    for (const mode of plan.modes) await syncEverything(scenario, integration.name, accountId, mode, webhookId)
  }
  const rejected: string[] = []
  for (const mode of plan.modes)
    for (const integration of rejectedIntegrations(canaries, party.url, mode))
      rejected.push(await scenario.connect(integration))
  for (const id of rejected) {
    await scenario.ask('POST', `/integrated-account/${id}/refresh-credentials`, {})
    await scenario.ask('GET', `/proxy/echo/ok?integrated_account_id=${id}`)
  }
  await scenario.settle(rejected)
  await scenario.readEverything()
  daemon.child.kill('SIGTERM')
  await daemon.ended
  await product.stop()

  const haystacks: Haystack[] = [
    ...scenario.answers,
    ...receiver.received.map(({ body, path }, index) => ({ place: `event ${index} ${path}`, text: body })),
    { place: 'log of the product', text: product.output() },
    { place: 'log of the daemon', text: daemon.output },
    ...(await columnsOf(database, query)),
    ...dataDirs.flatMap((directory) => filesOf(directory, ['bootstrap.json'])),
    ...filesOf(storeDir),
  ]
  return {
    planted: canaries.count,
    echoed: party.requests,
    haystacks: haystacks.length,
    answers: scenario.answers.length,
    hits: findCanaries(canaries, haystacks),
  }
}

/** A product as its users see it: everything it answers is kept. */
async function startScenario(product: RunningProduct, canaries: Canaries, partyUrl: string) {
  const { bootstrap, url } = product
  const answers: Haystack[] = []
  let token = bootstrap.environment_token

  async function ask(method: string, path: string, body?: object, asking = token): Promise<JsonAnswer> {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${asking}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const isShownOnce = method === 'POST' && SHOWN_ONCE.has(path)
    const headers = JSON.stringify([...response.headers])
    if (!isShownOnce)
      answers.push({ place: `answer to ${method} ${path.replace(/[0-9a-f-]{36}/g, '…')}`, text: headers + text })
    try {
      return { status_code: response.status, ...JSON.parse(text) }
    } catch {
      return { id: '', secret: '', status_code: response.status }
    }
  }

  async function made(path: string, body: object, asking?: string): Promise<JsonAnswer> {
    const answer = await ask('POST', path, body, asking)
    if (answer.status_code !== 200) throw new Error(`POST ${path}: ${JSON.stringify(answer)}`)
    return answer
  }

  const own = { kind: 'environment', name: 'canaries', environment_id: bootstrap.environment_id, preset: 'full' }
  token = String((await made('/api-token', own, bootstrap.team_token)).token)
  canaries.add('api-token', token)

  async function until(isDone: () => Promise<boolean>): Promise<void> {
    for (const endMs = Date.now() + SETTLE_MS; Date.now() < endMs && !(await isDone()); )
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }

  const statusOf = async (id: string) => String((await ask('GET', `/integrated-account/${id}`)).status)
  return {
    ask,
    made,
    answers,
    token,
    until,
    partyUrl,
    async webhook(target_url: string): Promise<string> {
      const webhook = await made('/webhook', { target_url })
      canaries.add('webhook-secret', webhook.secret.replace(/^whsec_/, ''))
      return webhook.id
    },
    async connect({ name, config, override, account }: PlantedIntegration): Promise<string> {
      const integration = await made('/integration', { name, config }, bootstrap.team_token)
      const installation = await made('/environment-integration', { integration_id: integration.id, override })
      const request = { environment_integration_id: installation.id, tenant_id: 'acme', ...account }
      return (await made('/integrated-account', { ...request, request_id: crypto.randomUUID() })).id
    },
    untilConnected: (id: string) => until(async () => (await statusOf(id)) === 'active'),
    /** Until every account has been tried and every run has come to something. */
    async settle(accountIds: readonly string[]): Promise<void> {
      for (const id of accountIds)
        await until(async () => {
          const { status, last_error } = await ask('GET', `/integrated-account/${id}`)
          return status !== 'connecting' || last_error !== ''
        })
      const isBusy = ({ status, error }: JsonAnswer) =>
        status === 'running' || (['created', 'rate_limited'].includes(String(status)) && (error ?? null) === null)
      await until(async () => {
        const { sync_job_runs = [] } = await ask('GET', '/sync-job-run?page_size=1000')
        return !sync_job_runs.some(isBusy)
      })
    },
    /** Everything that can be listed, and what hangs on it. */
    async readEverything(): Promise<void> {
      for (const path of [
        '/integration',
        '/environment-integration',
        '/webhook',
        '/event',
        '/audit-entry',
        '/sync-job',
        '/sync-job-run',
        '/api-token',
      ])
        await ask('GET', `${path}?page_size=1000`, undefined, path === '/api-token' ? bootstrap.team_token : token)
      // Headers and bodies of requests are encrypted in the table: only the answer shows what they hold.
      const { call_log_entries = [] } = await ask('GET', '/call-log?page_size=1000')
      for (const { id } of call_log_entries) await ask('GET', `/call-log/${id}`)
      const { integrated_accounts = [] } = await ask('GET', '/integrated-account?page_size=1000')
      for (const { id } of integrated_accounts) await ask('GET', `/integrated-account/${id}/history`)
      const { environment_integrations = [] } = await ask('GET', '/environment-integration?page_size=1000')
      for (const { id } of environment_integrations) await ask('POST', `/environment-integration/${id}:resolve`, {})
    },
  }
}

type Scenario = Awaited<ReturnType<typeof startScenario>>

/** Calls of every kind that the upstream rejects with an echo. */
async function callEverything({ ask }: Scenario, id: string, mode: string): Promise<void> {
  const at = `integrated_account_id=${id}`
  const rpc = { integrated_account_id: id, resource: 'echo', method: 'get', id: mode, include_raw: true }
  await ask('GET', `/proxy/echo/${mode}?${at}&include_raw=true`)
  await ask('GET', `/proxy/echo?mode=${mode}&${at}&include_raw=true`)
  await ask('POST', `/proxy/echo?${at}`, { mode })
  await ask('GET', `/proxy/echo/${mode}?${at}&dry_run=true`)
  await ask('POST', `/proxy/echo?${at}&dry_run=true`, { mode })
  // Of a success the body is the customer's, also where it is one by its status alone.
  if (!['broken', 'found-in-200', 'redirect'].includes(mode)) await ask('GET', `/custom/${mode}/x?${at}`)
  await ask('POST', `/proxy/_/probe?mode=${mode}&${at}`, {})
  await ask('POST', '/patchbay.v1.ProxyService/Call', rpc)
  await ask('POST', '/patchbay.v1.ProxyService/Call', { ...rpc, dry_run: true, sample: { status: 400, body: {} } })
}

/** A sync to a webhook and one to a daemon, with every treatment of errors. */
async function syncEverything(
  { made, ask }: Scenario,
  integration: string,
  accountId: string,
  mode: string,
  webhookId: string,
): Promise<void> {
  const query: JsonObject = { mode }
  const resources = [{ resource: 'echo', method: 'list', query, persist: true }]
  const job = await made('/sync-job', { label: mode, integration_name: integration, resources })
  const run = { sync_job_id: job.id, integrated_account_id: accountId }
  for (const error_handling of ['fail_fast', 'batch']) {
    await ask('POST', '/sync-job-run', { ...run, webhook_id: webhookId, error_handling })
    await ask('POST', '/sync-job-run', { ...run, daemon_group_key: 'canaries', error_handling })
  }
}
