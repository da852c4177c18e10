import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { ConnectError, createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { afterAll, afterEach, expect, it } from 'vitest'
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts'
import { CallLogService } from '../../gen/patchbay/v1/call_log_service_pb.ts'
import { DaemonService } from '../../gen/patchbay/v1/daemon_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { ProxyService } from '../../gen/patchbay/v1/proxy_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { UnifiedMappingService } from '../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import { UnifiedService } from '../../gen/patchbay/v1/unified_service_pb.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { LOCAL_UPSTREAM } from '../product/calls.ts'
import { connectMapped } from '../product/unified.ts'
import { startTestApp } from '../support/app.ts'
import { someCases } from '../support/case-count.ts'
import { SERVICES } from '../support/operations.ts'
import { expectJson } from '../support/rest.ts'
import { createApiTenant, type Tenant } from '../support/seeded-tenant.ts'

/** A third party that begins to answer requests for files and never ends, and does not answer the others. */
const open = new Set<ServerResponse>()
const thirdParty = createServer(({ url = '' }, response) => {
  open.add(response)
  response.once('close', () => open.delete(response))
  if (url.startsWith('/files')) response.writeHead(200).write('begun')
}).listen(0, '127.0.0.1')
afterAll(() => thirdParty.close())
afterEach(() => {
  for (const response of open) response.destroy()
})
await once(thirdParty, 'listening')
const thirdPartyUrl = `http://127.0.0.1:${(thirdParty.address() as AddressInfo).port}`

// With slots for all requests of one environment at once.
const app = await startTestApp({ ...LOCAL_UPSTREAM, PATCHBAY_DATABASE_POOL: '40' })
const transport = createConnectTransport({ baseUrl: app.url, httpVersion: '2' })

/** A tenant with an account, and a tool server and a run of it. */
interface World extends Tenant {
  readonly headers: Readonly<Record<string, string>>
  readonly accountId: string
  readonly installationId: string
  readonly runId: string
  readonly daemonId: string
  readonly server: { readonly id: string; readonly url: string; readonly token: string }
}

/** One field for each request, because requests for the same options share one to the third party. */
const FORM_FIELDS = ['contacts', 'counted'].map((resource) => ({
  name: resource,
  type: 'single_select',
  data_source: { resource },
  options: { value: 'id' },
}))

async function createWorld(): Promise<World> {
  const tenant = await createApiTenant(app)
  const { accountId, integrationName } = await connectMapped(app, tenant, thirdPartyUrl)
  const call = (verb: string, path: string, body?: JsonObject): Promise<JsonObject> =>
    expectJson(verb, app.url + path, tenant.environmentToken, body)
  const account = await call('GET', `/integrated-account/${accountId}`)
  const installationId = String(account.environment_integration_id)
  const form = { post_connect_user_form: { type: 'form', config: { fields: FORM_FIELDS } } }
  await call('PATCH', `/environment-integration/${installationId}`, { override: { actions: form } })
  const job = await call('POST', '/sync-job', {
    label: 'contacts',
    integration_name: integrationName,
    resources: [{ resource: 'contacts', method: 'list', persist: true }],
  })
  const run = await call('POST', '/sync-job-run', {
    sync_job_id: String(job.id),
    integrated_account_id: accountId,
    daemon_group_key: 'unserved',
  })
  const daemon = await call('POST', '/daemon', { label: 'host-1', group_key: 'idle' })
  const server = await call('POST', '/tool-server', { name: 'tools', integrated_account_id: accountId })
  return {
    ...tenant,
    headers: { authorization: `Bearer ${tenant.environmentToken}` },
    accountId,
    installationId,
    runId: String(run.id),
    daemonId: String(daemon.daemon_id),
    server: { id: String(server.id), url: String(server.url), token: String(server.token) },
  }
}

const BROKEN_OFF = 'broken off'
/** Of a long poll alone: its daemon is gone. The third party answers nothing. */
const ANSWERED = 'it was answered'

/** The error with which an RPC ends. */
async function reasonOf(call: () => Promise<unknown>): Promise<string> {
  const error = await call().then(
    () => new Error(ANSWERED),
    (thrown: unknown) => thrown,
  )
  return ConnectError.from(error).findDetails(ErrorInfoSchema)[0]?.reason ?? String((error as Error).message)
}

async function drain(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of messages);
}

/** How an answer over HTTP ends: with a reason, or without its end when it had begun. */
async function endOf(url: string, init: RequestInit): Promise<string> {
  const text = await fetch(url, init).then(
    (answer) => answer.text().catch(() => BROKEN_OFF),
    () => BROKEN_OFF,
  )
  return /"reason":"([A-Z_]+)"/.exec(text)?.[1] ?? text
}

/** How a call of a tool over MCP ends. */
function endOfTool(url: string, token: string, name: string, args: JsonObject): Promise<string> {
  return endOf(url, {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
    },
  })
}

const CONTACTS = { resource: 'contacts', method: 'list' }
const UNIFIED_CONTACTS = { model: 'crm', ...CONTACTS }

/** By what a request lasts: its API token, its account, its tool server. */
type Hold = 'token' | 'account' | 'server'

interface Way {
  readonly holds: readonly Hold[]
  /** The third party holds a request of it. */
  readonly reachesThirdParty: boolean
  end(world: World): Promise<string>
}

const throughAccount = (end: Way['end']): Way => ({ holds: ['token', 'account'], reachesThirdParty: true, end })
const waiting = (end: Way['end']): Way => ({ holds: ['token'], reachesThirdParty: false, end })
const overHttp = (path: string): Way =>
  throughAccount(({ headers, accountId }) => endOf(`${app.url}${path}?integrated_account_id=${accountId}`, { headers }))

/**
 * Every request that may last, by its RPC or the path of its route. Those that wait are sent first: whatever the third party holds came
 * after them.
 */
const WAYS: Readonly<Record<string, Way>> = {
  'DaemonService.ClaimRuns': waiting(({ headers, daemonId }) =>
    reasonOf(() => createClient(DaemonService, transport).claimRuns({ daemonId, waitSeconds: 25 }, { headers })),
  ),
  'CallLogService.WatchCallLogEntries': waiting(({ headers }) =>
    reasonOf(() => drain(createClient(CallLogService, transport).watchCallLogEntries({}, { headers }))),
  ),
  'SyncJobRunService.WatchSyncJobRun': waiting(({ headers, runId: id }) =>
    reasonOf(() => drain(createClient(SyncJobRunService, transport).watchSyncJobRun({ id }, { headers }))),
  ),
  '/custom/': overHttp('/custom/files/1'),
  '/proxy/': overHttp('/proxy/files/1'),
  '/proxy/ without a stream': overHttp('/proxy/contacts'),
  '/unified/': overHttp('/unified/crm/contacts'),
  'ProxyService.Call': throughAccount(({ headers, accountId: integratedAccountId }) =>
    reasonOf(() => createClient(ProxyService, transport).call({ integratedAccountId, ...CONTACTS }, { headers })),
  ),
  'ProxyService.ListPages': throughAccount(({ headers, accountId: integratedAccountId }) =>
    reasonOf(() =>
      drain(createClient(ProxyService, transport).listPages({ integratedAccountId, ...CONTACTS }, { headers })),
    ),
  ),
  'UnifiedService.Call': throughAccount(({ headers, accountId: integratedAccountId }) =>
    reasonOf(() =>
      createClient(UnifiedService, transport).call({ integratedAccountId, ...UNIFIED_CONTACTS }, { headers }),
    ),
  ),
  'UnifiedService.ListPages': throughAccount(({ headers, accountId: integratedAccountId }) =>
    reasonOf(() =>
      drain(
        createClient(UnifiedService, transport).listPages({ integratedAccountId, ...UNIFIED_CONTACTS }, { headers }),
      ),
    ),
  ),
  'UnifiedMappingService.TryUnifiedMapping': throughAccount(({ headers, accountId: integratedAccountId }) =>
    reasonOf(() =>
      createClient(UnifiedMappingService, transport).tryUnifiedMapping(
        { integratedAccountId, ...UNIFIED_CONTACTS },
        { headers },
      ),
    ),
  ),
  'IntegratedAccountService.ListFormOptions': throughAccount(({ headers, accountId: id }) =>
    reasonOf(() =>
      createClient(IntegratedAccountService, transport).listFormOptions({ id, field: 'contacts' }, { headers }),
    ),
  ),
  '/mcp/management': throughAccount(({ environmentToken, accountId: id }) =>
    endOfTool(`${app.url}/mcp/management?mode=direct&read_only=false`, environmentToken, 'list_form_options', {
      id,
      field: 'counted',
    }),
  ),
  '/mcp/': {
    holds: ['server', 'account'],
    reachesThirdParty: true,
    end: ({ server }) => endOfTool(server.url, server.token, 'get_contact', { id: '7' }),
  },
}

interface Cause {
  /** What it takes away. */
  readonly of: readonly Hold[]
  /** Reasons of the requests that end. */
  readonly reasons: readonly string[]
  end(world: World): Promise<unknown>
}

const as = (token: string, verb: string, path: string, body?: JsonObject) =>
  expectJson(verb, app.url + path, token, body)
const asEnvironment = ({ environmentToken }: World, verb: string, path: string, body?: JsonObject) =>
  as(environmentToken, verb, path, body)

const CAUSES: Readonly<Record<string, Cause>> = {
  'the revocation of its token': {
    of: ['token'],
    reasons: ['TOKEN_INVALID'],
    async end({ teamToken, environmentId }) {
      const { api_tokens: tokens } = await as(teamToken, 'GET', '/api-token')
      const own = (tokens as readonly JsonObject[]).filter((token) => token.environment_id === environmentId)
      for (const { id } of own) await as(teamToken, 'DELETE', `/api-token/${id}`)
    },
  },
  'the deletion of its environment': {
    of: ['token', 'account', 'server'],
    reasons: ['TOKEN_INVALID', 'RESOURCE_NOT_FOUND', ANSWERED],
    end: ({ teamToken, environmentId }) => as(teamToken, 'DELETE', `/environment/${environmentId}?force=true`),
  },
  'the deletion of its team': {
    of: ['token', 'account', 'server'],
    reasons: ['TOKEN_INVALID', 'RESOURCE_NOT_FOUND', ANSWERED],
    end: ({ teamId }) => as(app.first.teamToken, 'DELETE', `/team/${teamId}?force=true`),
  },
  'the deletion of its account': {
    of: ['account'],
    reasons: ['RESOURCE_NOT_FOUND', 'TOKEN_INVALID'],
    end: (world) => asEnvironment(world, 'DELETE', `/integrated-account/${world.accountId}?force=true`),
  },
  'the disabling of its installation': {
    of: ['account'],
    reasons: ['INTEGRATION_DISABLED'],
    end: (world) =>
      asEnvironment(world, 'PATCH', `/environment-integration/${world.installationId}`, { is_enabled: false }),
  },
  'the deletion of its installation': {
    of: ['account'],
    reasons: ['RESOURCE_NOT_FOUND', 'TOKEN_INVALID'],
    end: (world) => asEnvironment(world, 'DELETE', `/environment-integration/${world.installationId}?force=true`),
  },
  'the rotation of the token of its tool server': {
    of: ['server'],
    reasons: ['TOKEN_INVALID'],
    end: (world) => asEnvironment(world, 'POST', `/tool-server/${world.server.id}/rotate-token`, {}),
  },
  'the disabling of its tool server': {
    of: ['server'],
    reasons: ['TOKEN_INVALID'],
    end: (world) => asEnvironment(world, 'PATCH', `/tool-server/${world.server.id}`, { is_enabled: false }),
  },
  'the deletion of its tool server': {
    of: ['server'],
    reasons: ['TOKEN_INVALID'],
    end: (world) => asEnvironment(world, 'DELETE', `/tool-server/${world.server.id}`),
  },
}

/** Reads of form options end by themselves after 15 seconds: they are sent apart from the others, which take time to begin. */
const FORM_WAYS = ['IntegratedAccountService.ListFormOptions', '/mcp/management']
const GROUPS = Object.entries(CAUSES).flatMap(([what, cause]) =>
  [true, false].flatMap((isForm) => {
    const ways = Object.entries(WAYS).filter(
      ([name, { holds }]) => FORM_WAYS.includes(name) === isForm && holds.some((hold) => cause.of.includes(hold)),
    )
    return ways.length === 0 ? [] : [{ what, cause, ways, of: isForm ? 'form options' : 'all else' }]
  }),
)

it.each(someCases(GROUPS, 4))(
  'every request that lasts ends with $what: $of',
  async ({ cause: { reasons, end }, ways }) => {
    const world = await createWorld()
    const requests = ways.map(async ([name, way]) => [name, await way.end(world)] as const)
    await expect.poll(() => open.size).toBe(ways.filter(([, { reachesThirdParty }]) => reachesThirdParty).length)
    await end(world)
    const ends = await Promise.all(requests)
    expect(ends.filter(([, reason]) => ![...reasons, BROKEN_OFF].includes(reason))).toEqual([])
    await expect.poll(() => open.size).toBe(0)
  },
)

it('a request goes on when its account is connected again', async () => {
  const { headers, accountId, environmentToken } = await createWorld()
  const answer = await fetch(`${app.url}/custom/files/1?integrated_account_id=${accountId}`, { headers })
  const change = { credentials: { api_key: 'another' } }
  await as(environmentToken, 'PATCH', `/integrated-account/${accountId}/credentials`, change)
  // The request below is looked at with the stream, and in the same statement.
  const other = await createWorld()
  const beside = WAYS['/proxy/ without a stream']?.end(other)
  await expect.poll(() => open.size).toBe(2)
  await asEnvironment(other, 'DELETE', `/integrated-account/${other.accountId}?force=true`)
  expect(await beside).toBe('RESOURCE_NOT_FOUND')
  for (const response of open) response.end(' and ended')
  expect(await answer.text()).toBe('begun and ended')
})

const SRC = join(import.meta.dirname, '../../src')

function filesWith(pattern: RegExp): string[] {
  return globSync('**/*.ts', { cwd: SRC })
    .filter((file) => pattern.test(readFileSync(join(SRC, file), 'utf8')))
    .sort()
}

it('the requests that last are all of them: streams, long polls, and what goes through an account', () => {
  const streams = SERVICES.flatMap(({ name, methods }) =>
    methods.filter(({ methodKind }) => methodKind !== 'unary').map((method) => `${name}.${method.name}`),
  )
  const routes = app.routes
    .filter(({ access, path }) => access !== 'public' || path === '/mcp/')
    .map(({ path }) => path)
  expect([...streams, ...routes].filter((name) => !Object.hasOwn(WAYS, name))).toEqual([])
  // WatchCallLogEntries, ClaimRuns, WatchSyncJobRun.
  expect(filesWith(/new LongPollHub\b/)).toEqual([
    'platform/call-log/watch.ts',
    'sync/daemons/claim-long-polls.ts',
    'sync/runs/run-watch.ts',
  ])
  // What calls through an account on behalf of a request notes the account at the request: for tokens and for the options of a form
  // in the RPC, else themselves. A refresh of a token is shared, and waits no longer than a token request does.
  expect(filesWith(/\bloadAccountForCall\([^)]*(?:'call'|purpose)\)/)).toEqual([
    'platform/accounts/issue-access-token.ts',
    'platform/links/form-options.ts',
    'server/api/services/proxy-calls.ts',
    'tools/servers/tool-endpoint.ts',
  ])
})
