import type { HandlerContext } from '@connectrpc/connect'
import { ProxyService } from '../../../gen/patchbay/v1/proxy_service_pb.ts'
import type { PageDelayed } from '../../proxy/index.ts'
import { environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import {
  callFindings,
  callFromProto,
  listFindings,
  listFromProto,
  previewToProto,
  stepToProto,
  successToProto,
} from './proxy.convert.ts'
import { dryRun, upstreamFailure } from './proxy-calls.ts'

/** Longest wait of a stream for a rate limit, and most waits in a row for one page. */
const WAIT_SECONDS_MAX = 300
const WAITS_MAX = 20

/** Calls upstreams with connected accounts. */
export function proxyService(deps: Pick<ServiceDeps, 'calls'>): ServiceDefinition {
  const { proxy, clock, readyAccount } = deps.calls
  return defineService(
    ProxyService,
    {
      call: async (request, context) => {
        const { integratedAccountId: accountId, includeRaw } = request
        const environmentId = environmentIdOf(context)
        const { sample, ...asked } = callFromProto(request)
        if (request.dryRun) {
          const preview = await dryRun(deps.calls, { environmentId, accountId }, { ...asked, sample })
          return { dryRun: previewToProto(preview) }
        }
        const { plan, access } = await readyAccount(environmentId, accountId)
        const outcome = await proxy.call(plan, access, { ...asked, signal: context.signal })
        if (outcome.kind === 'ok') return await successToProto(outcome, includeRaw)
        throw upstreamFailure(outcome, asked.target, { clock, includeRaw })
      },
      async *listPages(request, context) {
        const { asked, state } = listFromProto(request)
        const { plan, access } = await readyAccount(environmentIdOf(context), request.integratedAccountId)
        let waits = 0
        for await (const step of proxy.pages(plan, access, { ...asked, signal: context.signal }, state)) {
          const isEnd =
            step.kind === 'upstream_error' || (step.kind === 'rate_limited' && !canWait(step, waits, context))
          if (isEnd) throw upstreamFailure(step, asked.target, { clock, includeRaw: false })
          yield await stepToProto(step, request.asJsonText)
          waits = step.kind === 'rate_limited' ? waits + 1 : 0
          if (step.kind === 'rate_limited') await clock.sleep(step.retryAfterSeconds * 1_000, context.signal)
        }
      },
    },
    { call: callFindings, listPages: listFindings },
  )
}

function canWait({ retryAfterSeconds }: PageDelayed, waits: number, context: HandlerContext): boolean {
  return (
    waits < WAITS_MAX &&
    retryAfterSeconds <= WAIT_SECONDS_MAX &&
    retryAfterSeconds * 1_000 < (context.timeoutMs() ?? Number.POSITIVE_INFINITY)
  )
}
