import { createServer } from 'node:http'
import { create, toBinary } from '@bufbuild/protobuf'
import { GetSyncJobCronTriggerRequestSchema } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { overGrpcSessions, overHttp1 } from './rpc-patch.ts'
import { Http1Connection, jsonRequest } from './support/http1-connection.ts'
import { type LoadResult, measure, STANDARD_LOAD } from './support/load.ts'
import { reportAtLeast, reportFloor } from './support/report.ts'
import { type RpcBench, withRpcBench } from './support/rpc-bench.ts'

const RATIO_MIN = 0.5

/** Get of a trigger by id over the three protocols, against a bare node:http server with one prepared select. */
export async function run(): Promise<void> {
  await withRpcBench(async (bench) => {
    const token = bench.product.bootstrap.environment_token
    const idOf = (lane: number) => bench.triggerIds[lane % bench.triggerIds.length] ?? ''
    const floor = await bareSelect(bench, idOf)
    reportFloor('rpc-get/floor', floor.perSecond, 'ops/s')
    const method = 'SyncJobCronTriggerService/GetSyncJobCronTrigger'
    const protocols = {
      rest: await overHttp1(bench, (lane) =>
        jsonRequest('GET', `/sync-job-cron-trigger/${idOf(lane)}`, token, undefined),
      ),
      connect: await overHttp1(bench, (lane) =>
        jsonRequest('POST', `/patchbay.v1.${method}`, token, { id: idOf(lane) }),
      ),
      grpc: await overGrpcSessions(bench, method, (lane) =>
        toBinary(GetSyncJobCronTriggerRequestSchema, create(GetSyncJobCronTriggerRequestSchema, { id: idOf(lane) })),
      ),
    }
    for (const [protocol, result] of Object.entries(protocols)) {
      reportFloor(`rpc-get/${protocol}`, result.perSecond, 'ops/s')
      reportAtLeast(`rpc-get/${protocol}/ratio`, result.perSecond / floor.perSecond, 'x floor', RATIO_MIN)
    }
  })
}

/** The floor shares the benchmark's process: it has less to do than two processes on two cores, in its own disfavour. */
async function bareSelect({ pool, product }: RpcBench, idOf: (lane: number) => string): Promise<LoadResult> {
  const server = createServer(async (request, response) => {
    const { rows } = await pool.query({
      name: 'get',
      text: `select t.*, s.* from sync_job_cron_trigger t left join trigger_schedule s on s.trigger_id = t.id
             where t.environment_id = $1 and t.id = $2`,
      values: [product.bootstrap.environment_id, request.url?.slice(1)],
    })
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(rows[0]))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const connections = await Promise.all(
    Array.from({ length: STANDARD_LOAD.inFlight }, () => Http1Connection.open('127.0.0.1', address.port)),
  )
  try {
    return await measure(STANDARD_LOAD, async (lane) => {
      const status = await connections[lane % connections.length]?.send(
        jsonRequest('GET', `/${idOf(lane)}`, 'none', undefined),
      )
      if (status !== 200) throw new Error(`status ${status}`)
    })
  } finally {
    for (const connection of connections) connection.close()
    server.close()
  }
}
