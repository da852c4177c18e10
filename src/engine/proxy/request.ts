import type { Failure } from '../../foundation/base/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import type { SubscriptionVerb } from '../definitions/plan.ts'
import type { AccountValues, ActionValues } from '../expressions/placeholder.ts'

/** A connected account as a call needs it, with valid credentials. */
export interface AccountAccess extends AccountValues {
  readonly id: string
  readonly isSandbox: boolean
  /** Nothing is written through it, whatever method or step the definition or a mapping names. Default: false. */
  readonly isReadOnly?: boolean | undefined
  /** Why its caller may write nothing through it. Absent: it may. */
  readonly writeError?: Failure | undefined
  /** Share of the expression sandbox that the call uses. Absent: one share for all calls without an environment. */
  readonly environmentId?: string | undefined
  /** Rate limits may be shared per installation and per tenant. */
  readonly environmentIntegrationId?: string | undefined
  readonly tenantId?: string | undefined
  /** Of the definition, for metrics. */
  readonly integrationName?: string | undefined
  /** Since when its calls are unauthorized, as it was loaded: a success is reported. Absent: they are not. */
  readonly unauthorizedSince?: Date | undefined
  /** What its requests are sent for, for the request log. Absent: a call. */
  readonly cause?: CallCause | undefined
  /** Version of the stored credentials: a refresh compares it to find that another call has refreshed already. */
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
  /** Replace headers of the definition; authorization replaces these. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly args?: JsonObject | undefined
  /** Parent records, see `parentResources`. */
  readonly resources?: JsonObject | undefined
  /** RFC 3339. */
  readonly previousRunDate?: string | undefined
  /** Inside an action: results of its earlier steps. */
  readonly action?: ActionValues | undefined
  /** Page of a list; default: the first. Ignored by `pages`, which has a state of its own. */
  readonly page?: PageSelection | undefined
  readonly limits?: CallLimits | undefined
  readonly signal?: AbortSignal | undefined
}

/** A call whose bodies are streamed. */
export interface StreamRequest extends Omit<ProxyRequest, 'page'> {
  /**
   * Sent as it comes, instead of `body` and the definition's body; `content-type` and, where the length is known,
   * `content-length` are taken from `headers`. It is read once, so that such a call is never repeated. It is
   * destroyed when the call ends, however it ends; one that was not begun to be sent stays its owner's.
   */
  readonly bodyStream?: AsyncIterable<Uint8Array> | undefined
}

/** A dry run. */
export interface PreviewRequest extends ProxyRequest {
  /** Default: the method's `examples.response` with status 200. */
  readonly sample?: SampleResponse | undefined
}

/** A response to simulate. */
interface SampleResponse {
  readonly status: number
  /** Names in any case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Json
}

/**
 * The target of a call: a method of the definition, a path of the API that no method describes, the verification request of
 * a credential, a named action, or an action of the definition's `webhook.subscription`.
 */
export type CallTarget =
  | { readonly kind: 'method'; readonly resource: string; readonly method: string }
  | { readonly kind: 'path'; readonly verb: string; readonly path: string }
  | { readonly kind: 'verification'; readonly credential: string; readonly of?: 'identity' }
  | { readonly kind: 'action'; readonly action: string }
  | { readonly kind: 'subscription'; readonly verb: SubscriptionVerb }

/** A target that is run step by step. The verification of a credential is an action of one step, named `verification`. */
export type ActionTarget = Extract<CallTarget, { readonly kind: 'action' | 'verification' | 'subscription' }>

/** An action to run. Headers and page of the caller are ignored. */
export type ActionRequest = ProxyRequest & {
  readonly target: ActionTarget
  /** Id of the lease under which it runs: the context is stored only while that is held. Absent: it runs under none. */
  readonly leaseId?: string | undefined
}

/** A caller's call of a named action. */
export type NamedActionRequest = ProxyRequest & { readonly target: Extract<CallTarget, { readonly kind: 'action' }> }

/** Whether the target is a named action. */
export function isActionRequest(request: ProxyRequest): request is NamedActionRequest {
  return request.target.kind === 'action'
}

/** Limits of a call. */
export interface CallLimits {
  /** For one request, whole. Default: the definition's `timeout`, of a stream `STREAM_TIMEOUT_MS`. */
  readonly timeoutMs?: number | undefined
  /** Decoded bytes of one response. Default: the definition's `max_response_bytes`; of a stream bytes as sent, `STREAM_BYTES_MAX`. */
  readonly responseBytesMax?: number | undefined
  /** Requests in all when the definition allows to repeat them; 1 turns retries off. Default: what the definition says. */
  readonly attemptsMax?: number | undefined
}

/** Page size and cursor. */
interface PageSelection {
  /** Page size; lowered to the API's maximum. Counts for the first page only, later ones keep it. */
  readonly limit?: number | undefined
  /** The `nextCursor` of the page before, of the same list. */
  readonly cursor?: string | undefined
  /** What a cursor is bound to beside account and target. Default: id, query, arguments and body of the request. */
  readonly list?: JsonObject | undefined
  /** Who may use the cursor, where it is fewer than all who may call the account, such as the clients of one tool. */
  readonly holder?: JsonObject | undefined
}

/** For a stream as a whole; it also ends when nothing has moved for the definition's `timeout`. */
export const STREAM_TIMEOUT_MS = 3_600_000
export const STREAM_BYTES_MAX = 5 * 1024 ** 3

/** What requests are sent for. */
export const CALL_CAUSES = [
  /** A request of a client of this service, also for options of a form. */
  'call',
  /** A run of a sync job. */
  'run',
  /** A call of a tool server. */
  'tool_call',
  /** The activation of an account. */
  'activation',
  /** A token of an account: requested, refreshed, revoked. */
  'token',
  /** The consent of a customer: a request token, the exchange of a code. */
  'authorization',
  /** A webhook subscription of an account. */
  'subscription',
] as const

/** What a request is sent for, and the id of that where it has one: of the request, run, tool call, account, session, subscription. */
export interface CallCause {
  readonly kind: (typeof CALL_CAUSES)[number]
  readonly id?: string | undefined
}
