import type { EgressResponse, HttpClient } from '../egress/index.ts'
import type { AuthorizedRequest } from './authorise.ts'
import { type ProxyRequest, RESPONSE_BYTES_MAX } from './request.ts'

/** Redirects of a reading request that are followed: APIs answer them for what was renamed. */
const REDIRECTS_MAX = 3

/**
 * Stage 5: sends through the guarded client.
 *
 * Redirects are followed for GET and HEAD only, credentials left behind where they change the origin. Any other method is
 * answered the redirect itself: repeating a write elsewhere is not ours to decide.
 *
 * @param timeoutMs unless the call has a limit of its own
 * @throws Failure EGRESS_BLOCKED, UPSTREAM_UNREACHABLE, UPSTREAM_INVALID_RESPONSE, DEADLINE_EXCEEDED, CANCELLED
 */
export function sendHttp(
  http: Pick<HttpClient, 'send'>,
  { method, url, headers, body }: AuthorizedRequest,
  { limits, signal }: Pick<ProxyRequest, 'limits' | 'signal'>,
  timeoutMs: number,
): Promise<EgressResponse> {
  return http.send({
    method,
    url,
    headers,
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
    timeoutMs: limits?.timeoutMs ?? timeoutMs,
    redirects: redirectsMaxFor(method),
    maxResponseBytes: limits?.responseBytesMax ?? RESPONSE_BYTES_MAX,
  })
}

/** How many redirects of a request are followed. */
export function redirectsMaxFor(method: string): number {
  return method === 'GET' || method === 'HEAD' ? REDIRECTS_MAX : 0
}
