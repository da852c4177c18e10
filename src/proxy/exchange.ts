import type { HttpClient, HttpResponse } from '../egress/index.ts'
import type { AuthorisedRequest } from './authorise.ts'
import { type ProxyRequest, REQUEST_TIMEOUT_MS, RESPONSE_BYTES_MAX } from './request.ts'

/**
 * Stage 4: sends through the guarded client. Redirects are answered as they are: a definition names the address it means.
 *
 * @throws Failure EGRESS_BLOCKED, UPSTREAM_UNREACHABLE, UPSTREAM_INVALID_RESPONSE, DEADLINE_EXCEEDED, CANCELLED
 */
export function exchange(
  http: Pick<HttpClient, 'send'>,
  { method, url, headers, body }: AuthorisedRequest,
  { limits, signal }: Pick<ProxyRequest, 'limits' | 'signal'>,
): Promise<HttpResponse> {
  return http.send({
    method,
    url,
    headers,
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
    timeoutMs: limits?.timeoutMs ?? REQUEST_TIMEOUT_MS,
    maxResponseBytes: limits?.responseBytesMax ?? RESPONSE_BYTES_MAX,
  })
}
