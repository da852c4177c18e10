/**
 * Servers and workers are restarted by SIGTERM, one after the other, while requests and runs are under way; about two
 * minutes. Clients notice nothing, neither behind a load balancer nor with a gRPC channel over both servers; each run
 * continues elsewhere without a page twice.
 */

import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { credentials, Client as GrpcChannel, Metadata } from '@grpc/grpc-js'
import {
  GetSyncJobCronTriggerRequestSchema,
  SyncJobCronTriggerService,
} from '../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { generateKeyRingText } from '../../../src/foundation/secrets/index.ts'
import { startDurableDatabase } from '../../support/durable-database.ts'
import { freePort, type RunningProduct, removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { seedChain } from '../../support/seed.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { startBalancer } from './support/balancer.ts'
import { checkDeliveries } from './support/delivery-checker.ts'
import { startPageEndpoints } from './support/page-endpoints.ts'
import { RunCluster } from './support/run-cluster.ts'

const RESTARTS = Number(process.env.PATCHBAY_FAULTS_RESTARTS ?? 10)
const CLIENTS = 16
/** Several times the interval of the balancer's health checks, also while the machine is busy. */
const GRACE_MS = 2_000
const BETWEEN_RESTARTS_MS = 1_000
/** Clients try a server that was away again after this; grpc-js by default only after a second or more. */
const RECONNECT_MS = 200
const LIST = { records: 2_450, delayMs: [40, 100], acceptMs: [20, 60] } as const
const ACCOUNTS = 8
const FINISH_MS = 120_000
const POLL_MS = 100

/** What the clients of one kind saw. */
interface Tally {
  answered: number
  readonly failures: string[]
}

async function rollingRestart(): Promise<void> {
  await using durable = await startDurableDatabase()
  const dataDir = temporaryDataDir()
  const environment = {
    DATABASE_URL: durable.url,
    PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('faults'),
    PATCHBAY_RATE_LIMIT: '0',
    PATCHBAY_RATE_LIMIT_ADDRESS: '0',
    PATCHBAY_DRAIN_GRACE_MS: String(GRACE_MS),
    PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
  }
  const main = new URL('../../../src/main.ts', import.meta.url).pathname
  const command = [process.execPath, main, 'serve']
  const start = (port: number) => startProduct({ dataDir, environment, command, port })
  const ports = [await freePort(), await freePort()]
  const servers: RunningProduct[] = []
  for (const port of ports) servers.push(await start(port))
  await using balancer = await startBalancer(ports)
  const { environment_token: token, team_token: teamToken, environment_id: environmentId } = servers[0]!.bootstrap
  const { triggerId } = await seedChain({ url: servers[0]!.url, teamToken, environmentToken: token, environmentId })
  const over = new AbortController()
  const [rest, grpc]: [Tally, Tally] = [
    { answered: 0, failures: [] },
    { answered: 0, failures: [] },
  ]
  await sleep(BETWEEN_RESTARTS_MS)
  const clients = Array.from({ length: CLIENTS }, (_, index) =>
    index % 2 === 0
      ? callRest(`${balancer.url}/sync-job-cron-trigger/${triggerId}`, token, rest, over.signal)
      : callGrpc(ports, triggerId, token, grpc, over.signal),
  )
  let unclean = 0
  for (let restarts = 0; restarts < RESTARTS; restarts++) {
    await sleep(BETWEEN_RESTARTS_MS)
    const index = restarts % servers.length
    if ((await servers[index]!.stop()) !== 0) unclean++
    servers[index] = await start(ports[index]!)
  }
  over.abort()
  await Promise.all(clients)
  await Promise.all(servers.map((server) => server.stop()))
  removeDataDir(dataDir)
  for (const failure of new Set([...rest.failures, ...grpc.failures])) process.stderr.write(`${failure}\n`)
  reportAtLeast('drain/restarts', RESTARTS, 'servers', 10)
  reportAtLeast('drain/rest-requests', rest.answered, 'requests', 1_000)
  reportAtMost('drain/rest-failed', rest.failures.length, 'requests', 0)
  reportAtLeast('drain/grpc-requests', grpc.answered, 'requests', 1_000)
  reportAtMost('drain/grpc-failed', grpc.failures.length, 'requests', 0)
  reportAtMost('drain/unclean-exits', unclean, 'servers', 0)
}

/** Reads and writes by turns, one request after the other. */
async function callRest(url: string, token: string, tally: Tally, signal: AbortSignal): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  for (let calls = 0; !signal.aborted; calls++) {
    const write = { method: 'PATCH', body: JSON.stringify({ cron_expression: `${calls % 60} 3 * * *` }) }
    try {
      const answer = await fetch(url, { headers, ...(calls % 2 === 0 ? {} : write) })
      const text = await answer.text()
      if (answer.status === 200) tally.answered++
      else tally.failures.push(`REST ${answer.status} ${text}`)
    } catch (error) {
      tally.failures.push(`REST ${error} ${(error as Error).cause}`)
    }
  }
}

/** Reads over one channel to both servers, which chooses and retries as gRPC prescribes. */
async function callGrpc(
  ports: readonly number[],
  id: string,
  token: string,
  tally: Tally,
  signal: AbortSignal,
): Promise<void> {
  const target = `ipv4:${ports.map((port) => `127.0.0.1:${port}`).join(',')}`
  const channel = new GrpcChannel(target, credentials.createInsecure(), {
    'grpc.initial_reconnect_backoff_ms': RECONNECT_MS,
    'grpc.max_reconnect_backoff_ms': RECONNECT_MS,
    'grpc.service_config': JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
  })
  const metadata = new Metadata()
  metadata.set('authorization', `Bearer ${token}`)
  const path = `/${SyncJobCronTriggerService.typeName}/GetSyncJobCronTrigger`
  const bytes = Buffer.from(
    toBinary(GetSyncJobCronTriggerRequestSchema, create(GetSyncJobCronTriggerRequestSchema, { id })),
  )
  const same = (value: Buffer) => value
  while (!signal.aborted)
    await new Promise<void>((resolve) => {
      channel.makeUnaryRequest(path, same, same, bytes, metadata, { deadline: Date.now() + 10_000 }, (error) => {
        if (error === null) tally.answered++
        else tally.failures.push(`gRPC ${error.code} ${error.details}`)
        resolve()
      })
    })
  channel.close()
}

/** Workers leave by SIGTERM in the middle of runs; others go on with them. */
async function handOver(): Promise<void> {
  await using endpoints = await startPageEndpoints(LIST)
  await using cluster = await RunCluster.start()
  await cluster.addWorker()
  await cluster.addWorker()
  await cluster.seed(ACCOUNTS, endpoints.upstreamUrl, endpoints.receiverUrl)
  const runs: string[] = []
  let [handedOver, unclean, stops] = [0, 0, 0]
  while (stops < RESTARTS) {
    const worker = cluster.workers[0]!
    if ((await cluster.heldBy(worker)).length === 0) {
      runs.push(...(await Promise.all(cluster.accountIds.map((id) => cluster.createRun(id)))))
      await sleep(BETWEEN_RESTARTS_MS)
      continue
    }
    stops++
    handedOver += (await cluster.heldBy(worker)).length
    cluster.workers.shift()
    const exit = once(worker.child, 'exit')
    worker.child.kill('SIGTERM')
    const [code] = await exit
    if (code !== 0) unclean++
    await cluster.addWorker()
  }
  const isCompleted = async () =>
    (await Promise.all(runs.map((id) => cluster.statusOf(id)))).every((status) => status === 'completed')
  const end = Date.now() + FINISH_MS
  while (Date.now() < end && !(await isCompleted())) await sleep(POLL_MS)
  const verdict = checkDeliveries(new Map(runs.map((id) => [id, LIST.records])), endpoints.pages)
  reportAtLeast('drain/runs-handed-over', handedOver, 'runs', RESTARTS)
  reportAtMost('drain/runs-unfinished', (await isCompleted()) ? 0 : 1, 'checks', 0)
  reportAtMost('drain/records-missing', verdict.missing, 'records', 0)
  reportAtMost('drain/pages-repeated', verdict.repeated, 'pages', 0)
  reportAtMost('drain/unclean-worker-exits', unclean, 'workers', 0)
}

await rollingRestart()
await handOver()
