import { Readable } from 'node:stream'
import type { Agent, Dispatcher } from 'undici'
import { Failure } from '../base/index.ts'
import { ACCEPTED_ENCODINGS } from './content-decoding.ts'
import { headersAcrossOrigins, outgoingHeaders } from './headers.ts'
import type { EgressStreamRequest } from './http-client.ts'
import { type EgressPolicy, egressBlocked, findUrlViolation, hostOf } from './policy.ts'
import type { ResponseHead } from './response-handler.ts'

/** Where requests leave: the connection pools, and the policy their URLs are held against. */
export interface GuardedAgent {
  readonly agent: Agent
  readonly policy: EgressPolicy
}

/** A request whose body is at hand, or a stream that undici reads at its own pace. */
export interface OutgoingRequest extends Omit<EgressStreamRequest, 'body'> {
  readonly body?: string | Uint8Array | Readable
}

/** Larger bodies go out in pieces, so that a connection is dropped, not reused, when the answer overtakes them. */
const SINGLE_WRITE_BYTES_MAX = 64 * 1024

/** Would turn the connection into something else, or echo the credentials. */
const FORBIDDEN_METHODS: ReadonlySet<string> = new Set(['CONNECT', 'TRACE'])

/** @throws Failure EGRESS_BLOCKED before anything is resolved or opened */
export function parseAllowedUrl(policy: EgressPolicy, text: string): URL {
  const url = URL.parse(text)
  if (!url) throw new Failure('EGRESS_BLOCKED', 'the request has no absolute URL')
  const violation = findUrlViolation(policy, url)
  if (violation !== undefined) throw egressBlocked(hostOf(url), `the URL ${violation}`)
  return url
}

/**
 * The request as undici takes it.
 *
 * @throws Failure INVALID_FIELD for a method or header that must not be sent
 */
export function toDispatchOptions(url: URL, request: OutgoingRequest): Dispatcher.DispatchOptions {
  const { method, body } = request
  if (FORBIDDEN_METHODS.has(method.toUpperCase()))
    throw new Failure('INVALID_FIELD', `the method ${method} is not allowed`)
  const headers = outgoingHeaders(request.headers)
  headers['accept-encoding'] ??= ACCEPTED_ENCODINGS
  const wire = { origin: url.origin, path: `${url.pathname}${url.search}`, method, headers }
  if (body === undefined) return wire
  if (body instanceof Readable) {
    if (request.bodyBytes !== undefined) headers['content-length'] = String(request.bodyBytes)
    return { ...wire, body }
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  if (bytes.byteLength <= SINGLE_WRITE_BYTES_MAX) return { ...wire, body: bytes }
  headers['content-length'] = String(bytes.byteLength)
  return { ...wire, body: Readable.from(slices(bytes)) }
}

function* slices(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.byteLength; start += SINGLE_WRITE_BYTES_MAX) {
    yield bytes.subarray(start, start + SINGLE_WRITE_BYTES_MAX)
  }
}

/** What a caller may ask for at most. */
export const REDIRECTS_MAX = 3

/**
 * The request a redirect asks for, or `undefined` when the answer is not one.
 *
 * 301 and 302 turn a POST into a GET and 303 turns anything but HEAD into one, as browsers do; 307 and 308 repeat
 * method and body. Across origins (scheme, host or port differ) only headers that cannot carry a credential go along.
 *
 * @throws Failure UPSTREAM_INVALID_RESPONSE when the target is no URL, or a body would have to go to another origin
 */
export function followRedirect(request: OutgoingRequest, from: URL, head: ResponseHead): OutgoingRequest | undefined {
  const { location } = head.headers
  if (!REDIRECTS.has(head.status) || location === undefined) return undefined
  const target = URL.parse(location, from.href)
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

/** The refusal to follow any further. */
export function tooManyRedirects(from: URL, redirectsMax: number): Failure {
  return new Failure('UPSTREAM_INVALID_RESPONSE', `"${hostOf(from)}" redirected more than ${redirectsMax} times`)
}

function invalidRedirect(from: URL, why: string): Failure {
  const host = hostOf(from)
  return new Failure('UPSTREAM_INVALID_RESPONSE', `the redirect of "${host}" ${why}`, { metadata: { host } })
}
