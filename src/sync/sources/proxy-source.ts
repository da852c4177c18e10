import { assertNever, Failure } from '../../base/index.ts'
import type { Plan } from '../../definition/index.ts'
import type { AccountAccess, PageFailed, PageStep, Proxy } from '../../proxy/index.ts'
import type { PageRequest, PageSource, SourcePage } from '../source.ts'

/** What reading through the engine of this process needs. */
export interface ProxySourceDeps {
  readonly proxy: Pick<Proxy, 'pages'>
  readonly plan: Plan
  readonly access: AccountAccess
}

/** Pages through the engine of this process, with the account's credentials in its hands. */
export function createProxySource({ proxy, plan, access }: ProxySourceDeps): PageSource {
  return {
    async *pages(request, state, signal) {
      for await (const step of proxy.pages(plan, access, callOf(request, signal), state)) yield pageOf(step, request)
    },
  }
}

function callOf(request: PageRequest, signal: AbortSignal): Parameters<Proxy['pages']>[2] {
  const { resource, method, id, query, args, resources, previousRunDate } = request
  return { target: { kind: 'method', resource, method }, id, query, args, resources, previousRunDate, signal }
}

/** @throws Failure for a step that is not a page, as `PageSource` promises */
function pageOf(step: PageStep, { resource, method }: PageRequest): SourcePage {
  switch (step.kind) {
    case 'page':
      return { records: step.records, next: step.state ?? undefined, stopReason: step.stopReason }
    case 'rate_limited':
      throw new Failure('UPSTREAM_RATE_LIMITED', `${resource}.${method} is rate limited by the third party`, {
        retryAfterSeconds: step.retryAfterSeconds,
      })
    case 'upstream_error':
      return endOrThrow(step, `${resource}.${method}`)
    default:
      return assertNever(step)
  }
}

/** The definition may declare an error to be the end of the list; every other one is the run's to judge. */
function endOrThrow({ action, status, message }: PageFailed, name: string): SourcePage {
  if (action === 'ignore' || action === 'stop') return { records: [], next: undefined, stopReason: action }
  throw new Failure('UPSTREAM_ERROR', `${name} answered ${status}: ${message}`, {
    metadata: { status: String(status) },
  })
}
