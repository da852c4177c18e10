import { create, toBinary } from '@bufbuild/protobuf'
import { UpdateIntegratedAccountRequestSchema } from '../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { UpdateSyncJobCronTriggerRequestSchema } from '../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { GrpcConnection, grpcFrame } from './support/grpc-connection.ts'
import { Http1Connection, jsonRequest } from './support/http1-connection.ts'
import { type LoadPlan, type LoadResult, measure, measureInterleaved, STANDARD_LOAD } from './support/load.ts'
import { reportAtLeast, reportAtMost, reportBaseline, reportOfConnectNode } from './support/report.ts'
import { type BenchTarget, type RpcBench, withRpcBench } from './support/rpc-bench.ts'

const RATIO_MIN = 0.35
/** Of an account over REST. */
const ACCOUNT_REST_RATIO_MIN = 0.4
const P99_MS_MAX = 25
const SESSIONS = 4

const at = <Item>(items: readonly Item[], index: number): Item => {
  const item = items[index % items.length]
  if (item === undefined) throw new Error('nothing to choose from')
  return item
}

/** PATCH of triggers and accounts over the three protocols, against the same UPDATE … RETURNING through bare pg. */
export async function run(): Promise<void> {
  await withRpcBench(async (bench) => {
    await compare(bench, 'trigger', triggerFloor, triggerPatch(bench))
    await compare(bench, 'account', accountFloor, accountPatch(bench))
  })
}

/** A new daemon group for a trigger. */
export function triggerPatch({ triggerIds }: Pick<RpcBench, 'triggerIds'>): PatchCase {
  return {
    path: (lane) => `/sync-job-cron-trigger/${at(triggerIds, lane)}`,
    body: (count) => ({ daemon_group_key: `group-${count % 7}` }),
    service: 'SyncJobCronTriggerService/UpdateSyncJobCronTrigger',
    id: (lane) => at(triggerIds, lane),
    message: (lane, count) =>
      toBinary(
        UpdateSyncJobCronTriggerRequestSchema,
        create(UpdateSyncJobCronTriggerRequestSchema, {
          id: at(triggerIds, lane),
          destination: { case: 'daemonGroupKey', value: `group-${count % 7}` },
        }),
      ),
  }
}

/** A new tenant and context for an account. */
export function accountPatch({ accountIds }: Pick<RpcBench, 'accountIds'>): PatchCase {
  return {
    path: (lane) => `/integrated-account/${at(accountIds, lane)}`,
    body: (count) => ({ tenant_id: `tenant-${count % 7}`, context: { seats: count } }),
    service: 'IntegratedAccountService/UpdateIntegratedAccount',
    id: (lane) => at(accountIds, lane),
    message: (lane, count) =>
      toBinary(
        UpdateIntegratedAccountRequestSchema,
        create(UpdateIntegratedAccountRequestSchema, {
          id: at(accountIds, lane),
          tenantId: `tenant-${count % 7}`,
          context: { seats: count },
        }),
      ),
  }
}

/** A PATCH as each protocol sends it. */
export interface PatchCase {
  readonly path: (lane: number) => string
  readonly body: (count: number) => object
  readonly service: string
  readonly id: (lane: number) => string
  readonly message: (lane: number, count: number) => Uint8Array
}

async function compare(
  bench: RpcBench,
  name: string,
  measureFloor: (bench: RpcBench) => Promise<LoadResult>,
  patch: PatchCase,
): Promise<void> {
  const { floor, rest, connect, connectByConnectNode, grpc, grpcByConnectNode } = await measureInterleaved({
    floor: () => measureFloor(bench),
    rest: () => overRest(bench, patch),
    connect: () => overConnect(bench, bench.product, patch),
    connectByConnectNode: () => overConnect(bench, bench.connectNode, patch),
    grpc: () => overGrpcSessions(bench, bench.product, patch.service, patch.message),
    grpcByConnectNode: () => overGrpcSessions(bench, bench.connectNode, patch.service, patch.message),
  })
  reportBaseline(`rpc-patch/${name}/floor`, floor.perSecond, 'ops/s')
  reportOfConnectNode(`rpc-patch/${name}/connect`, connect, connectByConnectNode)
  reportOfConnectNode(`rpc-patch/${name}/grpc`, grpc, grpcByConnectNode)
  for (const [protocol, result] of Object.entries({ rest, connect, grpc })) {
    reportBaseline(`rpc-patch/${name}/${protocol}`, result.perSecond, 'ops/s')
    const least = name === 'account' && protocol === 'rest' ? ACCOUNT_REST_RATIO_MIN : RATIO_MIN
    // gRPC is measured against bare connect-node.
    if (protocol !== 'grpc')
      reportAtLeast(`rpc-patch/${name}/${protocol}/ratio`, result.perSecond / floor.perSecond, 'x floor', least)
    reportAtMost(`rpc-patch/${name}/${protocol}/p99`, result.p99Ms, 'ms', P99_MS_MAX)
  }
}

async function overRest(bench: RpcBench, patch: PatchCase): Promise<LoadResult> {
  return await overHttp1(bench.product.port, (lane, count) =>
    jsonRequest('PATCH', patch.path(lane), bench.product.bootstrap.environment_token, patch.body(count)),
  )
}

async function overConnect(bench: RpcBench, { port }: BenchTarget, patch: PatchCase): Promise<LoadResult> {
  return await overHttp1(port, (lane, count) =>
    jsonRequest('POST', `/patchbay.v1.${patch.service}`, bench.product.bootstrap.environment_token, {
      id: patch.id(lane),
      ...patch.body(count),
    }),
  )
}

/** Runs ready-made requests over one HTTP/1.1 connection per lane. */
export async function overHttp1(
  port: number,
  request: (lane: number, count: number) => Buffer,
  plan: LoadPlan = STANDARD_LOAD,
): Promise<LoadResult> {
  const connections = await Promise.all(
    Array.from({ length: plan.inFlight }, () => Http1Connection.open('127.0.0.1', port)),
  )
  try {
    return await measure(plan, async (lane, count) => {
      const status = await at(connections, lane).send(request(lane, count))
      if (status !== 200) throw new Error(`status ${status}`)
    })
  } finally {
    for (const connection of connections) connection.close()
  }
}

/** Runs messages over a few h2c sessions. */
export async function overGrpcSessions(
  bench: RpcBench,
  { url }: BenchTarget,
  method: string,
  message: (lane: number, count: number) => Uint8Array,
): Promise<LoadResult> {
  const { bootstrap } = bench.product
  const sessions = Array.from(
    { length: SESSIONS },
    () => new GrpcConnection(url, `/patchbay.v1.${method}`, bootstrap.environment_token),
  )
  try {
    return await measure(STANDARD_LOAD, async (lane, count) => {
      const status = await at(sessions, lane).call(grpcFrame(message(lane, count)))
      if (status !== 0) throw new Error(`grpc-status ${status}`)
    })
  } finally {
    for (const session of sessions) session.close()
  }
}

async function triggerFloor({ pool, triggerIds, product }: RpcBench): Promise<LoadResult> {
  return await measure(STANDARD_LOAD, async (lane, count) => {
    await pool.query({
      name: 'trigger',
      text: `update sync_job_cron_trigger set daemon_group_key = $1, webhook_id = null, updated_at = now(), version = version + 1
             where environment_id = $2 and id = $3 returning *`,
      values: [`group-${count % 7}`, product.bootstrap.environment_id, at(triggerIds, lane)],
    })
  })
}

async function accountFloor({ pool, accountIds, product }: RpcBench): Promise<LoadResult> {
  return await measure(STANDARD_LOAD, async (lane, count) => {
    await pool.query({
      name: 'account',
      text: `update integrated_account set tenant_id = $1, context = context || $2::jsonb, updated_at = now(), version = version + 1
             where environment_id = $3 and id = $4 returning *`,
      values: [
        `tenant-${count % 7}`,
        JSON.stringify({ seats: count }),
        product.bootstrap.environment_id,
        at(accountIds, lane),
      ],
    })
  })
}
