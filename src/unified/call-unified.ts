import type { Json, JsonObject } from '../base/index.ts'
import type { PageStep, RequestPreview } from '../proxy/index.ts'
import type { FieldTrace, IgnoredFilter, MappingWarning } from './mapping.ts'
import type {
  UnifiedDependencies,
  UnifiedOutcome,
  UnifiedPreviewRequest,
  UnifiedRequest,
  UnifiedTarget,
} from './request.ts'

/**
 * One call of a unified method: validates the request, calls the provider through the proxy, maps the answer. Of a list it
 * reads one page.
 *
 * @throws Failure INVALID_FIELD (body, filters, sort, expand), and those of `ApiProxy.call`
 */
export function callUnified(
  _deps: UnifiedDependencies,
  _target: UnifiedTarget,
  _request: UnifiedRequest,
): Promise<UnifiedOutcome> {
  throw new Error('not implemented')
}

/** A whole unified list page by page, resumable: the steps of the proxy with unified records. */
export function unifiedPages(
  _deps: UnifiedDependencies,
  _target: UnifiedTarget,
  _request: UnifiedRequest,
  _state?: JsonObject | null,
): AsyncGenerator<PageStep, void, void> {
  throw new Error('not implemented')
}

/** Dry run of a unified method: the masked request of the provider, and a sample response mapped. */
export interface UnifiedPreview extends RequestPreview {
  readonly ignoredFilters: readonly IgnoredFilter[]
  readonly warnings: readonly MappingWarning[]
  /** Names of steps that would send a request of their own; they are not run, `$before.<name>` is absent. */
  readonly skippedSteps: readonly string[]
  /** The outcome's records mapped; absent without a sample, or when its outcome is an error. */
  readonly mapped: readonly JsonObject[] | undefined
  /** Per record of the provider. */
  readonly traces: readonly (readonly FieldTrace[])[] | undefined
  /** Outgoing body as JSON, before it is encoded. */
  readonly providerBody: Json | undefined
}

/** The request that a unified call would send, and how a sample response would be mapped. Nothing is sent. */
export function previewUnified(
  _deps: UnifiedDependencies,
  _target: UnifiedTarget,
  _request: UnifiedPreviewRequest,
): Promise<UnifiedPreview> {
  throw new Error('not implemented')
}
