import { Code, ConnectError } from '@connectrpc/connect'
import {
  BadRequestSchema,
  ErrorInfoSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from '../../../gen/google/rpc/error_details_pb.ts'
import {
  DATABASE_REASONS,
  FAILURE_REASONS,
  Failure,
  type FailureReason,
  type Violation,
} from '../../foundation/base/index.ts'

/** The server cannot be reached, or cannot serve anything at the moment: the same call may succeed later. */
export class ServerUnavailable extends Error {
  /** Retry-After: the least wait that the server asks for, ms. */
  readonly afterMs: number

  constructor(message: string, afterMs: number, cause: unknown) {
    super(message, { cause })
    this.name = 'ServerUnavailable'
    this.afterMs = afterMs
  }
}

/** The server answered with an error outside the contract: a defect of it, or another kind of server at the address. */
export class UnexpectedAnswer extends Error {
  readonly code: Code

  constructor(error: ConnectError) {
    super(`the server answered ${Code[error.code]}: ${error.rawMessage}`, { cause: error })
    this.name = 'UnexpectedAnswer'
    this.code = error.code
  }
}

/** Reasons about the server instead of the request: the call is repeated, here or at another server. */
const UNAVAILABLE_REASONS: ReadonlySet<string> = new Set([
  'RATE_LIMITED',
  'REQUEST_STALLED',
  'SHUTTING_DOWN',
  ...DATABASE_REASONS,
])
/** Codes of answers without a reason that come from a wrong address, such as a proxy; any other is a broken connection. */
const WRONG_ADDRESS_CODES: ReadonlySet<Code> = new Set([
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.Unimplemented,
])
const NO_ACCESS_CODES: ReadonlySet<string> = new Set(['UNAUTHENTICATED', 'PERMISSION_DENIED'])

/**
 * Classifies the error of a call: `Failure` with the server's reason, `ServerUnavailable` or `UnexpectedAnswer`. An error
 * that is no answer to a call is returned unchanged.
 */
export function callErrorFrom(error: unknown): unknown {
  if (!(error instanceof ConnectError)) return error
  const info = error.findDetails(ErrorInfoSchema)[0]
  const retryAfterSeconds = retryAfterSecondsOf(error)
  const afterMs = (retryAfterSeconds ?? 0) * 1_000
  if (info === undefined) {
    if (WRONG_ADDRESS_CODES.has(error.code)) return new UnexpectedAnswer(error)
    return new ServerUnavailable(connectionErrorText(error), afterMs, error)
  }
  if (UNAVAILABLE_REASONS.has(info.reason)) return new ServerUnavailable(error.rawMessage, afterMs, error)
  if (!isContractReason(info.reason)) return new UnexpectedAnswer(error)
  return new Failure(info.reason, error.rawMessage, {
    metadata: info.metadata,
    violations: violationsOf(error),
    ...resourceOf(error),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    cause: error,
  })
}

/** The thing that is missing, taken or in use. */
function resourceOf(error: ConnectError): { readonly resource?: NonNullable<Failure['resource']> } {
  const found = error.findDetails(ResourceInfoSchema)[0]
  return found === undefined ? {} : { resource: { type: found.resourceType, id: found.resourceName } }
}

function violationsOf(error: ConnectError): readonly Violation[] {
  return error
    .findDetails(BadRequestSchema)
    .flatMap(({ fieldViolations }) => fieldViolations)
    .map(({ field, description, reason }) => ({ field, description, rule: reason }))
}

/** Tells whether the server rejects every call of this client: the token or the address is wrong. */
export function isAccessDenied(error: unknown): boolean {
  if (error instanceof Failure) return NO_ACCESS_CODES.has(error.code) || error.reason === 'ENVIRONMENT_REQUIRED'
  return error instanceof UnexpectedAnswer && WRONG_ADDRESS_CODES.has(error.code)
}

/** Tells whether the error has this reason. */
export function hasReason(error: unknown, reason: FailureReason): error is Failure {
  return error instanceof Failure && error.reason === reason
}

function retryAfterSecondsOf(error: ConnectError): number | undefined {
  const delay = error.findDetails(RetryInfoSchema)[0]?.retryDelay
  return delay === undefined ? undefined : Number(delay.seconds) + delay.nanos / 1e9
}

/** Node's message names the address; Connect's adds nothing to it. An error in JSON of another shape has no message at all. */
function connectionErrorText({ cause, rawMessage, code }: ConnectError): string {
  if (cause instanceof AggregateError) return cause.errors.map((each) => String(each?.message ?? each)).join(', ')
  const text = cause instanceof Error && cause.message !== '' ? cause.message : rawMessage
  return text === '' ? `it answered with an error without a message (${Code[code]})` : text
}

/** INTERNAL is a defect of the server: it says nothing about the request. */
function isContractReason(reason: string): reason is FailureReason {
  return reason !== 'INTERNAL' && Object.hasOwn(FAILURE_REASONS, reason)
}
