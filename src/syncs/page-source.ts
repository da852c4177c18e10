import { assertNever, type DotPath, Failure, type Json, type JsonObject } from '../base/index.ts'
import { ACTION_RESOURCE, type Plan } from '../definitions/index.ts'
import type { AccountAccess, CallTarget, Proxy as Engine, PageFailed, PageStep } from '../proxy/index.ts'
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

/** One page of a listing. */
export interface SourcePage {
  /** A method that returns one record is a page of one. Handed on untouched. */
  readonly records: readonly Json[]
  /** Fetches the page after this one, in another process too; absent on the last. */
  readonly next: JsonObject | undefined
  /** Why paging ended, on the last page: `empty_page`, `no_cursor`, `max_pages`, … A list that does not say is taken as cut. */
  readonly stopReason: string | undefined
  /** How many records the listing has in all, as the third party claims. */
  readonly total?: number | undefined
}

/**
 * Where pages come from: the proxy of this process, or the service as a daemon sees it.
 *
 * Iterating throws the failures of a call: UPSTREAM_RATE_LIMITED with the wait, UPSTREAM_ERROR with `metadata.status`, …
 * After a failure the listing is opened anew at the state of the page that was not delivered.
 */
export interface PageSource {
  /** @param state of `SourcePage.next`; absent: the first page */
  pages(request: ListingRequest, state: JsonObject | undefined, signal: AbortSignal): AsyncIterable<SourcePage>
  /**
   * Paths below the root `resources` that the definition of the method reads, so that only those fields of parents are
   * kept. Absent: unknown, whole records are kept.
   */
  readonly parentPaths?: (resource: string, method: string) => readonly DotPath[]
  /** Where records of the method keep their identifier. Absent: `id`. */
  readonly idPath?: (resource: string, method: string) => DotPath
}

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
