import type { Clock } from '../../foundation/base/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import type { Plan } from '../definitions/plan.ts'
import type { RateLimitedOutcome, SuccessOutcome, UpstreamErrorOutcome } from '../proxy/outcome.ts'
import type { ApiProxy } from '../proxy/proxy.ts'
import type { AccountAccess, PreviewRequest, ProxyRequest } from '../proxy/request.ts'
import type { IgnoredFilter, MappingWarning, UnifiedFilter } from './mapping.ts'
import type { MappingEvaluator } from './mapping-expression.ts'
import type { MappingPlan } from './mapping-plan.ts'

/** What the engine works with. */
export interface UnifiedDependencies {
  readonly proxy: Pick<ApiProxy, 'call' | 'pages' | 'preview'>
  readonly evaluator: MappingEvaluator
  /** Of `$called_at`. */
  readonly clock: Pick<Clock, 'now'>
}

/** A unified method of an account: definition, account and mapping. */
export interface UnifiedTarget {
  readonly plan: Plan
  readonly access: AccountAccess
  readonly mapping: MappingPlan
}

/** A call of a unified method. */
export interface UnifiedRequest {
  readonly id?: string | undefined
  readonly filters?: readonly UnifiedFilter[] | undefined
  readonly sort?: { readonly field: string; readonly direction: 'asc' | 'desc' } | undefined
  /** Query parameters that are passed on as they are (`remote_query`). */
  readonly query?: JsonObject | undefined
  /** The unified body of a write. */
  readonly body?: Json | undefined
  /** Keys of the provider, merged over the outgoing body. */
  readonly remoteFields?: JsonObject | undefined
  /** Unified fields whose references are loaded. */
  readonly expand?: readonly string[] | undefined
  /** Loads more than 50 references one by one. Default false: an error. */
  readonly expandUnbatched?: boolean | undefined
  /** A filter that is not honoured is an error. Default false: it is reported. */
  readonly strictFilters?: boolean | undefined
  readonly page?: Omit<NonNullable<ProxyRequest['page']>, 'list'> | undefined
  /** Record of the parent resource, in a sync. */
  readonly parent?: JsonObject | undefined
  /** Adds `remote_data`, the provider's record, to each record. */
  readonly includeRemoteData?: boolean | undefined
  /** Keeps fields that the model marks as sensitive. */
  readonly includeSensitive?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** A dry run of a unified method. */
export interface UnifiedPreviewRequest extends UnifiedRequest {
  /** A response to simulate. Default: the example of the definition. */
  readonly sample?: PreviewRequest['sample']
}

/** The outcome of a unified call that was answered. */
export type UnifiedOutcome = UnifiedSuccess | RateLimitedOutcome | UpstreamErrorOutcome

/** Success of a unified call. */
export interface UnifiedSuccess {
  readonly kind: 'ok'
  /** Of the provider's answer. */
  readonly status: number
  /** Of a list the records; else the record, `null` when there is none. */
  readonly result: readonly JsonObject[] | JsonObject | null
  /** Present for lists. */
  readonly page: SuccessOutcome['page']
  /** Its records lack fields that `get` returns. */
  readonly isPartial: boolean
  readonly ignoredFilters: readonly IgnoredFilter[]
  /** About the request; those of a record are in its `_warnings`. */
  readonly warnings: readonly MappingWarning[]
  /** Body of the provider's answer. */
  readonly raw: Json
  readonly rateLimit: SuccessOutcome['rateLimit']
  /** The entry of the call in the request log, without steps and expansions; undefined where nothing is logged. */
  readonly logId: SuccessOutcome['logId']
}
