import type { DotPath, Json, JsonObject } from '../base/index.ts'

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
