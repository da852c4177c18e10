import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { Failure } from '../base/errors.ts'
import { type EgressPolicy, egressBlocked, findUrlViolation, hostOf } from './address-policy.ts'
import { ACCEPTED_ENCODINGS, headerText } from './header-text.ts'
import { type HttpHeaders, headersAcrossOrigins, outgoingHeaders } from './headers.ts'
import type { ResponseHead } from './response.ts'
import type { RequestTimings } from './timings.ts'

/** One request to a third party. */
export interface EgressRequest {
  /** Upper case. CONNECT and TRACE are rejected. */
  readonly method: string
  readonly url: string
  /** Connection headers (`host`, `content-length`, `transfer-encoding`, …) are set by the client; given ones are dropped. */
  readonly headers: HttpHeaders
  readonly body?: string | Uint8Array
  readonly signal?: AbortSignal
  /** Whose connections the request counts as: an environment. Default: that of the request which this works for; else the service. */
  readonly owner?: string
  /** Deadline of the whole call: waiting for a connection, redirects, and the last byte of the body. */
  readonly timeoutMs: number
  /** Limit of the body, both as sent and as decoded. */
  readonly maxResponseBytes: number
  /**
   * Reserves memory for a body that grows beyond `LARGE_RESPONSE_BYTES`, as sent or decoded: called with `maxResponseBytes` before
   * more is kept. Returns why there is none, with which the request fails. Default: nothing is reserved.
   */
  readonly reserveBytes?: (bytes: number) => Failure | undefined
  /** Redirects that are followed, 0 to 3; default 0, which returns the redirect itself. */
  readonly redirects?: number
  /** Filled in while the request is under way, also of one that fails. */
  readonly timings?: RequestTimings
}

/** A request whose bodies are streamed. */
export interface EgressStreamRequest extends Omit<EgressRequest, 'body'> {
  /**
   * An iterable is released when the call ends, successful or not: destroyed, or its iterator returned. It stays its owner's
   * when not a byte was read: the request was rejected, or no connection was made.
   */
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>
  /** Length of an iterable body, where known: sent as `content-length`, and enforced. */
  readonly bodyBytes?: number
  /** Idle timeout: no byte of either body has moved for this long. Default: only `timeoutMs` counts. */
  readonly idleTimeoutMs?: number
}

/** A request with its body in memory, or as a stream that undici reads with backpressure. */
export interface OutgoingRequest extends Omit<EgressStreamRequest, 'body'> {
  readonly body?: string | Uint8Array | Readable
}

/** Larger bodies are sent in slices, so that a connection is closed, not reused, when the response arrives before the end. */
const SINGLE_WRITE_BYTES_MAX = 64 * 1024

/** CONNECT opens a tunnel, TRACE echoes the credentials. */
const FORBIDDEN_METHODS: ReadonlySet<string> = new Set(['CONNECT', 'TRACE'])

/** Parses a URL that the policy allows. @throws Failure EGRESS_BLOCKED, before any name is resolved */
export function parseAllowedUrl(policy: EgressPolicy, text: string): URL {
  const url = URL.parse(text)
  if (!url) throw new Failure('EGRESS_BLOCKED', 'the request has no absolute URL')
  const violation = findUrlViolation(policy, url)
  if (violation !== undefined) throw egressBlocked(hostOf(url), `the URL ${violation}`)
  return url
}

/** The options of undici's `dispatch`. @throws Failure INVALID_FIELD for a method or header that must not be sent */
export function toDispatchOptions(url: URL, request: OutgoingRequest): Dispatcher.DispatchOptions {
  const { method, body } = request
  if (FORBIDDEN_METHODS.has(method.toUpperCase()))
    throw new Failure('INVALID_FIELD', `the method ${method} is not allowed`)
  const headers = outgoingHeaders(request.headers)
  headers['accept-encoding'] ??= ACCEPTED_ENCODINGS
  const options = { origin: url.origin, path: `${url.pathname}${url.search}`, method, headers }
  if (body === undefined) return options
  if (body instanceof Readable) {
    if (request.bodyBytes !== undefined) headers['content-length'] = String(request.bodyBytes)
    return { ...options, body }
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  if (bytes.byteLength <= SINGLE_WRITE_BYTES_MAX) return { ...options, body: bytes }
  headers['content-length'] = String(bytes.byteLength)
  return { ...options, body: Readable.from(slices(bytes)) }
}

function* slices(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.byteLength; start += SINGLE_WRITE_BYTES_MAX) {
    yield bytes.subarray(start, start + SINGLE_WRITE_BYTES_MAX)
  }
}

/** Upper bound of `redirects`. */
export const REDIRECTS_MAX = 3

/**
 * The request to the target of a redirect; `undefined` when the response is no redirect.
 *
 * 301 and 302 turn a POST into a GET and 303 turns anything but HEAD into one, as browsers do; 307 and 308 repeat
 * method and body. Across origins (scheme, host or port differ) only headers that cannot carry a credential are kept.
 *
 * @throws Failure UPSTREAM_INVALID_RESPONSE when the target is no URL, or a body would have to go to another origin
 */
export function followRedirect(request: OutgoingRequest, from: URL, head: ResponseHead): OutgoingRequest | undefined {
  const { location } = head.headers
  if (!REDIRECTS.has(head.status) || location === undefined) return undefined
  const target = URL.parse(headerText(location), from.href)
  if (!target) throw invalidRedirect(from, 'is not a URL')
  const next = becomesGet(request.method, head.status) ? withoutBody(request) : request
  if (target.origin === from.origin) return { ...next, url: target.href }
  if (next.body !== undefined) throw invalidRedirect(from, 'would send the body to another origin')
  return { ...next, url: target.href, headers: headersAcrossOrigins(next.headers) }
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

function becomesGet(method: string, status: number): boolean {
  if (status === 303) return method !== 'HEAD'
  return (status === 301 || status === 302) && method === 'POST'
}

function withoutBody(request: OutgoingRequest): OutgoingRequest {
  const { body: _dropped, ...rest } = request
  const headers = Object.entries(rest.headers).filter(([name]) => !name.toLowerCase().startsWith('content-'))
  return { ...rest, method: 'GET', headers: Object.fromEntries(headers) }
}

/** The error after the last redirect that is followed. */
export function tooManyRedirects(from: URL, redirectsMax: number): Failure {
  return new Failure('UPSTREAM_INVALID_RESPONSE', `"${hostOf(from)}" redirected more than ${redirectsMax} times`)
}

function invalidRedirect(from: URL, why: string): Failure {
  const host = hostOf(from)
  return new Failure('UPSTREAM_INVALID_RESPONSE', `the redirect of "${host}" ${why}`, { metadata: { host } })
}
