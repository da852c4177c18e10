import { request } from 'node:http'
import type { DescMethodUnary } from '@bufbuild/protobuf'
import { ProxyService } from '../../../../gen/patchbay/v1/proxy_service_pb.ts'
import { UnifiedService } from '../../../../gen/patchbay/v1/unified_service_pb.ts'
import type { Database } from '../../../../src/foundation/database/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { createClient } from '../../../support/client.ts'
import { SERVICES } from '../../../support/operations.ts'
import { callRest, expectJson } from '../../../support/rest.ts'
import {
  createApiEnvironment,
  freshName,
  type SeedTarget,
  seedTenant,
  type Tenant,
} from '../../../support/seeded-tenant.ts'
import {
  acceptableRequest,
  addHeldRun,
  addHistory,
  addSecondRows,
  sendAs,
  type TenancyFixture,
} from '../../../support/tenancy-matrix.ts'
import { type PagedUpstream, pagedDefinition, pagedResources } from './paged-upstream.ts'
import { forgeState, forgeText } from './token-mutations.ts'

/** How much is tried at each door. */
export interface CursorPlan {
  /** Positions of a token whose byte is changed. */
  readonly bytesMax: number
  /** Forged values, spread over all. */
  readonly forgedMax: number
  /** Values of other doors. */
  readonly othersMax: number
  /** The doors at which forged values are tried, and the spellings of a path that leaves its own: of all that there are. */
  choose<Place>(places: readonly Place[]): readonly Place[]
}

/** A running service, with a worker that connects accounts. */
export interface CursorTarget extends SeedTarget {
  readonly url: string
  readonly tenant: Tenant
  readonly database: Database
}

/** What came of the forged values. */
export interface CursorReport {
  /** Places where a client returns a value that it was given. */
  readonly doors: number
  /** Lists of the contract that had no second page, so that none of their tokens was tried. */
  readonly untried: readonly string[]
  readonly sent: number
  /** Forged or borrowed values that were not rejected. */
  readonly accepted: readonly string[]
  /** Values as they were given out that were rejected: the guard would prove nothing. */
  readonly broken: readonly string[]
  /** Ids with dot segments that were not rejected before they were sent. */
  readonly traversed: readonly string[]
}

/** A place where a client returns a value that it was given. */
interface Door {
  readonly name: string
  /** The value of the first page; `undefined` when there is one page alone. */
  take(): Promise<Json | undefined>
  /** Whether the service took the value for one of its own. */
  use(value: Json): Promise<boolean>
  /** Doors of one kind may be tried with the values of each other. */
  readonly kind: string
}

const PARALLEL = 8
const POLL_MS = 50
const CONNECT_MS_MAX = 30_000

/**
 * Takes a value at every door, and hands it back forged in each leaf and over ranges of bytes, and at the other doors of its kind.
 */
export async function runCursorGuard(
  target: CursorTarget,
  upstream: PagedUpstream,
  { bytesMax, forgedMax, othersMax, choose }: CursorPlan,
): Promise<CursorReport> {
  const world = await connectPaged(target, upstream.url)
  const doors = [...upstreamDoors(world), ...(await toolDoors(world)), ...(await contractDoors(target))]
  const accepted: string[] = []
  const broken: string[] = []
  const untried: string[] = []
  const taken: { readonly door: Door; readonly value: Json }[] = []
  let sent = 0
  const attempt = async (door: Door, value: Json, how: string) => {
    sent += 1
    const outside = upstream.outside.length
    const isAccepted = await door.use(value)
    if (isAccepted) accepted.push(`${door.name}: ${how} ${JSON.stringify(value)?.slice(0, 120)}`)
    if (upstream.outside.length > outside) accepted.push(`${door.name}: sent ${upstream.outside.at(-1)}`)
  }
  for (const door of doors) {
    const value = await door.take()
    if (value === undefined) untried.push(door.name)
    else if (await door.use(value)) taken.push({ door, value })
    else broken.push(door.name)
  }
  for (const { door, value } of choose(taken)) {
    const forged = typeof value === 'string' ? forgeText(value, bytesMax) : forgeState(value, bytesMax)
    await inParallel(spread<Json>(forged, forgedMax), (each) => attempt(door, each, 'forged'))
    const others = taken.filter((other) => other.door !== door && other.door.kind === door.kind)
    await inParallel(spread(others, othersMax), (other) => attempt(door, other.value, `of ${other.door.name}`))
  }
  const traversed = await sendDotSegments(world, upstream, choose(DOT_SEGMENTS))
  return { doors: taken.length, untried, sent, accepted, broken, traversed }
}

interface PagedWorld {
  readonly target: CursorTarget
  readonly accountIds: readonly string[]
  readonly call: (verb: string, path: string, body?: JsonObject) => Promise<JsonObject>
}

const UNIFIED: Readonly<Record<string, string>> = {
  contacts: 'link_header',
  accounts: 'body_link',
  opportunities: 'cursor',
}

/** Two accounts of the definition, and unified resources of it. */
async function connectPaged(target: CursorTarget, upstreamUrl: string): Promise<PagedWorld> {
  const { url, tenant } = target
  const call = async (verb: string, path: string, body?: JsonObject): Promise<JsonObject> =>
    await expectJson(verb, url + path, tenant.environmentToken, body)
  const name = freshName('paged')
  const config = pagedDefinition(upstreamUrl)
  const integration = await expectJson('POST', `${url}/integration`, tenant.teamToken, { name, config })
  const installation = await call('POST', '/environment-integration', { integration_id: integration.id })
  const accountIds: string[] = []
  for (const tenantId of ['one', 'two']) {
    const account = await call('POST', '/integrated-account', {
      environment_integration_id: installation.id ?? '',
      tenant_id: tenantId,
      credentials: { api_key: 'k-123456' },
    })
    accountIds.push(String(account.id))
    await until(async () => (await call('GET', `/integrated-account/${account.id}`)).status === 'active')
  }
  for (const [resource, from] of Object.entries(UNIFIED)) {
    const response = { fields: { id: 'id', name: 'name' } }
    const mapping = { resource: from, method: 'list', request: { query: {} }, response }
    await call('POST', '/unified-mapping', {
      model: 'crm',
      resource,
      integration_name: name,
      method: 'list',
      config: mapping,
    })
  }
  return { target, accountIds, call }
}

/** At most so many of the items, from begin to end. */
function spread<Item>(items: readonly Item[], most: number): readonly Item[] {
  const step = Math.max(1, items.length / most)
  return items.filter((_, index) => Math.floor(index / step) !== Math.floor((index - 1) / step))
}

/** A few at a time. */
async function inParallel<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const open = [...items]
  const worker = async () => {
    for (let item = open.pop(); item !== undefined; item = open.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: PARALLEL }, worker))
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + CONNECT_MS_MAX; Date.now() < end; ) {
    if (await isDone()) return
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  throw new Error('an account was not connected')
}

/** Calls, streams of pages and form options, for each way of paging; one of them also for another account. */
function upstreamDoors({ target, accountIds: [accountId = '', otherId = ''] }: PagedWorld): readonly Door[] {
  const { url, tenant } = target
  const rest = (kind: string, path: string, account = accountId, also = ''): Door => {
    const address = `${url}${path}?integrated_account_id=${account}${also}`
    const ask = (cursor?: string) =>
      callRest(
        'GET',
        `${address}${cursor === undefined ? '' : `&next_cursor=${encodeURIComponent(cursor)}`}`,
        tenant.environmentToken,
      )
    return {
      name: `GET ${path} ${account === accountId ? '' : 'other account '}${also}`,
      kind,
      take: async () => (await ask()).body.next_cursor,
      use: async (value) => isTaken((await ask(String(value))).body),
    }
  }
  const stream = (kind: string, method: Parameters<ReturnType<typeof sendAs>>[0], request: JsonObject): Door => {
    const ask = sendAs(createClient('connect', url, {}), url, { authorization: `Bearer ${tenant.environmentToken}` })
    const send = async (state?: Json) =>
      await ask(method, { ...request, integrated_account_id: accountId, ...(state === undefined ? {} : { state }) })
    return {
      name: `${method.parent.name}.${method.name} ${request.resource}`,
      kind,
      take: async () => stateOf(await send()),
      use: async (value) => !(await send(value)).includes('PAGE_TOKEN_INVALID'),
    }
  }
  const options = (field: string, account = accountId): Door => {
    const { environmentToken: token } = tenant
    const path = `${url}/integrated-account/${account}/post-connect-form/options`
    const ask = (pageToken?: string) =>
      callRest('POST', path, token, { field, ...(pageToken === undefined ? {} : { page_token: pageToken }) })
    return {
      name: `options of ${field}${account === accountId ? '' : ' of the other account'}`,
      kind: 'options',
      take: async () => (await ask()).body.next_page_token,
      use: async (value) => isTaken((await ask(String(value))).body),
    }
  }
  const names = Object.keys(pagedResources())
  return [
    ...names.map((name) => rest('call', `/proxy/${name}`)),
    ...names.map((name) => rest('call', `/proxy/${name}`, accountId, '&q=x')),
    ...names.map((name) => stream('stream', ProxyService.method.listPages, { resource: name })),
    ...names.map((name) => options(name)),
    rest('call', '/proxy/link_header', otherId),
    options('link_header', otherId),
    ...Object.keys(UNIFIED).map((name) => rest('call', `/unified/crm/${name}`)),
    ...Object.keys(UNIFIED).map((resource) =>
      stream('stream', UnifiedService.method.listPages, { model: 'crm', resource, method: 'list' }),
    ),
  ]
}

/** Whether an answer is about the page: any answer but the error of a token. */
function isTaken(body: JsonObject): boolean {
  return !JSON.stringify(body).includes('PAGE_TOKEN_INVALID')
}

function stateOf(answer: string): Json | undefined {
  const parsed = JSON.parse(answer)
  return parsed.json?.page?.state
}

/** The tools of two tool servers, and the list of the tools of the contract. */
async function toolDoors({ target, accountIds, call }: PagedWorld): Promise<readonly Door[]> {
  const doors: Door[] = []
  for (const label of ['first', 'second']) {
    const filter = { sources: ['proxy', 'unified'] }
    const server = await call('POST', '/tool-server', { ...toolServer(label, accountIds), filter })
    const address = { url: `${target.url}/mcp/${server.id}`, token: String(server.token) }
    const listed = await askMcp(address, 'tools/list', {})
    const tools = (isJsonObject(listed) && Array.isArray(listed.tools) ? listed.tools : []) as readonly JsonObject[]
    for (const { name } of tools)
      if (JSON.stringify(tools.find((tool) => tool.name === name)?.inputSchema).includes('"cursor"'))
        doors.push(toolDoor(label, address, String(name)))
  }
  const management = { url: `${target.url}/mcp/management?mode=direct&read_only=false`, token: target.tenant.teamToken }
  doors.push({
    name: 'tools/list',
    kind: 'tools/list',
    take: async () => asObject(await askMcp(management, 'tools/list', {})).nextCursor,
    use: async (value) => 'tools' in asObject(await askMcp(management, 'tools/list', { cursor: value })),
  })
  return doors
}

function toolServer(name: string, [accountId = '']: readonly string[]): JsonObject {
  return { name, integrated_account_id: accountId, limits: { requests_per_minute: 10_000 } }
}

interface McpAddress {
  readonly url: string
  readonly token: string
}

function toolDoor(label: string, address: McpAddress, name: string): Door {
  const ask = async (cursor?: Json) =>
    asObject(await askMcp(address, 'tools/call', { name, arguments: cursor === undefined ? {} : { cursor } }))
  return {
    name: `${name} of the ${label} tool server`,
    kind: 'call',
    take: async () => asObject((await ask()).structuredContent).next_cursor ?? undefined,
    // A tool names the argument, not the reason of the API.
    use: async (value) => (await ask(value)).isError !== true,
  }
}

function asObject(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}

async function askMcp({ url, token }: McpAddress, method: string, params: JsonObject): Promise<Json> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const text = await answer.text()
  if (/rate_limited|RATE_LIMITED/.test(text)) throw new Error(`the guard meets a limit: ${text}`)
  return JSON.parse(text.slice(text.indexOf('{'))).result ?? {}
}

/** Every operation of the contract with a page token, over a tenant that has two of most things. */
async function contractDoors(target: CursorTarget): Promise<readonly Door[]> {
  const worlds: TenancyFixture[] = []
  for (let seeded = 0; seeded < 2; seeded++) {
    const client = target.client('connect', { token: target.tenant.environmentToken })
    const made = await addHeldRun(client, await seedTenant(target, target.tenant))
    worlds.push({ ...made, ...(await addHistory(target.database, made)) })
  }
  const [world] = worlds
  if (world === undefined) throw new Error('no tenant')
  await createApiEnvironment(target, world.teamToken)
  await addSecondRows(target.database, world)
  const client = createClient('connect', target.url, {})
  // The operator's team alone sees others.
  const headersOf = ({ name }: DescMethodUnary) =>
    name === 'ListTeams'
      ? { authorization: `Bearer ${target.first.teamToken}` }
      : { authorization: `Bearer ${world.teamToken}`, 'patchbay-environment': world.environmentId }
  const listing = SERVICES.flatMap(({ methods }) => methods).filter(
    (method): method is DescMethodUnary =>
      method.methodKind === 'unary' && method.output.fields.some(({ name }) => name === 'next_page_token'),
  )
  return listing
    .filter(({ name }) => name !== 'ListFormOptions')
    .map((method) => {
      const request = { ...acceptableRequest(method, world), page_size: 1 }
      const headers = headersOf(method)
      const ask = (pageToken?: string) =>
        client.send(method, pageToken === undefined ? request : { ...request, page_token: pageToken }, { headers })
      return {
        name: method.name,
        kind: 'list',
        take: async () => {
          const answer = await ask()
          return answer.ok && answer.json.next_page_token !== '' ? answer.json.next_page_token : undefined
        },
        use: async (value) => (await ask(String(value))).ok,
      }
    })
}

const DOTS = ['..', '%2e%2e', '%252e%252e', '.%2e']
const SLASHES = ['/', '\\', '%2f', '%2F', '%5c', '%252f', '%255C']
const DOT_SEGMENTS = DOTS.flatMap((dots) => SLASHES.map((slash) => `${dots}${slash}${dots}${slash}payroll`))

/** Asks for records and paths that leave their address once a third party has decoded them. */
async function sendDotSegments(
  { target, accountIds, call }: PagedWorld,
  upstream: PagedUpstream,
  ids: readonly string[],
): Promise<string[]> {
  const [accountId = ''] = accountIds
  const { url, tenant } = target
  const server = await call('POST', '/tool-server', toolServer('dots', accountIds))
  const address = { url: `${url}/mcp/${server.id}`, token: String(server.token) }
  const listed = asObject(await askMcp(address, 'tools/list', {})).tools as readonly JsonObject[]
  const tool = String(listed.find(({ inputSchema }) => JSON.stringify(inputSchema).includes('"id"'))?.name)
  const before = upstream.outside.length
  const left: string[] = []
  const note = (how: string) => {
    if (upstream.outside.length > before + left.length) left.push(`${how}: ${upstream.outside.at(-1)}`)
  }
  for (const id of ids) {
    await askMcp(address, 'tools/call', { name: tool, arguments: { id } })
    note(`tool ${id}`)
    await callRest(
      'GET',
      `${url}/proxy/page/${encodeURIComponent(id)}?integrated_account_id=${accountId}`,
      tenant.environmentToken,
    )
    note(`/proxy ${id}`)
    const path = `records/page/${id}`.replaceAll('\\', '%5c')
    await getAsWritten(`${url}/custom/${path}?integrated_account_id=${accountId}`, tenant.environmentToken)
    note(`/custom ${id}`)
  }
  return left
}

/** A GET whose path is sent as it is written: `fetch` would resolve its dots. */
async function getAsWritten(address: string, token: string): Promise<void> {
  const { hostname, port } = new URL(address)
  const path = address.slice(address.indexOf('/', 'http://'.length))
  await new Promise<void>((resolve, reject) => {
    const asked = request({ hostname, port, path, headers: { authorization: `Bearer ${token}` } }, (answer) => {
      answer.resume().once('end', resolve)
    })
    asked.once('error', reject).end()
  })
}
