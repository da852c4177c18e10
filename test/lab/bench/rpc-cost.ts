import { join, resolve } from 'node:path'
import { create, toBinary } from '@bufbuild/protobuf'
import { GetSyncJobCronTriggerRequestSchema } from '../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { accountPatch, type PatchCase, triggerPatch } from './rpc-patch.ts'
import { type CpuCost, costPerCall, usedCpu } from './support/cpu-cost.ts'
import { GrpcConnection, grpcFrame } from './support/grpc-connection.ts'
import { Http1Connection, jsonRequest } from './support/http1-connection.ts'
import { type ProxyBench, withProxyBench } from './support/proxy-bench.ts'
import { reportBaseline } from './support/report.ts'
import { type BenchTarget, type RpcBench, withRpcBench } from './support/rpc-bench.ts'

const ROUNDS = Number(process.env.BENCH_COST_ROUNDS ?? 7)
const CALLS = 800
const WARM_UP_CALLS = 4_000
const IN_FLIGHT = 32
const GRPC_SESSIONS = 4
/** Of the calls only those whose names contain this. */
const ONLY = process.env.BENCH_COST_ONLY ?? ''

const ROOT = join(import.meta.dirname, '../../..')
const GET_TRIGGER = 'SyncJobCronTriggerService/GetSyncJobCronTrigger'

/** One kind of call of one server, over open connections, and whose processor time it takes. */
interface Subject {
  readonly label: string
  readonly server: BenchTarget
  readonly dataDir: string
  readonly send: (lane: number, count: number) => Promise<void>
  readonly close: () => void
}

/** Opens the connections for a kind of call. */
type OpenSubject<Bench> = (bench: Bench, label: string) => Promise<Subject>

/**
 * Processor time of calls, in µs of server, database and measuring client: where other programs use the machine, calls per second
 * say more about these. `BENCH_COST_TREE` names the directory of another checkout, whose product is measured by turns with this
 * one, round after round; `BENCH_CPU_PROFILE` a directory for a profile of this tree's product. Linux only.
 */
export async function run(): Promise<void> {
  await inBothTrees<RpcBench>(withRpcBench, async (bench, other) => {
    for (const [name, open] of Object.entries(RPC_CALLS)) await compare(name, open, bench, other)
  })
  const withProxy = (work: (bench: ProxyBench) => Promise<void>, command: readonly string[]) =>
    withProxyBench(0, work, command)
  await inBothTrees<ProxyBench>(withProxy, async (bench, other) => {
    for (const [name, open] of Object.entries(PROXY_CALLS)) await compare(name, open, bench, other)
  })
}

async function inBothTrees<Bench>(
  start: (work: (bench: Bench) => Promise<void>, command: readonly string[]) => Promise<void>,
  work: (bench: Bench, other: Bench | undefined) => Promise<void>,
): Promise<void> {
  const { BENCH_COST_TREE: tree, BENCH_CPU_PROFILE: profiles } = process.env
  const profile = profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profiles)}`]
  const own = [process.execPath, ...profile, join(ROOT, 'src/main.ts'), 'start']
  await start(async (bench) => {
    if (tree === undefined) return await work(bench, undefined)
    await start((other) => work(bench, other), [process.execPath, join(resolve(tree), 'src/main.ts'), 'start'])
  }, own)
}

async function compare<Bench>(
  name: string,
  open: OpenSubject<Bench>,
  bench: Bench,
  other: Bench | undefined,
): Promise<void> {
  if (!name.includes(ONLY)) return
  const subjects = [await open(bench, name), ...(other === undefined ? [] : [await open(other, `${name}/other`)])]
  try {
    const costs = await measureTurns(subjects)
    for (const [index, { label }] of subjects.entries()) reportCost(label, costs[index] ?? [])
    const [own = [], others = []] = costs
    if (other === undefined) return
    reportRatio(`${name}/server/ratio`, own, others, ({ serverUs }) => serverUs)
    reportRatio(`${name}/database/ratio`, own, others, ({ databaseUs }) => databaseUs)
  } finally {
    for (const subject of subjects) subject.close()
  }
}

/** The costs of each subject, a round after the other, in alternating order. */
async function measureTurns(subjects: readonly Subject[]): Promise<readonly (readonly CpuCost[])[]> {
  const costs: CpuCost[][] = subjects.map(() => [])
  for (const subject of subjects) await sendCalls(subject, WARM_UP_CALLS)
  for (let round = 0; round < ROUNDS; round++) {
    const turns = [...subjects.entries()]
    for (const [index, subject] of round % 2 === 0 ? turns : turns.toReversed()) {
      const pid = subject.server.child.pid ?? 0
      const before = usedCpu(pid, subject.dataDir)
      await sendCalls(subject, CALLS)
      costs[index]?.push(costPerCall(before, usedCpu(pid, subject.dataDir), CALLS))
    }
  }
  return costs
}

async function sendCalls({ send }: Subject, calls: number): Promise<void> {
  let sent = 0
  const lane = async (index: number) => {
    while (sent < calls) await send(index, sent++)
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, (_, index) => lane(index)))
}

function reportCost(label: string, costs: readonly CpuCost[]): void {
  reportBaseline(`rpc-cost/${label}/server`, median(costs.map(({ serverUs }) => serverUs)), 'µs')
  reportBaseline(`rpc-cost/${label}/database`, median(costs.map(({ databaseUs }) => databaseUs)), 'µs')
  reportBaseline(`rpc-cost/${label}/client`, median(costs.map(({ clientUs }) => clientUs)), 'µs')
}

function reportRatio(
  name: string,
  own: readonly CpuCost[],
  others: readonly CpuCost[],
  pick: (cost: CpuCost) => number,
): void {
  const ratios = own.flatMap((cost, round) => (others[round] === undefined ? [] : [pick(cost) / pick(others[round])]))
  reportBaseline(`rpc-cost/${name}`, median(ratios), 'x other')
}

function median(values: readonly number[]): number {
  return values.toSorted((one, another) => one - another)[Math.floor(values.length / 2)] ?? Number.NaN
}

const RPC_CALLS: Readonly<Record<string, OpenSubject<RpcBench>>> = {
  'patch-trigger/rest': overPatch(triggerPatch),
  'patch-account/rest': overPatch(accountPatch),
  'get-trigger/rest': (bench, label) =>
    overHttp1(bench, label, bench.product, (lane) =>
      jsonRequest('GET', `/sync-job-cron-trigger/${triggerOf(bench, lane)}`, tokenOf(bench), undefined),
    ),
  'get-trigger/connect': (bench, label) =>
    overHttp1(bench, label, bench.product, (lane) =>
      jsonRequest('POST', `/patchbay.v1.${GET_TRIGGER}`, tokenOf(bench), { id: triggerOf(bench, lane) }),
    ),
  'get-trigger/grpc': (bench, label) => getOverGrpc(bench, label, bench.product),
  'get-trigger/grpc/connect-node': (bench, label) => getOverGrpc(bench, label, bench.connectNode),
}

const PROXY_CALLS: Readonly<Record<string, OpenSubject<ProxyBench>>> = {
  'proxy-hop': (bench, label) =>
    overHttp1(bench, label, bench.product, () =>
      jsonRequest('GET', `/proxy/records/r-1?integrated_account_id=${bench.accountId}`, tokenOf(bench), undefined),
    ),
  'proxy-hop/floor': (bench, label) =>
    overHttp1(bench, label, bench.bareProxy, () => jsonRequest('GET', '/records/r-1', 'none', undefined)),
}

function tokenOf({ product }: Pick<RpcBench, 'product'>): string {
  return product.bootstrap.environment_token
}

function triggerOf({ triggerIds }: RpcBench, lane: number): string {
  return triggerIds[lane % triggerIds.length] ?? ''
}

function overPatch(patchOf: (bench: RpcBench) => PatchCase): OpenSubject<RpcBench> {
  return (bench, label) => {
    const patch = patchOf(bench)
    return overHttp1(bench, label, bench.product, (lane, count) =>
      jsonRequest('PATCH', patch.path(lane), tokenOf(bench), patch.body(count)),
    )
  }
}

/** Ready-made requests over one HTTP/1.1 connection per lane. */
async function overHttp1(
  { product }: Pick<RpcBench, 'product'>,
  label: string,
  server: BenchTarget,
  request: (lane: number, count: number) => Buffer,
): Promise<Subject> {
  const connections = await Promise.all(
    Array.from({ length: IN_FLIGHT }, () => Http1Connection.open('127.0.0.1', server.port)),
  )
  return {
    label,
    server,
    dataDir: product.dataDir,
    send: async (lane, count) => {
      const status = await connections[lane]?.send(request(lane, count))
      if (status !== 200) throw new Error(`status ${status}`)
    },
    close: () => {
      for (const connection of connections) connection.close()
    },
  }
}

/** Ready-made messages over a few h2c sessions. */
async function getOverGrpc(bench: RpcBench, label: string, server: BenchTarget): Promise<Subject> {
  const path = `/patchbay.v1.${GET_TRIGGER}`
  const sessions = Array.from({ length: GRPC_SESSIONS }, () => new GrpcConnection(server.url, path, tokenOf(bench)))
  const frames = bench.triggerIds.map((id) =>
    grpcFrame(toBinary(GetSyncJobCronTriggerRequestSchema, create(GetSyncJobCronTriggerRequestSchema, { id }))),
  )
  return {
    label,
    server,
    dataDir: bench.product.dataDir,
    send: async (lane) => {
      const status = await sessions[lane % GRPC_SESSIONS]?.call(frames[lane % frames.length] ?? Buffer.alloc(0))
      if (status !== 0) throw new Error(`grpc-status ${status}`)
    },
    close: () => {
      for (const session of sessions) session.close()
    },
  }
}
