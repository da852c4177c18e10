import { overHttp1 } from './rpc-patch.ts'
import { jsonRequest } from './support/http1-connection.ts'
import { type LoadPlan, measureInterleaved } from './support/load.ts'
import { withProxyBench } from './support/proxy-bench.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from './support/report.ts'

const RATIO_MIN = 0.5
const ADDED_MS_MAX = 1

/** One call at a time: what a caller waits, rather than what the machine can do. */
const ALONE: LoadPlan = { inFlight: 1, warmUpMs: 1_000, measureMs: 2_000 }

/** A described GET of 1 KB with credential, override and expressions, against a bare undici reverse proxy. */
export async function run(): Promise<void> {
  await withProxyBench(0, async ({ product, accountId, bareProxy }) => {
    const path = `/proxy/records/r-1?integrated_account_id=${accountId}`
    const own = jsonRequest('GET', path, product.bootstrap.environment_token, undefined)
    const bare = jsonRequest('GET', '/records/r-1', 'none', undefined)
    const { floor, hop, floorAlone, hopAlone } = await measureInterleaved({
      floor: () => overHttp1(bareProxy.port, () => bare),
      hop: () => overHttp1(product.port, () => own),
      floorAlone: () => overHttp1(bareProxy.port, () => bare, ALONE),
      hopAlone: () => overHttp1(product.port, () => own, ALONE),
    })
    reportBaseline('proxy-hop/floor', floor.perSecond, 'ops/s')
    reportBaseline('proxy-hop', hop.perSecond, 'ops/s')
    reportAtLeast('proxy-hop/ratio', hop.perSecond / floor.perSecond, 'x floor', RATIO_MIN)
    reportBaseline('proxy-hop/floor/p50', floorAlone.p50Ms, 'ms')
    reportAtMost('proxy-hop/added-p50', hopAlone.p50Ms - floorAlone.p50Ms, 'ms', ADDED_MS_MAX)
  })
}
