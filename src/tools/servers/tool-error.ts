import type { RateLimitedOutcome, UpstreamErrorOutcome } from '../../engine/proxy/index.ts'
import type { Failure, FailureReason, Violation } from '../../foundation/base/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import type { ToolErrorType } from './tool.ts'
import { withoutControls } from './tool-schema.ts'

/** An error that a model can act on. */
export interface ToolError {
  readonly type: ToolErrorType
  /** HTTP status: of the third party where it answered, else what fits the type. */
  readonly status: number
  readonly message: string
  /** Of an error of this service. */
  readonly reason?: FailureReason | undefined
  readonly fields?: readonly Violation[] | undefined
  /** Seconds. */
  readonly retryAfterSeconds?: number | undefined
  /** The entry of the last request in the request log. */
  readonly logId?: string | undefined
  /** Where the customer connects the account again. */
  readonly connectUrl?: string | undefined
  /** The third party was asked for a list. */
  readonly isOfList?: boolean | undefined
}

const STATUS: Readonly<Record<ToolErrorType, number>> = {
  validation: 400,
  upstream: 502,
  rate_limited: 429,
  needs_reauth: 401,
  forbidden: 403,
  sandbox: 405,
  timeout: 504,
  cancelled: 499,
  internal: 500,
}

/** Types of failures that are thrown on the way to a third party; all others are `internal`. */
const TYPES: Readonly<Partial<Record<FailureReason, ToolErrorType>>> = {
  INVALID_FIELD: 'validation',
  ARGS_INVALID: 'validation',
  PLACEHOLDER_UNRESOLVED: 'validation',
  PAGE_TOKEN_INVALID: 'validation',
  METHOD_NOT_DEFINED: 'validation',
  RESOURCE_NOT_FOUND: 'validation',
  UNIFIED_NOT_MAPPED: 'validation',
  SANDBOX_ACCOUNT_READ_ONLY: 'sandbox',
  METHOD_NOT_ALLOWED: 'forbidden',
  RATE_LIMITED: 'rate_limited',
  UPSTREAM_RATE_LIMITED: 'rate_limited',
  BUDGET_EXHAUSTED: 'rate_limited',
  ACCOUNT_NOT_ACTIVE: 'needs_reauth',
  CREDENTIALS_INVALID: 'needs_reauth',
  INTEGRATION_DISABLED: 'forbidden',
  DEADLINE_EXCEEDED: 'timeout',
  CANCELLED: 'cancelled',
  SHUTTING_DOWN: 'cancelled',
  UPSTREAM_ERROR: 'upstream',
  UPSTREAM_UNREACHABLE: 'upstream',
  UPSTREAM_INVALID_RESPONSE: 'upstream',
  TOKEN_REQUEST_FAILED: 'upstream',
  ACTION_FAILED: 'upstream',
}

/** An error of a type with its usual status. */
export function toolError(
  type: ToolErrorType,
  message: string,
  details: Partial<Omit<ToolError, 'type' | 'message'>> = {},
): ToolError {
  return { type, status: STATUS[type], message, ...details }
}

/** The error for a failure that was thrown. What is a defect of the service says no more than that. */
export function errorOfFailure(failure: Failure): ToolError {
  const type = TYPES[failure.reason] ?? 'internal'
  const { violations, retryAfterSeconds } = failure
  return toolError(type, failure.publicMessage, {
    ...logIdOf(failure.metadata.log_id),
    ...(violations.length === 0 ? {} : { fields: violations.map(violationForTools) }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  })
}

function logIdOf(logId: string | undefined): { readonly logId?: string } {
  return logId === undefined ? {} : { logId }
}

function violationForTools(violation: Violation): Violation {
  return { ...violation, description: adviceForTools(violation.description) }
}

/** A message of a unified call without the advice to use `remote_fields`, which no tool takes. */
export function adviceForTools(message: string): string {
  return message.replace(/; use remote_fields\b.*$/, '')
}

/** The error for what a third party answered. */
export function errorOfOutcome(outcome: UpstreamErrorOutcome | RateLimitedOutcome, isOfList: boolean): ToolError {
  if (outcome.kind === 'rate_limited') {
    const retryAfterSeconds = Math.ceil(outcome.retryAfterSeconds)
    const source = outcome.limitedBy === 'budget' ? 'the request budget of the integration' : 'the third party'
    return toolError('rate_limited', `${source} asks to wait`, { retryAfterSeconds, ...logIdOf(outcome.logId) })
  }
  const { status, message, action, logId } = outcome
  if (action === 'needs_reauth' || action === 'refresh_token' || status === 401)
    return { type: 'needs_reauth', status, message, ...logIdOf(logId) }
  return { type: status === 403 ? 'forbidden' : 'upstream', status, message, isOfList, ...logIdOf(logId) }
}

/** The error as the structured result of a tool. */
export function errorToJson(error: ToolError): JsonObject {
  const { type, status, message, reason, fields, retryAfterSeconds, connectUrl, logId } = error
  // Text of third parties is data, and hides nothing from a reader.
  const json: Record<string, Json> = { type, status, message: withoutControls(message) }
  if (reason !== undefined) json.reason = reason
  if (fields !== undefined) json.fields = fields.map(({ field, description }) => ({ field, description }))
  if (retryAfterSeconds !== undefined) json.retry_after = retryAfterSeconds
  if (connectUrl !== undefined) json.connect_url = connectUrl
  if (logId !== undefined) json.log_id = logId
  return { error: json }
}

/** The error as a text that says what to change. */
export function errorToText(error: ToolError): string {
  const fields = (error.fields ?? []).map(({ field, description }) => `- ${field}: ${description}`)
  return [`${HEADLINES[error.type]}: ${withoutControls(error.message)}`, ...fields, adviceOf(error)].join('\n')
}

const HEADLINES: Readonly<Record<ToolErrorType, string>> = {
  validation: 'The arguments are not valid',
  upstream: 'The third party answered with an error',
  rate_limited: 'Too many requests',
  needs_reauth: 'The account has to be connected again',
  forbidden: 'This is not allowed',
  sandbox: 'This account is a sandbox',
  timeout: 'The third party took too long',
  cancelled: 'The call was cancelled',
  internal: 'The call failed',
}

function adviceOf({ type, status, retryAfterSeconds, connectUrl, isOfList = false }: ToolError): string {
  switch (type) {
    case 'validation':
      return 'Change these arguments and call the tool again.'
    case 'rate_limited':
      return retryAfterSeconds === undefined
        ? 'Wait before the next call.'
        : `Wait ${retryAfterSeconds} seconds before the next call.`
    case 'needs_reauth':
      return connectUrl === undefined
        ? 'Ask the person who owns the account to connect it again; until then every call fails.'
        : `Ask the person who owns the account to open ${connectUrl} and connect it again; until then every call fails.`
    case 'forbidden':
      return 'Do not repeat the call. Use another tool, or tell the user which permission is missing.'
    case 'sandbox':
      return 'A sandbox account can be read only. Use dry_run to see the request.'
    case 'timeout':
      return 'The call may have taken effect: read before you write again. For a list ask for a smaller limit.'
    case 'upstream':
      return upstreamAdvice(status, isOfList)
    case 'cancelled':
    case 'internal':
      return 'Call the tool again later.'
  }
}

function upstreamAdvice(status: number, isOfList: boolean): string {
  if (status === 404 && isOfList)
    return 'There is no such list, or the account may not see it: check the ids among the arguments.'
  if (status === 404)
    return 'The record does not exist, or the account may not see it: list the records to find its id.'
  if (status === 409) return 'The record was changed or exists already: read it and try again.'
  if (status >= 400 && status < 500) return 'Change the arguments as the message says and call the tool again.'
  return 'Call the tool again later.'
}
