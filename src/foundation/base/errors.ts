import type { Json } from '../json/json.ts'

/**
 * The expected error: the one type that a module throws on purpose.
 *
 * It names a reason of the public catalogue (`ErrorReason` in the contract); the API maps the reason to a
 * gRPC code, an HTTP status and error details. Anything else that is thrown is a bug and becomes INTERNAL there.
 */
export class Failure extends Error {
  readonly reason: FailureReason
  /** Shown to the caller: safe, and says what to do. */
  readonly publicMessage: string
  /** Machine-readable facts for `google.rpc.ErrorInfo.metadata`. */
  readonly metadata: Readonly<Record<string, string>>
  /** Every offending field, for INVALID_ARGUMENT. */
  readonly violations: readonly Violation[]
  /** The thing that is missing, taken or in use. */
  readonly resource: ResourceRef | undefined
  /** Lower bound for the next attempt, seconds; absent when retrying does not help. */
  readonly retryAfterSeconds: number | undefined
  /** HTTP status of this one error over REST, instead of its reason's. */
  readonly httpStatus: number | undefined
  /** What a third party answered, for a caller who asked to see it. */
  readonly raw: Json | undefined
  /** What a definition tells the caller of a third party's error: a value, and headers of the answer by lower-case name. */
  readonly result: Json | undefined
  readonly headers: Readonly<Record<string, string>>
  /** The same request fails the same way, although the reason is a transient one: the answer is too large, for example. */
  readonly isPermanent: boolean

  constructor(reason: FailureReason, publicMessage: string, details: FailureDetails = {}) {
    super(`${reason}: ${publicMessage}`, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'Failure'
    this.reason = reason
    this.publicMessage = publicMessage
    this.metadata = details.metadata ?? {}
    this.violations = details.violations ?? []
    this.resource = details.resource
    this.retryAfterSeconds = details.retryAfterSeconds
    this.httpStatus = details.httpStatus
    this.raw = details.raw
    this.result = details.result
    this.headers = details.headers ?? {}
    this.isPermanent = details.isPermanent ?? false
  }

  /** The same failure with further facts; those that it has win. */
  withMetadata(facts: Readonly<Record<string, string>>): Failure {
    const metadata = { ...facts, ...this.metadata }
    const copy = new Failure(this.reason, this.publicMessage, { ...this, metadata, cause: this.cause })
    if (this.stack !== undefined) copy.stack = this.stack
    return copy
  }

  /** The gRPC status code of the reason. */
  get code(): StatusCode {
    return FAILURE_REASONS[this.reason].code
  }
}

/** Turns a thrown Failure into a value. */
export async function catchFailure<Result>(work: () => Promise<Result>): Promise<Result | Failure> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

/** Optional details of a `Failure`. */
export interface FailureDetails {
  readonly metadata?: Readonly<Record<string, string>>
  readonly violations?: readonly Violation[]
  readonly resource?: ResourceRef | undefined
  readonly retryAfterSeconds?: number | undefined
  readonly httpStatus?: number | undefined
  readonly raw?: Json | undefined
  readonly result?: Json | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly isPermanent?: boolean
  /** Evidence for the log; never shown. */
  readonly cause?: unknown
}

/** One offending field: its path in the request (`override.base_url`, `resources[2].depends_on`), what is wrong, and the rule. */
export interface Violation {
  readonly field: string
  readonly description: string
  /** Stable rule id, e.g. `string.uuid`, `unknown_field`, `cron.field_count`. */
  readonly rule: string
}

/** Names a resource by type (the contract's noun, e.g. `environment_integration`) and id. */
export interface ResourceRef {
  readonly type: string
  readonly id: string
}

/** The subset of gRPC status codes the product answers with. */
export type StatusCode =
  | 'CANCELLED'
  | 'INVALID_ARGUMENT'
  | 'DEADLINE_EXCEEDED'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'PERMISSION_DENIED'
  | 'RESOURCE_EXHAUSTED'
  | 'FAILED_PRECONDITION'
  | 'ABORTED'
  | 'UNIMPLEMENTED'
  | 'INTERNAL'
  | 'UNAVAILABLE'
  | 'UNAUTHENTICATED'

/**
 * The catalogue of reasons: code, and the REST status where it differs from the code's usual one.
 *
 * `proto/patchbay/v1/error_reason.proto` is the public form of this table; `test/laws/error-reason.test.ts`
 * fails when the two differ.
 */
export const FAILURE_REASONS = {
  // The caller's request is wrong.
  INVALID_FIELD: { code: 'INVALID_ARGUMENT' },
  MALFORMED_BODY: { code: 'INVALID_ARGUMENT' },
  ENVIRONMENT_REQUIRED: { code: 'INVALID_ARGUMENT' },
  PAGE_TOKEN_INVALID: { code: 'INVALID_ARGUMENT' },
  ETAG_REQUIRED: { code: 'INVALID_ARGUMENT' },
  CONTEXT_KEY_RESERVED: { code: 'INVALID_ARGUMENT' },
  CREDENTIALS_INVALID: { code: 'INVALID_ARGUMENT' },
  SECRET_MASKED: { code: 'INVALID_ARGUMENT' },
  DESTINATION_CONFLICT: { code: 'INVALID_ARGUMENT' },
  DESTINATION_REQUIRED: { code: 'INVALID_ARGUMENT' },
  WEBHOOK_NOT_FOUND: { code: 'INVALID_ARGUMENT' },
  CRON_EXPRESSION_INVALID: { code: 'INVALID_ARGUMENT' },
  RESOURCES_INVALID: { code: 'INVALID_ARGUMENT' },
  ARGS_INVALID: { code: 'INVALID_ARGUMENT' },
  URL_NOT_ALLOWED: { code: 'INVALID_ARGUMENT' },
  REQUEST_TOO_LARGE: { code: 'RESOURCE_EXHAUSTED', http: 413 },
  UNSUPPORTED_MEDIA_TYPE: { code: 'INVALID_ARGUMENT', http: 415 },
  COMPRESSION_UNSUPPORTED: { code: 'UNIMPLEMENTED', http: 415 },
  COMPRESSION_UNDECLARED: { code: 'INTERNAL', http: 400 },
  REQUEST_CARDINALITY: { code: 'UNIMPLEMENTED', http: 400 },
  ROUTE_NOT_FOUND: { code: 'UNIMPLEMENTED', http: 404 },
  METHOD_NOT_ALLOWED: { code: 'UNIMPLEMENTED', http: 405 },
  // The caller may not, or not now.
  TOKEN_MISSING: { code: 'UNAUTHENTICATED' },
  TOKEN_INVALID: { code: 'UNAUTHENTICATED' },
  TEAM_TOKEN_REQUIRED: { code: 'PERMISSION_DENIED' },
  SCOPE_REQUIRED: { code: 'PERMISSION_DENIED' },
  ACCESS_TOKENS_DISABLED: { code: 'PERMISSION_DENIED' },
  OPERATOR_TEAM_REQUIRED: { code: 'PERMISSION_DENIED' },
  ORIGIN_NOT_ALLOWED: { code: 'PERMISSION_DENIED' },
  RESOURCE_NOT_FOUND: { code: 'NOT_FOUND' },
  ALREADY_INSTALLED: { code: 'ALREADY_EXISTS' },
  NAME_TAKEN: { code: 'ALREADY_EXISTS' },
  INTEGRATION_GRANT_REQUIRED: { code: 'FAILED_PRECONDITION' },
  INTEGRATION_DISABLED: { code: 'FAILED_PRECONDITION' },
  RESOURCE_IN_USE: { code: 'FAILED_PRECONDITION' },
  LIMIT_REACHED: { code: 'FAILED_PRECONDITION' },
  SANDBOX_ACCOUNT_READ_ONLY: { code: 'FAILED_PRECONDITION', http: 405 },
  ACCOUNT_NOT_ACTIVE: { code: 'FAILED_PRECONDITION' },
  ACCOUNT_STATUS_CONFLICT: { code: 'FAILED_PRECONDITION' },
  CONTEXT_OBJECT_MISSING: { code: 'FAILED_PRECONDITION' },
  RUN_STATE_CONFLICT: { code: 'FAILED_PRECONDITION' },
  ANSWER_TOO_LARGE: { code: 'RESOURCE_EXHAUSTED', http: 413 },
  GROUP_FULL: { code: 'RESOURCE_EXHAUSTED' },
  IDEMPOTENCY_KEY_REUSED: { code: 'ABORTED' },
  ETAG_MISMATCH: { code: 'ABORTED' },
  LEASE_LOST: { code: 'ABORTED' },
  RATE_LIMITED: { code: 'RESOURCE_EXHAUSTED' },
  WEBHOOK_INACTIVE: { code: 'FAILED_PRECONDITION' },
  WEBHOOK_REFUSED: { code: 'FAILED_PRECONDITION' },
  // The definition is wrong.
  DEFINITION_INVALID: { code: 'INVALID_ARGUMENT' },
  METHOD_NOT_DEFINED: { code: 'FAILED_PRECONDITION' },
  UNIFIED_NOT_MAPPED: { code: 'FAILED_PRECONDITION' },
  PLACEHOLDER_UNRESOLVED: { code: 'FAILED_PRECONDITION' },
  EXPRESSION_FAILED: { code: 'FAILED_PRECONDITION' },
  EXPRESSION_QUARANTINED: { code: 'FAILED_PRECONDITION' },
  PAGINATION_LOOP: { code: 'FAILED_PRECONDITION' },
  PAGINATION_ORIGIN: { code: 'FAILED_PRECONDITION' },
  EGRESS_BLOCKED: { code: 'FAILED_PRECONDITION' },
  // The upstream failed.
  UPSTREAM_ERROR: { code: 'FAILED_PRECONDITION', http: 502 },
  UPSTREAM_RATE_LIMITED: { code: 'RESOURCE_EXHAUSTED' },
  BUDGET_EXHAUSTED: { code: 'RESOURCE_EXHAUSTED' },
  UPSTREAM_UNREACHABLE: { code: 'UNAVAILABLE' },
  UPSTREAM_INVALID_RESPONSE: { code: 'UNAVAILABLE', http: 502 },
  TOKEN_REQUEST_FAILED: { code: 'UNAVAILABLE', http: 502 },
  ACTION_FAILED: { code: 'FAILED_PRECONDITION' },
  // We failed.
  DEADLINE_EXCEEDED: { code: 'DEADLINE_EXCEEDED' },
  REQUEST_STALLED: { code: 'DEADLINE_EXCEEDED', http: 408 },
  CANCELLED: { code: 'CANCELLED' },
  SHUTTING_DOWN: { code: 'UNAVAILABLE' },
  DATABASE_UNAVAILABLE: { code: 'UNAVAILABLE' },
  DATABASE_OVERLOADED: { code: 'UNAVAILABLE' },
  DATABASE_DISK_FULL: { code: 'UNAVAILABLE' },
  DATABASE_READ_ONLY: { code: 'UNAVAILABLE' },
  DATABASE_ACCESS_DENIED: { code: 'UNAVAILABLE' },
  DATABASE_DAMAGED: { code: 'UNAVAILABLE' },
  OBJECT_STORE_UNAVAILABLE: { code: 'UNAVAILABLE' },
  SECRET_UNREADABLE: { code: 'INTERNAL' },
  INTERNAL: { code: 'INTERNAL' },
} as const satisfies Record<string, { readonly code: StatusCode; readonly http?: number }>

export type FailureReason = keyof typeof FAILURE_REASONS

/** Conditions of the database, under which every call fails. */
export const DATABASE_REASONS = [
  'DATABASE_UNAVAILABLE',
  'DATABASE_OVERLOADED',
  'DATABASE_DISK_FULL',
  'DATABASE_READ_ONLY',
  'DATABASE_ACCESS_DENIED',
  'DATABASE_DAMAGED',
] as const satisfies readonly FailureReason[]

/** Reasons that say nothing about the request, account or integration: a later attempt may succeed. */
const TRANSIENT_REASONS = [
  ...DATABASE_REASONS,
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_INVALID_RESPONSE',
  'TOKEN_REQUEST_FAILED',
  'RATE_LIMITED',
  'DEADLINE_EXCEEDED',
  'CANCELLED',
  'OBJECT_STORE_UNAVAILABLE',
  'SHUTTING_DOWN',
  'INTERNAL',
] as const satisfies readonly FailureReason[]

/** A reason for which `isTransient` holds. */
export type TransientReason = (typeof TRANSIENT_REASONS)[number]

const TRANSIENT: ReadonlySet<FailureReason> = new Set(TRANSIENT_REASONS)

/** Whether the same request may succeed later although nothing is changed. */
export function isTransient({ reason, isPermanent }: Failure): boolean {
  return !isPermanent && TRANSIENT.has(reason)
}

/** Validation error: every invalid field of a request in one error. */
export function invalidFields(violations: readonly Violation[], reason: FailureReason = 'INVALID_FIELD'): Failure {
  const [first] = violations
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : ''
  const message = first ? `${first.field} ${first.description}${more}` : 'the request is not valid'
  return new Failure(reason, message, { violations })
}

/** Types that a team owns; all others belong to an environment. */
const TEAM_TYPES: ReadonlySet<string> = new Set([
  'team',
  'environment',
  'api_token',
  'integration',
  'integration_grant',
  'unified_model',
])

/** The same answer for an unknown id and for one of another environment or team (decision: never reveal which). */
export function notFound(type: string, id: string): Failure {
  const where = TEAM_TYPES.has(type) ? 'visible to this team' : 'in this environment'
  return new Failure('RESOURCE_NOT_FOUND', `no ${type} with id ${id} ${where}`, { resource: { type, id } })
}

/** What helps an account that is not active, by its status. */
const ACCOUNT_ADVICE: Readonly<Record<string, string>> = {
  connecting:
    'its steps are tried until they pass or fail; last_error says what they wait for, next_attempt_at how long',
  post_install_error: 'correct what last_error names, then repeat the steps with run-actions or give new credentials',
  validation_error: 'give new credentials, or correct what last_error names and repeat the steps with run-actions',
  needs_reauth: 'give new credentials; last_error says why the present ones are rejected',
}

/** Error for an operation that needs an active account. @param id absent where it is not known */
export function accountNotActive(status: string, id?: string): Failure {
  const message = `the account is ${status}, not active: ${ACCOUNT_ADVICE[status] ?? 'it has to be active first'}`
  const resource = id === undefined ? {} : { resource: { type: 'integrated_account', id } }
  return new Failure('ACCOUNT_NOT_ACTIVE', message, { ...resource, metadata: { status } })
}

/** Optimistic concurrency error: the etag that the caller sent is not the current one. */
export function etagMismatch(type: string, id: string): Failure {
  const message = `the ${type} has changed since it was read: read it again, then repeat the change`
  return new Failure('ETAG_MISMATCH', message, { resource: { type, id } })
}

/** Ends an exhaustive switch; reached only when a kind was added and a switch forgotten. */
export function assertNever(value: never): never {
  throw new Error(`unhandled case ${JSON.stringify(value)}`)
}
