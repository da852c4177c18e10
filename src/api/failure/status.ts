import { FAILURE_REASONS, type Failure, type StatusCode } from '../../base/index.ts'

/** A status code as the three protocols spell it: number (gRPC), word (Connect), HTTP status (Connect and REST). */
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
 * The HTTP status the Connect protocol prescribes for the code; its clients read the word in the body. Where that would blame
 * this server for a client's mistake, the status of the reason.
 */
export function connectStatus({ reason, code }: Failure): number {
  const prescribed = STATUS_NAMES[code].http
  const entry = FAILURE_REASONS[reason]
  return prescribed >= 500 && 'http' in entry && entry.http < 500 ? entry.http : prescribed
}

/** The HTTP status of a REST answer: the failure's own, else the reason's, else the code's. */
export function restStatus({ reason, code, httpStatus }: Failure): number {
  if (httpStatus !== undefined) return httpStatus
  const entry = FAILURE_REASONS[reason]
  return 'http' in entry ? entry.http : STATUS_NAMES[code].http
}
