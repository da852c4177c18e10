import type { DotPath, Json } from '../base/index.ts'
import type { JsonTemplate, TextTemplate, UrlTemplate } from '../expressions/index.ts'
import type {
  Authorize,
  BodyFormat,
  CredentialPlan,
  Pagination,
  QueryArrayFormat,
  ResponseFormat,
  TokenRules,
} from '../formats/index.ts'

/** Plans by name. Each is compiled when it is first read, so that a large definition costs what is used of it. */
type PlansByName<Item> = Pick<ReadonlyMap<string, Item>, 'get' | 'has' | 'size'> & { keys(): Iterable<string> }

/** A definition ready to be called: everything parsed, tokenised and decided that does not depend on the call. */
export interface Plan {
  /** Resource → method. */
  readonly resources: ReadonlyMap<string, PlansByName<MethodPlan>>
  /** Calls to paths that the definition does not describe: its address, headers, authorization and error rules. */
  readonly passthrough: MethodPlan
  /** Ways of connecting an account, in the order in which they are written. */
  readonly credentials: readonly ConnectPlan[]
  readonly actions: PlansByName<ActionPlan>
  /** Credential material that is written out in the definition; whoever shows something of a call masks it. */
  readonly secrets: readonly string[]
}

/** One way of connecting an account. */
export interface ConnectPlan extends Omit<CredentialPlan, 'verification' | 'token'> {
  readonly label: string | undefined
  /** A request that must succeed before the account counts as connected. */
  readonly verification: MethodPlan | undefined
  /** How tokens are had and kept; absent where the collected fields are all there is. */
  readonly token: TokenRules<MethodPlan> | undefined
  /** Names of collected fields whose values the definition puts into headers as they are. */
  readonly sentInHeaders: ReadonlySet<string>
}

/** One callable method with the precedence integration ← method already applied. */
export interface MethodPlan {
  readonly resource: string
  readonly method: string
  /** HTTP method, upper case. */
  readonly verb: string
  /** The result is a list of records. */
  readonly isList: boolean
  /** Changes something upstream; refused for sandbox accounts. Every method but `list` and `get`. */
  readonly isWrite: boolean
  /** Absent when neither method nor integration name a base address. */
  readonly url: UrlTemplate | undefined
  readonly headers: readonly NamedTemplate[]
  readonly query: readonly NamedJsonTemplate[]
  readonly queryArrayFormat: QueryArrayFormat
  readonly body: JsonTemplate | undefined
  readonly bodyFormat: BodyFormat
  /** Absent: chosen by the content type of the answer. */
  readonly responseFormat: ResponseFormat | undefined
  /** What the definition places itself and is therefore not passed on as it is. */
  readonly consumed: ConsumedParams
  readonly authorize: Authorize
  readonly pagination: Pagination | undefined
  readonly rateLimit: RateLimitRules
  readonly errorExpression: string | undefined
  readonly retry: RetryRules
  /** For one request, until its answer is whole. */
  readonly timeoutMs: number
  /** Requests per window that may be made, counted together with others. */
  readonly budgets: readonly BudgetRule[]
  /** Calls of one account that may be in flight at once. */
  readonly concurrencyMax: number | undefined
  readonly responsePath: ResponsePath | undefined
  /** Where a record's identifier is. */
  readonly idPath: DotPath
  /** What an answer looks like, where the definition gives an example. */
  readonly exampleResponse: Json | undefined
  /** What its templates read of parent records: paths below the root `resources`. */
  readonly parentPaths: readonly DotPath[]
}

/** A header: lower-case name and value. */
export interface NamedTemplate {
  readonly name: string
  readonly value: TextTemplate
}

interface NamedJsonTemplate {
  readonly name: string
  readonly value: JsonTemplate
}

/**
 * Names of the caller's query parameters and body fields that templates of the method read.
 *
 * `{{query.owner}}` in a path, say, means that `owner` has found its place: it is not sent as a query parameter as well.
 */
export interface ConsumedParams {
  readonly query: ReadonlySet<string>
  readonly body: ReadonlySet<string>
  /** `{{query}}` as a whole is read. */
  readonly isQueryConsumed: boolean
  /** `{{body}}` as a whole is read. */
  readonly isBodyConsumed: boolean
}

/** JSONata where the definition gives some; absent: the default rule. */
export interface RateLimitRules {
  readonly isRateLimited: string | undefined
  readonly retryAfter: string | undefined
  readonly rateLimit: string | undefined
}

/** When a failed request is sent again. */
export interface RetryRules {
  readonly attemptsMax: number
  readonly elapsedMaxMs: number
  readonly baseMs: number
  readonly factor: number
  readonly waitMaxMs: number
  /** Methods that are not idempotent are repeated too. */
  readonly isUnsafeAllowed: boolean
}

/** At most `limit` requests in any stretch of `windowMs`. */
export interface BudgetRule {
  /** Methods whose rule has the same key count together; it changes with the rule. */
  readonly key: string
  readonly limit: number
  readonly windowMs: number
  /** What shares the count: one account, all accounts of a tenant, or all of an installation. */
  readonly scope: 'account' | 'tenant' | 'integration'
}

/** Where the result is in a body. */
export type ResponsePath =
  | { readonly kind: 'path'; readonly steps: DotPath }
  | {
      readonly kind: 'expression'
      readonly text: string
      /** Of the list that it filters, where it does. */
      readonly source: string | undefined
    }

/** A named action, ready to run. */
export interface ActionPlan {
  readonly name: string
  readonly steps: readonly StepPlan[]
  /** One of its requests may change something upstream: it is neither GET, HEAD nor OPTIONS. */
  readonly isWrite: boolean
  /** What its templates read of parent records: paths below the root `resources`. */
  readonly parentPaths: readonly DotPath[]
}

export type StepPlan = RequestStepPlan | TransformStepPlan | UpdateContextStepPlan | FormStepPlan

interface AnyStepPlan {
  /** `$steps.<name>`; unique in the action. */
  readonly name: string
  /** JSONata; absent: the step always runs. */
  readonly runIf: string | undefined
}

/** Sends one request. What the caller gave reaches it only where its templates read it. */
interface RequestStepPlan extends AnyStepPlan {
  readonly type: 'request'
  readonly request: MethodPlan
}

interface TransformStepPlan extends AnyStepPlan {
  readonly type: 'transform'
  readonly expression: string
}

interface UpdateContextStepPlan extends AnyStepPlan {
  readonly type: 'update_context'
  readonly patch: ContextSource
}

/** Asks a person; nothing that runs without one can act on it. */
interface FormStepPlan extends AnyStepPlan {
  readonly type: 'form'
}

/** Where the keys of an `update_context` come from. */
export type ContextSource =
  | { readonly kind: 'previous' }
  | { readonly kind: 'expression'; readonly text: string }
  | { readonly kind: 'template'; readonly template: JsonTemplate }
