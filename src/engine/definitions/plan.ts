import type { DotPath, Json } from '../../foundation/json/index.ts'
import type { JsonTemplate, TextTemplate } from '../expressions/template.ts'
import type { UrlTemplate } from '../expressions/url-template.ts'
import type { Authorize } from '../formats/authorization/authorization.ts'
import type { BodyFormat } from '../formats/body/body.ts'
import type { AuthorizationRules, CredentialPlan, Identity, TokenRules } from '../formats/credential/credential.ts'
import type { Field } from '../formats/credential/fields.ts'
import type { FormatChoice } from '../formats/format.ts'
import type { Pagination } from '../formats/pagination/paginator.ts'
import type { QueryArrayFormat } from '../formats/query-string.ts'
import type { AnswerRules } from '../formats/response/answer-outcome.ts'
import type { ResponseFormat } from '../formats/response/response.ts'
import type { ReadTime } from '../formats/signature/signed-content.ts'
import type { ReadValues } from '../formats/signature/source.ts'
import type { Verify } from '../formats/signature/verification.ts'
import type { WebhookAnswer } from './webhook-answer.ts'

/** Plans by name, compiled lazily: a large definition costs what is used of it. */
type PlansByName<Item> = Pick<ReadonlyMap<string, Item>, 'get' | 'has' | 'size'> & { keys(): Iterable<string> }

/** A compiled definition: everything is parsed and decided that does not depend on the call. */
export interface Plan {
  /** Resource → method. */
  readonly resources: ReadonlyMap<string, PlansByName<MethodPlan>>
  /** For calls to paths that the definition does not describe: base URL, headers, authorization and error rules. */
  readonly passthrough: MethodPlan
  /** Requests carry a secret of the account as it is, by the definition's own `authorization`; else they are signed. */
  readonly sendsSecret: boolean
  /** Ways of connecting an account, in the order of the definition. */
  readonly credentials: readonly ConnectPlan[]
  readonly actions: PlansByName<ActionPlan>
  /** Absent: the definition receives no webhooks. */
  readonly webhook: WebhookPlan | undefined
  /** How webhooks are ordered from the third party. Absent: not by requests. */
  readonly webhookSubscription: SubscriptionPlan | undefined
  /** Credential material that is written out in the definition; must be masked in everything that shows a call. */
  readonly secrets: readonly string[]
  /** Fields of a token response that authenticate requests, beside the token itself; see `listTokenFieldsSent`. */
  readonly tokenFieldsSent: ReadonlySet<string>
  /** Names of the account's values that decide a host without a limit; see `findOpenHostNames`. */
  readonly openHostNames: ReadonlySet<string>
  /** Fields of the forms for connected accounts. */
  readonly formFields: readonly FormFieldPlan[]
  /** Those of them that must have a value before an account is active. */
  readonly choicesBeforeActive: readonly FormFieldPlan[]
}

/** One way of connecting an account. */
export interface ConnectPlan extends Omit<CredentialPlan, 'verification' | 'token' | 'authorization' | 'identity'> {
  /** In the definition's `credentials`; of a single credential its format. */
  readonly key: string
  readonly label: string | undefined
  /** A request that must succeed before the account counts as connected. */
  readonly verification: MethodPlan | undefined
  /** How tokens are requested and refreshed; absent where the collected fields are the whole credential. */
  readonly token: TokenRules<MethodPlan> | undefined
  /** How the customer's consent is obtained; absent where connecting takes no redirect to the third party. */
  readonly authorization?: AuthorizationRules<MethodPlan>
  /** Names the customer's account at the third party; a reconnection must find the same one. */
  readonly identity?: Identity<MethodPlan>
  /** Names of collected fields whose values are sent in headers unchanged. */
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
  /** Changes something upstream; rejected for sandbox accounts. Default: every method but `list` and `get`. */
  readonly isWrite: boolean
  /** Absent when neither method nor integration has a base URL. */
  readonly url: UrlTemplate | undefined
  readonly headers: readonly NamedTemplate[]
  readonly query: readonly NamedJsonTemplate[]
  readonly queryArrayFormat: QueryArrayFormat
  readonly body: JsonTemplate | undefined
  readonly bodyFormat: BodyFormat
  /** Absent: chosen by the content type of the response. */
  readonly responseFormat: ResponseFormat | undefined
  /** What counts as a success although it says little. */
  readonly answers: AnswerRules
  /** The caller's parameters that templates consume: they are not forwarded. */
  readonly consumed: ConsumedParams
  readonly authorize: Authorize
  readonly pagination: Pagination | undefined
  readonly rateLimit: RateLimitRules
  readonly errorExpression: string | undefined
  readonly retry: RetryRules
  /** For one request, until its response is complete. */
  readonly timeoutMs: number
  /** Largest answer, decompressed. */
  readonly responseBytesMax: number
  /** Proactive rate limits: requests per window, counted by all processes together. */
  readonly budgets: readonly BudgetRule[]
  /** Most calls of one account in flight. */
  readonly concurrencyMax: number | undefined
  readonly responsePath: ResponsePath | undefined
  /** Path of a record's identifier. */
  readonly idPath: DotPath
  /** The definition's example of a response. */
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
 * The caller's query parameters and body fields that templates of the method read, by name.
 *
 * With `{{query.owner}}` in a path, `owner` is consumed: it is not sent as a query parameter as well.
 */
export interface ConsumedParams {
  readonly query: ReadonlySet<string>
  readonly body: ReadonlySet<string>
  /** `{{query}}` is read as a whole. */
  readonly isQueryConsumed: boolean
  /** `{{body}}` is read as a whole. */
  readonly isBodyConsumed: boolean
}

/** JSONata expressions of the definition; absent: the default rule. */
export interface RateLimitRules {
  readonly isRateLimited: string | undefined
  readonly retryAfter: string | undefined
  readonly rateLimit: string | undefined
}

/** Retry policy of one request. */
export interface RetryRules {
  readonly attemptsMax: number
  readonly elapsedMaxMs: number
  readonly baseMs: number
  readonly factor: number
  readonly waitMaxMs: number
  /** Also for methods that are not idempotent. */
  readonly isUnsafeAllowed: boolean
}

/** Sliding-window limit: at most `limit` requests in any `windowMs`. */
export interface BudgetRule {
  /** Methods whose rule has the same key share a counter; the key changes with the rule. */
  readonly key: string
  readonly limit: number
  readonly windowMs: number
  /** Who shares the counter: one account, all accounts of a tenant, or all of an installation. */
  readonly scope: 'account' | 'tenant' | 'integration'
}

/** Location of the result in a response body. */
export type ResponsePath =
  | { readonly kind: 'path'; readonly steps: DotPath }
  | {
      readonly kind: 'expression'
      readonly text: string
      /** Expression of the list that it filters, where it does. */
      readonly source: string | undefined
    }

/** A named action, ready to run. */
export interface ActionPlan {
  readonly name: string
  readonly steps: readonly StepPlan[]
  /** One of its requests may change something upstream: its HTTP method is not GET, HEAD or OPTIONS. */
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

/** Sends one request. Parameters of the caller are sent only where its templates read them. */
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

/** Asks a person; has no effect in a run without one. */
interface FormStepPlan extends AnyStepPlan {
  readonly type: 'form'
  readonly fields: readonly FormFieldPlan[]
  /** An account is not active before its required fields have a value. */
  readonly isBeforeActive: boolean
}

/** A field that the customer fills in once the account is connected. */
export interface FormFieldPlan extends Field {
  /** Names of fields before it that must have a value first. */
  readonly dependsOn: readonly string[]
  /** Where the options of a select are read; absent: they are part of the definition. */
  readonly remote: OptionsSource | undefined
}

/** Options of a select that are read from the third party. */
export interface OptionsSource {
  readonly resource: string
  readonly method: string
  /** Absent: the call has none. */
  readonly id: JsonTemplate | undefined
  readonly query: JsonTemplate
  readonly body: JsonTemplate | undefined
  /** Paths into a record. */
  readonly value: DotPath
  readonly label: DotPath | undefined
  readonly subText: DotPath | undefined
  /** The third party searches: the templates read `{{args.search}}`. */
  readonly isSearchable: boolean
  /** Shown while a field that this one depends on has no value. */
  readonly disabledText: string | undefined
  /** Shown when there is nothing to choose. */
  readonly emptyText: string | undefined
}

/** Source of the keys of an `update_context`. */
export type ContextSource =
  | { readonly kind: 'previous' }
  | { readonly kind: 'expression'; readonly text: string }
  | { readonly kind: 'template'; readonly template: JsonTemplate }

/** How inbound webhooks of a third party are handled: the `webhook` block of a definition, compiled. */
export interface WebhookPlan {
  readonly payloadTransform: TransformPlan | undefined
  /** Something that is decided before the answer, apart from the handshake, reads what the transform makes: it runs first. */
  readonly readsTransformed: boolean
  readonly handshake: HandshakePlan | undefined
  /** Absent: the definition does not authenticate requests. */
  readonly verify: Verify | undefined
  /** `signature_verification` as it is written. */
  readonly signature: FormatChoice | undefined
  /** `verify` reads the parsed body, or what the transform makes: without that nothing can be verified. */
  readonly verifiesPayload: boolean
  /** The bytes that `verify` reads of a compressed body: as sent, or decoded. */
  readonly bodyStage: 'raw' | 'decoded'
  /** Largest body as sent. */
  readonly bodyBytesMax: number
  /** Field of a form that holds the body as JSON. */
  readonly formJsonField: string | undefined
  /** JSONata over the payload that returns one event or a list. */
  readonly events: string | undefined
  readonly contextLookup: ContextLookup | undefined
  /** Absent: duplicates are not recognised. */
  readonly dedupe: DedupePlan | undefined
  /** To an accepted request. */
  readonly answer: WebhookAnswer
  readonly rateLimit: WebhookRate
  /** Keys of `update_context` that are stored encrypted. */
  readonly secretContext: ReadonlySet<string>
  /** Whether a handshake may ask for a request to this host, in lower case. */
  isVerificationHost(host: string): boolean
  readonly readProviderTime: ReadTime | undefined
}

/** The `webhook.subscription` block of a definition, compiled. */
export interface SubscriptionPlan {
  readonly actions: Readonly<Record<SubscriptionVerb, ActionPlan | undefined>>
  /** JSONata over {result, headers, context, subscription}. */
  readonly id: string
  readonly expires: string | undefined
  /** Absent: a share of the life. */
  readonly renewBeforeMs: number | undefined
  readonly secret: SubscriptionSecret | undefined
  /** JSONata over {context, subscription}; absent: always. */
  readonly when: string | undefined
  readonly events: readonly string[]
  /** One entry per subscription of an account: the event that it is for, or an empty text. */
  readonly keys: readonly string[]
  readonly scope: 'account' | 'installation'
}

/** An expression that transforms requests. */
export interface TransformPlan {
  /** JSONata over {body, headers, query, method, path}. */
  readonly expression: string
  /**
   * The members that it may return as those of a request, because it writes them as keys or returns its input. Without `body`
   * every result is the payload: a payload that happens to look like a request is none.
   */
  readonly members: ReadonlySet<RequestMember>
}

/** A handshake expression, and the only credentials that its input holds: those that it names. */
export interface HandshakePlan {
  readonly expression: string
  readonly credentialNames: readonly string[]
}

/** How the receiving account of an environment-level address is found. */
interface ContextLookup {
  /** JSONata over the payload. */
  readonly value: string
  /** Key of the accounts' context. */
  readonly field: string
}

/** How duplicates are recognised. */
export interface DedupePlan {
  /** Alternatives, the first with values wins; each is one id or several parts of one. */
  readonly keys: readonly (readonly ReadValues[])[]
  /** Of requests with an id. */
  readonly windowSeconds: number
  /** Of requests without one, which are recognised by their content. */
  readonly contentWindowSeconds: number
  /** The headers of the content, in lower case: those that anything in the definition reads, and what says how the body is read. */
  readonly headers: ReadonlySet<string> | 'all'
}

/** A token bucket. */
export interface WebhookRate {
  readonly requestsPerSecond: number
  readonly burst: number
}

/** The requests of a subscription. */
export const SUBSCRIPTION_VERBS = ['create', 'renew', 'delete', 'find'] as const

export type SubscriptionVerb = (typeof SUBSCRIPTION_VERBS)[number]

/** How the secret of a subscription comes about. */
export type SubscriptionSecret =
  | { readonly kind: 'generated'; readonly encoding: 'hex' | 'base64' }
  /** JSONata over the response to `create`. */
  | { readonly kind: 'response'; readonly expression: string }

/** Roots of expressions over a request: `body` is the parsed body, for all but `payload_transform` as that has made it. */
export const REQUEST_ROOTS = ['body', 'headers', 'query', 'method', 'path'] as const

export type RequestMember = (typeof REQUEST_ROOTS)[number]
