import { ProxyService } from '../../../../gen/patchbay/v1/proxy_service_pb.ts'
import { findPassedOn } from '../../../engine/proxy/index.ts'
import { environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import {
  callFindings,
  callFromProto,
  listFindings,
  listFromProto,
  namesOf,
  previewToProto,
  successToProto,
} from './proxy.convert.ts'
import { dryRun, upstreamFailure } from './proxy-calls.ts'
import { listStates } from './sealed-pages.ts'
import { streamPages } from './stream-pages.ts'

/** Calls upstreams with connected accounts. */
export function proxyService(deps: Pick<ServiceDeps, 'calls' | 'secrets'>): ServiceDefinition {
  const { proxy, clock, readyAccount } = deps.calls
  return defineService(
    ProxyService,
    {
      call: async (request, context) => {
        const { integratedAccountId: accountId, includeRaw } = request
        const environmentId = environmentIdOf(context)
        const { sample, ...asked } = callFromProto(request)
        if (request.dryRun) {
          const preview = await dryRun(deps.calls, context, { environmentId, accountId }, { ...asked, sample })
          return { dryRun: previewToProto(preview) }
        }
        const { plan, access } = await readyAccount(context, environmentId, accountId)
        const outcome = await proxy.call(plan, access, { ...asked, signal: context.signal })
        if (outcome.kind === 'ok') return await successToProto(outcome, includeRaw)
        const passedOn = findPassedOn(outcome)
        if (passedOn !== undefined) return await successToProto(passedOn, includeRaw)
        throw upstreamFailure(outcome, namesOf(asked.target), { clock, includeRaw })
      },
      async *listPages(request, context) {
        const { asked, state } = listFromProto(request)
        const account = { environmentId: environmentIdOf(context), accountId: request.integratedAccountId }
        const names = namesOf(asked.target)
        const states = listStates(deps.secrets.sealer, account, names)
        const start = states.open(state)
        const { plan, access } = await readyAccount(
          context,
          account.environmentId,
          account.accountId,
          request.syncJobRunId,
        )
        const pages = proxy.pages(plan, access, { ...asked, signal: context.signal }, start)
        yield* streamPages(clock, pages, { names, isText: request.asJsonText, states }, context)
      },
    },
    { call: callFindings, listPages: listFindings },
  )
}
