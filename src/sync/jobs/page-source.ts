import { ACTION_RESOURCE, type Plan } from '../../engine/definitions/index.ts'
import {
  type AccountAccess,
  type ApiProxy,
  type CallTarget,
  createRedaction,
  type PageStep,
} from '../../engine/proxy/index.ts'
import { assertNever } from '../../foundation/base/index.ts'
import type { DotPath, JsonObject } from '../../foundation/json/index.ts'
import { type PageOutcome, upstreamErrorOutcome } from './page-outcome.ts'
import { DEFAULT_ID_PATH } from './record-id.ts'

/** One call that may have many pages, with every template of the sync rendered. */
export interface ListingRequest {
  readonly resource: string
  readonly method: string
  readonly id?: string
  readonly query: JsonObject
  /** The roots of the definition's own templates. */
  readonly args: JsonObject
  /** Parent records by resource path, with at least the fields that `parentPaths` names. */
  readonly resources: JsonObject
  /** RFC 3339; absent where everything is to be read. */
  readonly previousRunDate?: string
}

/** Where pages come from: the proxy of this process, or the service as a daemon sees it. */
export interface PageSource {
  /**
   * Pages of one listing, in order. After an outcome that is no page the caller stops iterating, and opens the listing again
   * at the state of the page that it did not get. A list without a `stopReason` on its last page counts as truncated.
   *
   * @param state of the page before; `null`: the first page
   * @param progress of a wait for the page; absent: none
   * @throws Failure when a request could not be made or was not answered; see `failureOutcome`
   */
  pages(
    request: ListingRequest,
    state: JsonObject | null,
    signal: AbortSignal,
    progress?: JsonObject,
  ): AsyncIterable<PageOutcome>
  /**
   * Paths below the root `resources` that the definition of the method reads, so that only those fields of parents are
   * kept. Absent: unknown, whole records are kept.
   */
  readonly parentPaths?: (resource: string, method: string) => readonly DotPath[]
  /** Where records of the method keep their identifier. Absent: `id`. */
  readonly idPath?: (resource: string, method: string) => DotPath
  /** Masks the secrets of the account in a text, for errors that name records. Absent: it is done where the errors are stored. */
  readonly redact?: (text: string) => string
}

/** Pages through the proxy of this process, with the credentials of the account. */
export function createProxySource(proxy: Pick<ApiProxy, 'pages'>, plan: Plan, access: AccountAccess): PageSource {
  return {
    async *pages(request, state, signal) {
      for await (const step of proxy.pages(plan, access, toProxyRequest(request, signal), state))
        yield toPageOutcome(step)
    },
    ...methodFacts(plan),
    redact: (text) => createRedaction(plan, access).redactText(text),
  }
}

/**
 * What a sync has to know of the methods of a definition. A daemon gets these facts instead of the definition. Of unified resources
 * they are the defaults: records have an `id`, and all that is read of parents is in the node.
 */
export function methodFacts(plan: Plan): Required<Pick<PageSource, 'parentPaths' | 'idPath'>> {
  return {
    parentPaths: (resource, method) => findPlanned(plan, resource, method)?.parentPaths ?? [],
    idPath: (resource, method) => plan.resources.get(resource)?.get(method)?.idPath ?? DEFAULT_ID_PATH,
  }
}

function toProxyRequest(request: ListingRequest, signal: AbortSignal): Parameters<ApiProxy['pages']>[2] {
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

/** The outcome of a step through a list. */
export function toPageOutcome(step: PageStep): PageOutcome {
  switch (step.kind) {
    case 'page':
      return step
    case 'rate_limited':
      return {
        kind: 'wait',
        afterMs: step.retryAfterSeconds * 1000,
        limitedBy: step.limitedBy === 'budget' ? 'service' : 'upstream',
        logId: step.logId,
      }
    case 'upstream_error': {
      const { status, message, action, request, logId, retryHintSeconds } = step
      return upstreamErrorOutcome(message, status, action, request, logId, retryHintSeconds)
    }
    default:
      return assertNever(step)
  }
}
