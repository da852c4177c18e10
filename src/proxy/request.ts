import type { Json, JsonObject } from '../base/index.ts'
import type { AccountValues, ActionValues } from '../expressions/index.ts'

/** What the engine needs of an account. Credentials are handed in by whoever keeps them fresh. */
export interface AccountAccess extends AccountValues {
  readonly id: string
  readonly isSandbox: boolean
  /** Whose expressions are evaluated: environments share the sandbox fairly. Absent: shared with all who name none. */
  readonly environmentId?: string | undefined
  /** What else may share a limit with the account. */
  readonly environmentIntegrationId?: string | undefined
  readonly tenantId?: string | undefined
  /** The account was said to need to be connected again when it was loaded: a call that succeeds says otherwise. */
  readonly needsReauth?: boolean | undefined
  /** Of the stored credentials, so that a renewal tells whether somebody else was faster. */
  readonly credentialVersion?: number | undefined
}

/** One call to a third party. */
export interface ProxyRequest {
  readonly target: CallTarget
  /** `{{id}}`. */
  readonly id?: Json | undefined
  /**
   * `{{query.<name>}}`. Parameters that a template of the method reads are sent only where the template puts them; all others
   * are query parameters, over those of the definition.
   */
  readonly query?: JsonObject | undefined
  /** `{{body.<name>}}`; merged over the method's body template, except for the fields that the template reads. */
  readonly body?: Json | undefined
  /** Over the definition's headers; authorization goes over these. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly args?: JsonObject | undefined
  /** Parent records, see `parentResources`. */
  readonly resources?: JsonObject | undefined
  /** RFC 3339. */
  readonly previousRunDate?: string | undefined
  /** Inside an action: what its earlier steps came to. */
  readonly action?: ActionValues | undefined
  /** Which page of a list; the first one by default. Ignored by `pages`, which keeps a state of its own. */
  readonly page?: PageSelection | undefined
  readonly limits?: CallLimits | undefined
  readonly signal?: AbortSignal | undefined
}

/** A call whose bodies are too large to hold. */
export interface StreamRequest extends Omit<ProxyRequest, 'page'> {
  /**
   * Sent as it comes, instead of `body` and the definition's body; `content-type` and, where the length is known,
   * `content-length` are taken from `headers`. It is read once, so that such a call is never repeated. It is
   * destroyed when the call ends, however it ends; one that was not begun to be sent stays its owner's.
   */
  readonly bodyStream?: AsyncIterable<Uint8Array> | undefined
}

/** A call to look at, and an answer to think through. */
export interface PreviewRequest extends ProxyRequest {
  /** Default: the method's `examples.response` with status 200. */
  readonly sample?: SampleResponse | undefined
}

/** An answer as it would be read. */
interface SampleResponse {
  readonly status: number
  /** Names in any case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Json
}

/**
 * What is called: a described method, a path of the API that is not described, the proof of a credential, or a named action
 * of the definition.
 */
export type CallTarget =
  | { readonly kind: 'method'; readonly resource: string; readonly method: string }
  | { readonly kind: 'path'; readonly verb: string; readonly path: string }
  | { readonly kind: 'verification'; readonly format: string }
  | { readonly kind: 'action'; readonly action: string }

/** Bounds of a call. */
export interface CallLimits {
  /** For one request, whole. Default: the definition's `timeout`, of a stream `STREAM_TIMEOUT_MS`. */
  readonly timeoutMs?: number | undefined
  /** Decoded bytes of one answer. Default `RESPONSE_BYTES_MAX`; of a stream bytes as sent, `STREAM_BYTES_MAX`. */
  readonly responseBytesMax?: number | undefined
  /** Requests in all when the definition allows to repeat them; 1 turns retries off. Default: what the definition says. */
  readonly attemptsMax?: number | undefined
}

/** Which page of a listing, and how large. */
interface PageSelection {
  /** Page size; lowered to the API's maximum. Counts for the first page only, later ones keep it. */
  readonly limit?: number | undefined
  /** The `nextCursor` of the page before. */
  readonly cursor?: string | undefined
}

export const RESPONSE_BYTES_MAX = 16 * 1024 * 1024

/** For a stream as a whole; it also ends when nothing has moved for the definition's `timeout`. */
export const STREAM_TIMEOUT_MS = 3_600_000
export const STREAM_BYTES_MAX = 5 * 1024 ** 3
