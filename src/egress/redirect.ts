import { Failure } from '../base/index.ts'
import type { ResponseHead } from './exchange.ts'
import { headersAcrossOrigins } from './headers.ts'
import type { HttpRequest } from './http-client.ts'
import { hostOf } from './policy.ts'

/**
 * The request a redirect asks for, or `undefined` when the answer is not one.
 *
 * 301 and 302 turn a POST into a GET and 303 turns anything but HEAD into one, as browsers do; 307 and 308 repeat
 * method and body. Across origins (scheme, host or port differ) only headers that cannot carry a credential go along.
 *
 * @throws Failure UPSTREAM_INVALID_RESPONSE when the target is no URL, or a body would have to go to another origin
 */
export function followRedirect(request: HttpRequest, from: URL, head: ResponseHead): HttpRequest | undefined {
  const { location } = head.headers
  if (!REDIRECTS.has(head.status) || location === undefined) return undefined
  const target = URL.parse(location, from.href)
  if (!target) throw unfollowable(from, 'is not a URL')
  const next = becomesGet(request.method, head.status) ? withoutBody(request) : request
  if (target.origin === from.origin) return { ...next, url: target.href }
  if (next.body !== undefined) throw unfollowable(from, 'would send the body to another origin')
  return { ...next, url: target.href, headers: headersAcrossOrigins(next.headers) }
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

function becomesGet(method: string, status: number): boolean {
  if (status === 303) return method !== 'HEAD'
  return (status === 301 || status === 302) && method === 'POST'
}

function withoutBody(request: HttpRequest): HttpRequest {
  const { body: _dropped, ...rest } = request
  const headers = Object.entries(rest.headers).filter(([name]) => !name.toLowerCase().startsWith('content-'))
  return { ...rest, method: 'GET', headers: Object.fromEntries(headers) }
}

function unfollowable(from: URL, why: string): Failure {
  const host = hostOf(from)
  return new Failure('UPSTREAM_INVALID_RESPONSE', `the redirect of "${host}" ${why}`, { metadata: { host } })
}
