import { Failure } from '../base/index.ts'
import type { ResponseHead } from './exchange.ts'
import { headersAcrossOrigins } from './headers.ts'

import { hostOf } from './policy.ts'
import type { OutgoingRequest } from './wire.ts'

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
