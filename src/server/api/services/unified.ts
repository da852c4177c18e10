import { UnifiedService } from '../../../../gen/patchbay/v1/unified_service_pb.ts'
import { filtersSince, prepareRequest, unifiedPages } from '../../../engine/unified/index.ts'
import { environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { upstreamFailure } from './proxy-calls.ts'
import { listStates } from './sealed-pages.ts'
import { streamPages } from './stream-pages.ts'
import {
  unifiedCallFindings,
  unifiedCallFromProto,
  unifiedListFindings,
  unifiedListFromProto,
  unifiedPreviewToProto,
  unifiedRefOf,
  unifiedSuccessToProto,
} from './unified.convert.ts'
import { callUnifiedMethod, dryRunUnified, prepareUnifiedCall } from './unified-calls.ts'

/** Calls unified resources with connected accounts. */
export function unifiedService({
  unifiedCalls: deps,
  secrets: { sealer },
}: Pick<ServiceDeps, 'unifiedCalls' | 'secrets'>): ServiceDefinition {
  return defineService(
    UnifiedService,
    {
      call: async (message, context) => {
        const { integratedAccountId: accountId, includeRaw } = message
        const environmentId = environmentIdOf(context)
        const { sample, ...asked } = unifiedCallFromProto(message)
        const call = { environmentId, accountId, ref: unifiedRefOf(message) }
        if (message.dryRun)
          return {
            dryRun: unifiedPreviewToProto(
              await dryRunUnified(deps, context, { ...call, request: { ...asked, sample } }),
            ),
          }
        const request = { ...asked, signal: context.signal }
        const outcome = await callUnifiedMethod(deps, context, { ...call, request })
        if (outcome.kind === 'ok') return await unifiedSuccessToProto(outcome, includeRaw)
        throw upstreamFailure(outcome, { ...call.ref }, { clock: deps.clock, includeRaw })
      },
      async *listPages(message, context) {
        const { asked, state, since } = unifiedListFromProto(message)
        const ref = unifiedRefOf(message)
        const account = { environmentId: environmentIdOf(context), accountId: message.integratedAccountId }
        const states = listStates(sealer, account, { ...ref })
        const start = states.open(state)
        const target = await prepareUnifiedCall(deps, context, { ...account, ref, runId: message.syncJobRunId })
        const filters = filtersSince(target.mapping, asked.filters, since)
        const request = { ...asked, filters, signal: context.signal }
        const ignoredFilters = prepareRequest(deps.unified, target, request).ignored.map((filter) => ({ ...filter }))
        const pages = unifiedPages(deps.unified, target, request, start)
        const stream = { names: { ...ref }, isText: message.asJsonText, states }
        for await (const step of streamPages(deps.clock, pages, stream, context)) yield { ...step, ignoredFilters }
      },
    },
    { call: unifiedCallFindings, listPages: unifiedListFindings },
  )
}
