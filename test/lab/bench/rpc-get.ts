import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { create, toBinary } from '@bufbuild/protobuf'
import { GetSyncJobCronTriggerRequestSchema } from '../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { overGrpcSessions, overHttp1 } from './rpc-patch.ts'
import { jsonRequest } from './support/http1-connection.ts'
import { type LoadResult, measureInterleaved } from './support/load.ts'
import { reportAtLeast, reportBaseline, reportOfConnectNode } from './support/report.ts'
import { type BenchTarget, POOL_SIZE, type RpcBench, withRpcBench } from './support/rpc-bench.ts'

const RATIO_MIN = 0.5

/** Get of a trigger by id over the three protocols, against a bare node:http server with one prepared select. */
export async function run(): Promise<void> {
  await withRpcBench(async (bench) => {
    const token = bench.product.bootstrap.environment_token
    const idOf = (lane: number) => bench.triggerIds[lane % bench.triggerIds.length] ?? ''
    const method = 'SyncJobCronTriggerService/GetSyncJobCronTrigger'
    const message = (lane: number) =>
      toBinary(GetSyncJobCronTriggerRequestSchema, create(GetSyncJobCronTriggerRequestSchema, { id: idOf(lane) }))
    const overConnect = ({ port }: BenchTarget) =>
      overHttp1(port, (lane) => jsonRequest('POST', `/patchbay.v1.${method}`, token, { id: idOf(lane) }))
    const { floor, rest, connect, connectByConnectNode, grpc, grpcByConnectNode } = await measureInterleaved({
      floor: () => bareSelect(bench, idOf),
      rest: () =>
        overHttp1(bench.product.port, (lane) =>
          jsonRequest('GET', `/sync-job-cron-trigger/${idOf(lane)}`, token, undefined),
        ),
      connect: () => overConnect(bench.product),
      connectByConnectNode: () => overConnect(bench.connectNode),
      grpc: () => overGrpcSessions(bench, bench.product, method, message),
      grpcByConnectNode: () => overGrpcSessions(bench, bench.connectNode, method, message),
    })
    reportBaseline('rpc-get/floor', floor.perSecond, 'ops/s')
    reportOfConnectNode('rpc-get/connect', connect, connectByConnectNode)
    reportOfConnectNode('rpc-get/grpc', grpc, grpcByConnectNode)
    for (const [protocol, result] of Object.entries({ rest, connect, grpc })) {
      reportBaseline(`rpc-get/${protocol}`, result.perSecond, 'ops/s')
      // gRPC is measured against bare connect-node.
      if (protocol === 'grpc') continue
      reportAtLeast(`rpc-get/${protocol}/ratio`, result.perSecond / floor.perSecond, 'x floor', RATIO_MIN)
    }
  })
}

/** A bare server as its own process, as the product is: client, server and database share the same two cores. */
async function bareSelect({ pool, product }: RpcBench, idOf: (lane: number) => string): Promise<LoadResult> {
  const host = String(pool.options.host)
  const script = join(import.meta.dirname, 'support/bare-select-server.ts')
  const args = [script, host, product.bootstrap.environment_id, String(POOL_SIZE)]
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [port] = await once(server.stdout, 'data')
    return await overHttp1(Number(String(port)), (lane) => jsonRequest('GET', `/${idOf(lane)}`, 'none', undefined))
  } finally {
    server.kill()
  }
}
