import { Failure, type FailureReason } from '../base/errors.ts'
import { ConnectionLostError } from './response.ts'

/** A stale connection: the server closed it before the request arrived. */
export function isStaleConnection(error: unknown): boolean {
  return error instanceof ConnectionLostError && CONNECTION_LOST_CODES.has(errorCode(error.cause))
}

/** Maps errors of undici and sockets to a failure that names the host and the cause. */
export function toUpstreamFailure(host: string, error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof ConnectionLostError) return toUpstreamFailure(host, error.cause)
  const [reason, what] = proxyProblem(error) ?? connectionProblem(errorCode(error))
  const subject = reason === 'INVALID_FIELD' ? 'the request to' : 'the call to'
  return new Failure(reason, `${subject} "${host}" failed: ${what}`, { metadata: { host }, cause: error })
}

/** Why a request got no response that can be used. */
export type RequestErrorClass =
  /** The address policy rejects the URL or its address. */
  | 'blocked_egress'
  | 'dns'
  | 'connect'
  | 'timeout_connect'
  | 'tls'
  /** The connection was closed before the response. */
  | 'reset'
  /** The deadline of the request has passed. */
  | 'timeout_total'
  /** Not HTTP, or too large. */
  | 'invalid_response'
  /** It cannot be sent, or was cancelled here. */
  | 'not_sent'

/** What kind of problem a failure of the HTTP client is. */
export function classifyRequestFailure({ reason, cause }: Failure): RequestErrorClass {
  switch (reason) {
    case 'EGRESS_BLOCKED':
      return 'blocked_egress'
    case 'DEADLINE_EXCEEDED':
      return 'timeout_total'
    case 'UPSTREAM_INVALID_RESPONSE':
      return 'invalid_response'
    case 'UPSTREAM_UNREACHABLE':
      return UNREACHABLE_CLASSES[errorCode(cause)] ?? (isTlsError(errorCode(cause)) ? 'tls' : 'connect')
    default:
      return 'not_sent'
  }
}

const UNREACHABLE_CLASSES: Readonly<Record<string, RequestErrorClass>> = {
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  ETIMEDOUT: 'timeout_connect',
  UND_ERR_CONNECT_TIMEOUT: 'timeout_connect',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'reset',
}

function isTlsError(code: string): boolean {
  return /CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO/.test(code)
}

const CONNECTION_LOST_CODES: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

/** undici gives the status with which a proxy rejects a tunnel in its message alone. */
function proxyProblem(error: unknown): readonly [FailureReason, string] | undefined {
  if (!(error instanceof Error)) return undefined
  const status = /^Proxy response \((\d{3})\)/.exec(error.message)?.[1]
  if (status !== undefined) return ['UPSTREAM_UNREACHABLE', `the proxy of HTTPS_PROXY answered ${status}`]
  if (error.name === 'ProxyConnectionError') return ['UPSTREAM_UNREACHABLE', 'the proxy closed the connection']
  return undefined
}

function connectionProblem(code: string): readonly [FailureReason, string] {
  const known = CONNECTION_PROBLEMS[code]
  if (known) return known
  if (isTlsError(code)) return ['UPSTREAM_UNREACHABLE', 'its certificate is not trusted']
  return ['UPSTREAM_UNREACHABLE', 'the connection failed']
}

const CONNECTION_PROBLEMS: Readonly<Record<string, readonly [FailureReason, string]>> = {
  ECONNREFUSED: ['UPSTREAM_UNREACHABLE', 'the connection was refused'],
  ECONNRESET: ['UPSTREAM_UNREACHABLE', 'it closed the connection'],
  EPIPE: ['UPSTREAM_UNREACHABLE', 'it closed the connection'],
  ENOTFOUND: ['UPSTREAM_UNREACHABLE', 'the name does not resolve'],
  EAI_AGAIN: ['UPSTREAM_UNREACHABLE', 'the name does not resolve at the moment'],
  EHOSTUNREACH: ['UPSTREAM_UNREACHABLE', 'there is no route to it'],
  ENETUNREACH: ['UPSTREAM_UNREACHABLE', 'there is no route to it'],
  ETIMEDOUT: ['UPSTREAM_UNREACHABLE', 'connecting took too long'],
  UND_ERR_CONNECT_TIMEOUT: ['UPSTREAM_UNREACHABLE', 'connecting took too long'],
  UND_ERR_SOCKET: ['UPSTREAM_UNREACHABLE', 'it closed the connection'],
  HTTPParserError: ['UPSTREAM_INVALID_RESPONSE', 'its answer is not valid HTTP'],
  UND_ERR_HEADERS_OVERFLOW: ['UPSTREAM_INVALID_RESPONSE', 'its response headers are too large'],
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: ['UPSTREAM_INVALID_RESPONSE', 'its body is shorter than announced'],
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: ['INVALID_FIELD', 'its body is not as long as its content-length says'],
  UND_ERR_INVALID_ARG: ['INVALID_FIELD', 'it cannot be written as HTTP'],
  UND_ERR_DESTROYED: ['SHUTTING_DOWN', 'the client is closed'],
  UND_ERR_CLOSED: ['SHUTTING_DOWN', 'the client is closed'],
}

function errorCode(error: unknown): string {
  if (error instanceof AggregateError) return errorCode(error.errors[0])
  // undici's parser names only some of its errors by code.
  if (error instanceof Error && error.name === 'HTTPParserError') return error.name
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}
