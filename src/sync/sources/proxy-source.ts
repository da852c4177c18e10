import { assertNever, Failure } from '../../base/index.ts'
import { ACTION_RESOURCE, type Plan } from '../../definition/index.ts'
import type { AccountAccess, CallTarget, Proxy as Engine, PageFailed, PageStep } from '../../proxy/index.ts'
import { DEFAULT_ID_PATH } from '../record-id.ts'
import type { ListingRequest, PageSource, SourcePage } from '../source.ts'

/** What reading through the engine of this process needs. */
export interface ProxySourceDeps {
  readonly proxy: Pick<Engine, 'pages'>
  readonly plan: Plan
  readonly access: AccountAccess
}

/** Pages through the engine of this process, with the account's credentials in its hands. */
export function createProxySource({ proxy, plan, access }: ProxySourceDeps): PageSource {
  return {
    async *pages(request, state, signal) {
      for await (const step of proxy.pages(plan, access, toProxyRequest(request, signal), state)) yield pageOf(step)
    },
    ...methodFacts(plan),
  }
}

/** What a sync has to know of the methods of a definition, which itself stays where it is. */
export function methodFacts(plan: Plan): Required<Pick<PageSource, 'parentPaths' | 'idPath'>> {
  return {
    parentPaths: (resource, method) => findPlanned(plan, resource, method)?.parentPaths ?? [],
    idPath: (resource, method) => plan.resources.get(resource)?.get(method)?.idPath ?? DEFAULT_ID_PATH,
  }
}

function toProxyRequest(request: ListingRequest, signal: AbortSignal): Parameters<Engine['pages']>[2] {
  const { resource, method, id, query, args, resources, previousRunDate } = request
  return { target: callTarget(resource, method), id, query, args, resources, previousRunDate, signal }
}

/** A method of a resource, or with `_` for the resource an action. */
function callTarget(resource: string, method: string): CallTarget {
  return resource === ACTION_RESOURCE ? { kind: 'action', action: method } : { kind: 'method', resource, method }
}

function findPlanned({ actions, resources }: Plan, resource: string, method: string) {
  return resource === ACTION_RESOURCE ? actions.get(method) : resources.get(resource)?.get(method)
}

/** @throws Failure for a step that is not a page, as `PageSource` promises */
function pageOf(step: PageStep): SourcePage {
  switch (step.kind) {
    case 'page':
      return { records: step.records, next: step.state ?? undefined, stopReason: step.stopReason, total: step.total }
    case 'rate_limited':
      throw new Failure('UPSTREAM_RATE_LIMITED', 'the third party asks to wait', {
        retryAfterSeconds: step.retryAfterSeconds,
      })
    case 'upstream_error':
      throw upstreamError(step)
    default:
      return assertNever(step)
  }
}

/** What to do about it travels along: the definition may know better than the status. */
function upstreamError({ action, status, message }: PageFailed): Failure {
  const metadata = { status: String(status), action }
  return new Failure('UPSTREAM_ERROR', `the third party answered with status ${status}: ${message}`, { metadata })
}
