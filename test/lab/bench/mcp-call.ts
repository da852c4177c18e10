import type { JsonObject } from '../../../src/foundation/json/index.ts'
import type { RunningProduct } from '../../support/product.ts'
import { expectJson } from '../../support/rest.ts'
import { overHttp1 } from './rpc-patch.ts'
import { type LoadPlan, measureInterleaved } from './support/load.ts'
import { withProxyBench } from './support/proxy-bench.ts'
import { reportAtMost, reportBaseline } from './support/report.ts'

const ADDED_MS_MAX = 2
const LIST_MS_MAX = 50
const TOOLS = 1_000
const LISTS = 20
/** The most that a tool server may have; several share the calls of the benchmark. */
const REQUESTS_PER_MINUTE = 10_000
const SERVERS = 16

const ALONE: LoadPlan = { inFlight: 1, warmUpMs: 1_000, measureMs: 2_000 }
const REVISION = '2026-07-28'
const META = {
  'io.modelcontextprotocol/protocolVersion': REVISION,
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** A tool against the same call by `/proxy`, with many in flight and alone; then all pages of a list of 1 000 tools. */
export async function run(): Promise<void> {
  await withProxyBench(0, async ({ product, accountId }) => {
    const { environment_token: token } = product.bootstrap
    const calls: Buffer[] = []
    for (let index = 0; index < SERVERS; index++) {
      const server = await createServer(product, { integrated_account_id: accountId })
      await expectRecord(server)
      calls.push(requestBytes(server, 'tools/call', { name: 'get_record', arguments: { id: 'r-1' } }))
    }
    const call = (lane: number, count: number) => calls[(lane + count) % SERVERS] ?? Buffer.of()
    const path = `/proxy/records/r-1?integrated_account_id=${accountId}`
    const proxied = Buffer.from(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n\r\n`)
    const { floor, tool, floorAlone, toolAlone } = await measureInterleaved({
      floor: () => overHttp1(product.port, () => proxied),
      tool: () => overHttp1(product.port, call),
      floorAlone: () => overHttp1(product.port, () => proxied, ALONE),
      toolAlone: () => overHttp1(product.port, call, ALONE),
    })
    reportBaseline('mcp-call/floor', floor.perSecond, 'ops/s')
    reportBaseline('mcp-call', tool.perSecond, 'ops/s')
    reportBaseline('mcp-call/floor/p50', floorAlone.p50Ms, 'ms')
    reportAtMost('mcp-call/added-p50', toolAlone.p50Ms - floorAlone.p50Ms, 'ms', ADDED_MS_MAX)
    reportAtMost('mcp-call/list-1000', await measureList(product), 'ms', LIST_MS_MAX)
  })
}

/** A tool server and its token. */
interface BenchServer {
  readonly url: string
  readonly token: string
}

async function createServer({ url, bootstrap }: RunningProduct, settings: JsonObject): Promise<BenchServer> {
  const server = await expectJson('POST', `${url}/tool-server`, bootstrap.environment_token, {
    name: 'bench',
    mode: 'direct',
    limits: { requests_per_minute: REQUESTS_PER_MINUTE },
    ...settings,
  })
  return { url: `${url}/mcp/${server.id}`, token: String(server.token) }
}

function headersOf({ token }: BenchServer, method: string, params: JsonObject): Readonly<Record<string, string>> {
  return {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': REVISION,
    'mcp-method': method,
    ...(typeof params.name === 'string' && { 'mcp-name': params.name }),
  }
}

function bodyOf(method: string, params: JsonObject): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } })
}

function requestBytes(server: BenchServer, method: string, params: JsonObject): Buffer {
  const body = bodyOf(method, params)
  const headers = { host: '127.0.0.1', 'content-length': String(body.length), ...headersOf(server, method, params) }
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return Buffer.from(`POST ${new URL(server.url).pathname} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${body}`)
}

async function ask(server: BenchServer, method: string, params: JsonObject): Promise<string> {
  const answer = await fetch(server.url, {
    method: 'POST',
    headers: headersOf(server, method, params),
    body: bodyOf(method, params),
  })
  return await answer.text()
}

/** A benchmark of failing calls measures nothing. */
async function expectRecord(server: BenchServer): Promise<void> {
  const text = await ask(server, 'tools/call', { name: 'get_record', arguments: { id: 'r-1' } })
  if (!text.includes('octocat')) throw new Error(`the tool answered ${text.slice(0, 500)}`)
}

/** Milliseconds for all pages of the list, the median of several. */
async function measureList(product: RunningProduct): Promise<number> {
  const { url, bootstrap } = product
  const token = bootstrap.environment_token
  const resource = (name: string) => ({ list: { path: `/${name}`, description: `Lists ${name} of the account.` } })
  const names = Array.from({ length: TOOLS }, (_, index) => `things_${index}`)
  const integration = await expectJson('POST', `${url}/integration`, bootstrap.team_token, {
    name: 'many',
    config: {
      base_url: 'https://many.example.com',
      credentials: { api_key: { config: {} } },
      authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
      resources: Object.fromEntries(names.map((name) => [name, resource(name)])),
    },
  })
  const installation = await expectJson('POST', `${url}/environment-integration`, token, {
    integration_id: integration.id,
  })
  const account = await expectJson('POST', `${url}/integrated-account`, token, {
    environment_integration_id: installation.id,
    tenant_id: 'many',
    credentials: { api_key: 'k' },
  })
  const server = await createServer(product, { integrated_account_id: account.id })
  const durations: number[] = []
  for (let round = 0; round < LISTS; round++) {
    const startedMs = performance.now()
    const count = await readList(server)
    durations.push(performance.now() - startedMs)
    if (count !== TOOLS) throw new Error(`the list has ${count} tools`)
  }
  return durations.toSorted((one, other) => one - other)[LISTS / 2] ?? Number.NaN
}

async function readList(server: BenchServer): Promise<number> {
  let count = 0
  let params: JsonObject = {}
  for (;;) {
    const { result } = JSON.parse(await ask(server, 'tools/list', params))
    count += result.tools.length
    if (result.nextCursor === undefined) return count
    params = { cursor: result.nextCursor }
  }
}
