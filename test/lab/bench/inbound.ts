import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import {
  bareEnvironment,
  type RunningProduct,
  removeDataDir,
  startProduct,
  temporaryDataDir,
} from '../../support/product.ts'
import { expectJson } from '../../support/rest.ts'
import { type Received, startReceiver } from '../../support/webhook-receiver.ts'
import { overHttp1 } from './rpc-patch.ts'
import { type LoadPlan, type LoadResult, measureInterleaved } from './support/load.ts'
import { reportAtLeast, reportBaseline } from './support/report.ts'

const RATIO_MIN = 0.4
const POOL_SIZE = 16
const LOAD: LoadPlan = { inFlight: 64, warmUpMs: 2_000, measureMs: 3_000 }
const SECRET = 'the-secret-of-the-benchmark'
const ENDPOINTS = 10
/** Of the second figure: events per second, and for how long. */
const RATE = 200
const SECONDS = 15
/** For the last of them to arrive. */
const ARRIVAL_MS_MAX = 30_000

const ENVIRONMENT = {
  PATCHBAY_RATE_LIMIT: '0',
  PATCHBAY_RATE_LIMIT_ADDRESS: '0',
  PATCHBAY_DATABASE_POOL: String(POOL_SIZE),
  PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
}

const CONFIG = {
  label: 'Third party',
  base_url: 'http://127.0.0.1:9',
  credentials: { format: 'api_key', config: { fields: [{ name: 'api_key', type: 'password', required: true }] } },
  webhook: {
    signature_verification: {
      format: 'hmac',
      config: { secret: SECRET, parts: ['$body'], compare_with: '$header.x-signature' },
    },
    dedupe: { keys: ['$payload.id'] },
    events: '{"event": "updated", "resource": body.resource, "id": body.id, "data": body}',
    rate_limit: { requests_per_second: 100000, burst: 1000000 },
  },
}

/** Signed webhooks of third parties: received against a bare server with one insert, and on their way to the customer. */
export async function run(): Promise<void> {
  const dataDir = temporaryDataDir()
  const product = await startProduct({ dataDir, environment: ENVIRONMENT })
  try {
    const path = await connectAccount(product)
    await measureWay(product, path)
    await measureReception(product, dataDir, path)
  } finally {
    await product.stop()
    removeDataDir(dataDir)
  }
}

async function connectAccount({ url, bootstrap }: RunningProduct): Promise<string> {
  const { team_token, environment_token } = bootstrap
  const integration = await expectJson('POST', `${url}/integration`, team_token, { name: 'inbound', config: CONFIG })
  const installation = await expectJson('POST', `${url}/environment-integration`, environment_token, {
    integration_id: integration.id,
  })
  const account = await expectJson('POST', `${url}/integrated-account`, environment_token, {
    environment_integration_id: installation.id,
    tenant_id: 'acme',
    credentials: { api_key: 'k' },
  })
  return `/integrated-account-webhook/${account.id}`
}

/** Received by a process of its own, while nothing is processed: both share the machine with the database and the client. */
async function measureReception(product: RunningProduct, dataDir: string, path: string): Promise<void> {
  const host = `${dataDir}/postgres`
  const pool = new Pool({ host, port: 5432, user: 'patchbay', database: 'postgres', max: 1 })
  await pool.query(
    'create table bench_inbound (id uuid primary key, headers jsonb, body bytea, at timestamptz default now())',
  )
  product.child.kill('SIGSTOP')
  try {
    const environment = { ...bareEnvironment(), ...ENVIRONMENT, PATCHBAY_DATA_DIR: dataDir }
    let number = 0
    const { floor, own } = await measureInterleaved({
      floor: () =>
        underLoad('bare-insert-server.ts', [host, String(POOL_SIZE)], environment, () =>
          webhookRequest('/', ++number, 0),
        ),
      own: () => underLoad('inbound-server.ts', [], environment, () => webhookRequest(path, ++number, 0)),
    })
    reportBaseline('inbound/floor', floor.perSecond, 'webhooks/s')
    reportBaseline('inbound/per-second', own.perSecond, 'webhooks/s')
    reportBaseline('inbound/p99', own.p99Ms, 'ms')
    reportAtLeast('inbound/ratio', own.perSecond / floor.perSecond, 'x floor', RATIO_MIN)
  } finally {
    product.child.kill('SIGCONT')
    await pool.end()
  }
}

async function underLoad(
  file: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  request: () => Buffer,
): Promise<LoadResult> {
  const script = join(import.meta.dirname, 'support', file)
  const server = spawn(process.execPath, [script, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [port] = await once(server.stdout, 'data')
    return await overHttp1(Number(String(port)), request, LOAD)
  } finally {
    server.kill('SIGKILL')
    await once(server, 'exit')
  }
}

/** A signed webhook of 1 KB, each with an id of its own. */
function webhookRequest(path: string, number: number, sentAtMs: number): Buffer {
  const event = { id: `event-${number}`, resource: `r${number % ENDPOINTS}`, sent_at: sentAtMs, text: 'x'.repeat(900) }
  const body = JSON.stringify(event)
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: bench',
    'content-type: application/json',
    `x-signature: ${createHmac('sha256', SECRET).update(body).digest('hex')}`,
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** From the request of the third party to the receiver of the customer, at a steady rate spread over the endpoints. */
async function measureWay({ url, port, bootstrap }: RunningProduct, path: string): Promise<void> {
  const waysMs: number[] = []
  const onReceived = ({ body }: Received) => {
    const sentAt: unknown = JSON.parse(body).payload?.data?.sent_at
    if (typeof sentAt === 'number') waysMs.push(Date.now() - sentAt)
    return { status: 204 }
  }
  await using receiver = await startReceiver(onReceived)
  for (let endpoint = 0; endpoint < ENDPOINTS; endpoint++)
    await expectJson('POST', `${url}/webhook`, bootstrap.environment_token, {
      target_url: `${receiver.url}/${endpoint}`,
      event_types: ['record:*'],
      filter: { 'payload.resource': `r${endpoint}` },
    })
  await sendSteadily(port, path)
  const giveUpAtMs = performance.now() + ARRIVAL_MS_MAX
  while (waysMs.length < RATE * SECONDS && performance.now() < giveUpAtMs) await sleep(100)
  waysMs.sort((one, other) => one - other)
  const at = (share: number) => waysMs[Math.floor(waysMs.length * share)] ?? Number.NaN
  reportAtLeast('inbound/way/arrived', waysMs.length, 'webhooks', RATE * SECONDS)
  reportBaseline('inbound/way/p50', at(0.5), 'ms')
  reportBaseline('inbound/way/p99', at(0.99), 'ms')
}

const TICK_MS = 50

/** The same number in each tick, whether earlier ones have been answered or not. */
async function sendSteadily(port: number, path: string): Promise<void> {
  const answers: Promise<void>[] = []
  const from = performance.now()
  for (let sent = 0; sent < RATE * SECONDS; ) {
    for (let n = 0; n < (RATE * TICK_MS) / 1_000; n++) answers.push(post(port, path, ++sent))
    await sleep(Math.max(0, from + (sent / RATE) * 1_000 - performance.now()))
  }
  await Promise.all(answers)
}

async function post(port: number, path: string, number: number): Promise<void> {
  const body = JSON.stringify({
    id: `way-${number}`,
    resource: `r${number % ENDPOINTS}`,
    sent_at: Date.now(),
    text: 'x'.repeat(900),
  })
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-signature': createHmac('sha256', SECRET).update(body).digest('hex'),
    },
    body,
  })
  if (response.status !== 200) throw new Error(`status ${response.status}`)
  await response.arrayBuffer()
}
