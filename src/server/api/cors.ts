import type { Exchange } from './exchange.ts'

/** Origins whose pages may call the API: exact ones such as `https://app.example.com`, or `*` alone for all. */
export type CorsOrigins = readonly string[]

/** How long a browser may reuse the answer to a preflight; Chromium keeps none longer. */
const PREFLIGHT_MAX_AGE_SECONDS = 7_200

/**
 * Adds the headers of cross-origin resource sharing (CORS, Fetch standard, 3.2) to the response, errors included.
 *
 * Every answer header may be read (`grpc-status`, `etag`, `retry-after`, `ratelimit-*`, `patchbay-ratelimit-*` and headers of upstreams).
 * Cookies are never allowed: callers send a token. Access from public pages to private networks
 * (`Access-Control-Allow-Private-Network`) is never granted.
 *
 * @param origins empty: nothing is added, and browsers block other origins
 * @returns the headers that allow what a preflight asks for; undefined when the request is no preflight of an allowed origin
 */
export function applyCors(
  origins: CorsOrigins,
  { request, context }: Exchange,
): Readonly<Record<string, string>> | undefined {
  if (origins.length === 0) return undefined
  const isOpen = origins.includes('*')
  // Also for other origins: a cache must not serve them the response for one.
  if (!isOpen) context.setHeader('vary', 'Origin')
  const { origin } = request.headers
  if (origin === undefined || !(isOpen || origins.includes(origin))) return undefined
  context.setHeader('access-control-allow-origin', isOpen ? '*' : origin)
  context.setHeader('access-control-expose-headers', '*')
  const method = request.headers['access-control-request-method']
  if (request.method !== 'OPTIONS' || method === undefined) return undefined
  const headers = request.headers['access-control-request-headers']
  return {
    // Every requested method is allowed: the route itself answers 405.
    'access-control-allow-methods': method,
    ...(headers === undefined ? {} : { 'access-control-allow-headers': headers }),
    'access-control-max-age': String(PREFLIGHT_MAX_AGE_SECONDS),
  }
}
