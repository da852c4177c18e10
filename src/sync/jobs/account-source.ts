import type { Plan } from '../../engine/definitions/index.ts'
import type { AccountAccess, ApiProxy } from '../../engine/proxy/index.ts'
import { type MappingPlan, type UnifiedDependencies, unifiedPages } from '../../engine/unified/index.ts'
import type { UnifiedMethodRef } from '../../platform/unified-config/index.ts'
import { createProxySource, type PageSource, toPageOutcome } from './page-source.ts'
import { isUnifiedName } from './resource.ts'
import { unifiedRefOf, unifiedRequestOf } from './unified-nodes.ts'

/** What a source in this process reads through. */
export interface AccountSourceDeps {
  readonly proxy: Pick<ApiProxy, 'pages'>
  readonly unified: UnifiedDependencies
  /** The mapping of a unified method for the account. @throws Failure UNIFIED_NOT_MAPPED, DEFINITION_INVALID */
  readonly findMapping: (ref: UnifiedMethodRef) => Promise<MappingPlan>
}

/**
 * Pages through the proxy of this process, with the credentials of the account. Those of unified resources are mapped, and have
 * the same states.
 */
export function createAccountSource(
  { proxy, unified, findMapping }: AccountSourceDeps,
  plan: Plan,
  access: AccountAccess,
): PageSource {
  const source = createProxySource(proxy, plan, access)
  return {
    ...source,
    async *pages(request, state, signal, progress) {
      if (!isUnifiedName(request.resource)) return yield* source.pages(request, state, signal)
      const mapping = await findMapping(unifiedRefOf(request))
      const target = { plan, access, mapping }
      const asked = unifiedRequestOf(request, mapping, signal)
      for await (const step of unifiedPages(unified, target, asked, state, progress)) {
        const outcome = toPageOutcome(step)
        yield outcome.kind === 'wait' && 'progress' in step ? { ...outcome, progress: step.progress() } : outcome
      }
    },
  }
}
