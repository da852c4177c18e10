import { create, type DescMessage, type Message, toBinary, toJson } from '@bufbuild/protobuf'
import { StructSchema, ValueSchema } from '@bufbuild/protobuf/wkt'
import {
  BadRequestSchema,
  ErrorInfoSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from '../../../../gen/google/rpc/error_details_pb.ts'
import { FAILURE_REASONS, Failure, type StatusCode, type Violation } from '../../../foundation/base/index.ts'
import type { Json } from '../../../foundation/json/index.ts'
import { describeError, summariseError } from '../../../foundation/telemetry/index.ts'
import type { Exchange } from '../exchange.ts'
import { JsonValue } from '../messages/free-form.ts'
import { fitsMessage, valueFrom } from '../messages/struct.ts'
import type { RequestContext } from '../request-context.ts'

/** The forms of a status code: number (gRPC), word (Connect), HTTP status (Connect and REST). */
interface StatusNames {
  readonly grpc: number
  readonly connect: string
  readonly http: number
}

/** Source of the numbers and HTTP statuses: google.rpc.Code and the Connect protocol, which agree. */
const STATUS_NAMES: Readonly<Record<StatusCode, StatusNames>> = {
  CANCELLED: { grpc: 1, connect: 'canceled', http: 499 },
  INVALID_ARGUMENT: { grpc: 3, connect: 'invalid_argument', http: 400 },
  DEADLINE_EXCEEDED: { grpc: 4, connect: 'deadline_exceeded', http: 504 },
  NOT_FOUND: { grpc: 5, connect: 'not_found', http: 404 },
  ALREADY_EXISTS: { grpc: 6, connect: 'already_exists', http: 409 },
  PERMISSION_DENIED: { grpc: 7, connect: 'permission_denied', http: 403 },
  RESOURCE_EXHAUSTED: { grpc: 8, connect: 'resource_exhausted', http: 429 },
  FAILED_PRECONDITION: { grpc: 9, connect: 'failed_precondition', http: 400 },
  ABORTED: { grpc: 10, connect: 'aborted', http: 409 },
  UNIMPLEMENTED: { grpc: 12, connect: 'unimplemented', http: 501 },
  INTERNAL: { grpc: 13, connect: 'internal', http: 500 },
  UNAVAILABLE: { grpc: 14, connect: 'unavailable', http: 503 },
  UNAUTHENTICATED: { grpc: 16, connect: 'unauthenticated', http: 401 },
}

/** The number in `grpc-status`. */
export function grpcCode({ code }: Failure): number {
  return STATUS_NAMES[code].grpc
}

/** The word in `code` of Connect's error JSON. */
export function connectCode({ code }: Failure): string {
  return STATUS_NAMES[code].connect
}

/**
 * The HTTP status of a Connect error: the one that the protocol prescribes for the code, except that a mistake of the client is
 * never a 5xx; then the status of the reason.
 */
export function connectStatus({ reason, code }: Failure): number {
  const prescribed = STATUS_NAMES[code].http
  const entry = FAILURE_REASONS[reason]
  return prescribed >= 500 && 'http' in entry && entry.http < 500 ? entry.http : prescribed
}

/** The HTTP status of a REST error: the failure's own, else the reason's, else the code's. */
export function restStatus({ reason, code, httpStatus }: Failure): number {
  if (httpStatus !== undefined) return httpStatus
  const entry = FAILURE_REASONS[reason]
  return 'http' in entry ? entry.http : STATUS_NAMES[code].http
}

/** The namespace of the reasons in `google.rpc.ErrorInfo`. */
const DOMAIN = 'patchbay'

/** Retry delay of an overload or an outage that has none of its own. */
const RETRY_AFTER_DEFAULT_SECONDS = 1

/** One error detail: a message and its type. */
export interface FailureDetail {
  readonly desc: DescMessage
  readonly message: Message
}

/**
 * The error details of RPC protocols: those of every protocol, the result of the definition's error expression as a
 * `google.protobuf.Struct` with the key `result`, and the upstream's answer as a `google.protobuf.Value`.
 *
 * @param bytesMax limit of the details; only the first violations are included, a larger answer is left out
 */
export function rpcDetails(failure: Failure, bytesMax = Number.POSITIVE_INFINITY): readonly FailureDetail[] {
  const details = failureDetails(failure, bytesMax)
  const { raw, result } = failure
  const given: FailureDetail[] = []
  if (result !== undefined && fits(result, bytesMax))
    given.push({ desc: StructSchema, message: create(StructSchema, { fields: { result: valueFrom(result) } }) })
  if (raw !== undefined && fits(raw, bytesMax)) given.push({ desc: ValueSchema, message: valueFrom(raw) })
  return [...details, ...given]
}

function fits(value: Json, bytesMax: number): boolean {
  return fitsMessage(value) && Buffer.byteLength(JSON.stringify(value)) <= bytesMax
}

/**
 * The `google.rpc` details of a failure, the same on every protocol: ErrorInfo always and once, the others where they apply.
 *
 * @param violationsBytesMax limit of the violations; beyond it only the first are included, and the metadata has their number
 */
export function failureDetails(
  failure: Failure,
  violationsBytesMax = Number.POSITIVE_INFINITY,
): readonly FailureDetail[] {
  const { reason, resource } = failure
  const violations = fitting(failure.violations, violationsBytesMax)
  const isCut = violations.length < failure.violations.length
  const metadata = isCut ? { ...failure.metadata, violations: String(failure.violations.length) } : failure.metadata
  const details = [detail(ErrorInfoSchema, { reason, domain: DOMAIN, metadata })]
  if (violations.length > 0)
    details.push(
      detail(BadRequestSchema, {
        fieldViolations: violations.map(({ field, description, rule }) => ({ field, description, reason: rule })),
      }),
    )
  if (resource !== undefined)
    details.push(detail(ResourceInfoSchema, { resourceType: resource.type, resourceName: resource.id }))
  const seconds = retryAfterSeconds(failure)
  if (seconds !== undefined) details.push(detail(RetryInfoSchema, { retryDelay: delayOf(seconds) }))
  return details
}

/** Seconds until the client should retry; absent when a retry does not help. */
function retryAfterSeconds(failure: Failure): number | undefined {
  if (failure.retryAfterSeconds !== undefined) return failure.retryAfterSeconds
  const status = restStatus(failure)
  return status === 429 || status === 503 ? RETRY_AFTER_DEFAULT_SECONDS : undefined
}

/** Response headers that go with a failure on every protocol. */
export function failureHeaders(failure: Failure): Readonly<Record<string, string>> {
  if (failure.code === 'UNAUTHENTICATED') return { 'www-authenticate': 'Bearer' }
  const seconds = retryAfterSeconds(failure)
  return { ...failure.headers, ...(seconds === undefined ? {} : { 'retry-after': String(Math.ceil(seconds)) }) }
}

/** The detail as JSON with the field names of the contract. */
export function detailJson({ desc, message }: FailureDetail): unknown {
  if (message instanceof JsonValue) return message.json
  return toJson(desc, message, { useProtoFieldName: true, alwaysEmitImplicit: true })
}

/** The detail in protobuf encoding. */
export function detailBytes({ desc, message }: FailureDetail): Uint8Array {
  return toBinary(desc, message)
}

/** Tags and lengths of one violation in protobuf encoding. */
const VIOLATION_OVERHEAD_BYTES = 12

function fitting(violations: readonly Violation[], bytesMax: number): readonly Violation[] {
  let bytes = 0
  const end = violations.findIndex(({ field, description, rule }) => {
    bytes += Buffer.byteLength(field + description + rule) + VIOLATION_OVERHEAD_BYTES
    return bytes > bytesMax
  })
  return end === -1 ? violations : violations.slice(0, end)
}

function detail<Desc extends DescMessage>(desc: Desc, init: Parameters<typeof create<Desc>>[1]): FailureDetail {
  return { desc, message: create(desc, init) }
}

function delayOf(seconds: number): { seconds: bigint; nanos: number } {
  const whole = Math.floor(seconds)
  return { seconds: BigInt(whole), nanos: Math.round((seconds - whole) * 1e9) }
}

/**
 * Maps anything thrown to the failure that is sent: failures as they are, known errors of other layers by
 * `translateError`, everything else is a bug, logged and sent as "internal error".
 *
 * The log does not get what an upstream answered: it may quote what it was sent.
 */
export function toFailure(
  { server, context, operationPath }: Pick<Exchange, 'server' | 'context' | 'operationPath'>,
  error: unknown,
): Failure {
  const { logger, translateError } = server
  const failure = error instanceof Failure ? error : (translateError?.(error) ?? internal(error))
  const fields = {
    request_id: context.requestId,
    operation: operationPath,
    ...context.logFields,
    reason: failure.reason,
  }
  if (restStatus(failure) === 500)
    logger.error({ ...fields, ...describeError(failure.cause ?? failure) }, 'call failed')
  else if (restStatus(failure) > 500 && failure.reason !== 'UPSTREAM_ERROR')
    logger.warn({ ...fields, ...summariseError(failure) }, 'call failed')
  else logger.debug(fields, 'call rejected')
  return failure
}

function internal(cause: unknown): Failure {
  return new Failure('INTERNAL', 'internal error', { cause })
}

/** The value of `Allow`: HEAD goes where GET goes, OPTIONS everywhere (RFC 9110, 10.2.1). */
export function allowHeader(verbs: readonly string[]): string {
  return [...new Set([...verbs, ...(verbs.includes('GET') ? ['HEAD'] : []), 'OPTIONS'])].sort().join(', ')
}

/** The failure for a verb that a path does not take; the verbs it takes are in the message and in the header `Allow`. */
export function methodNotAllowed(context: RequestContext, verbs: readonly string[], detail = ''): Failure {
  context.setHeader('allow', allowHeader(verbs))
  return new Failure('METHOD_NOT_ALLOWED', `this path takes ${verbs.join(', ')}${detail}`)
}
