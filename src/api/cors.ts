import type { Exchange } from './exchange.ts'

/** Origins whose pages may call the API: exact ones such as `https://app.example.com`, or `*` alone for all. */
export type CorsOrigins = readonly string[]

/** How long a browser may reuse the answer to a preflight; Chromium keeps none longer. */
const PREFLIGHT_MAX_AGE_SECONDS = 7_200

/**
 * Adds the headers of cross-origin resource sharing (CORS, Fetch standard, 3.2) to whatever the exchange will answer, errors
 * included.
 *
 * Every answer header may be read (`grpc-status`, `etag`, `retry-after`, `ratelimit-*` and what third parties send).
 * Cookies are never allowed: callers send a token. Access from public pages to private networks
 * (`Access-Control-Allow-Private-Network`) is never granted.
 *
 * @param origins empty: nothing is added, and browsers keep other origins out
 * @returns the headers that allow what a preflight asks for; undefined when the request is no preflight of an allowed origin
 */
export function applyCors(
  origins: CorsOrigins,
  { request, context }: Exchange,
): Readonly<Record<string, string>> | undefined {
  if (origins.length === 0) return undefined
  const isOpen = origins.includes('*')
  // Said to other origins too, or a cache would serve them what was meant for one.
  if (!isOpen) context.setHeader('vary', 'Origin')
  const { origin } = request.headers
  if (origin === undefined || !(isOpen || origins.includes(origin))) return undefined
  context.setHeader('access-control-allow-origin', isOpen ? '*' : origin)
  context.setHeader('access-control-expose-headers', '*')
  const method = request.headers['access-control-request-method']
  if (request.method !== 'OPTIONS' || method === undefined) return undefined
  const headers = request.headers['access-control-request-headers']
  return {
    // What is asked for is allowed: the route itself answers a method that it does not take.
    'access-control-allow-methods': method,
    ...(headers === undefined ? {} : { 'access-control-allow-headers': headers }),
    'access-control-max-age': String(PREFLIGHT_MAX_AGE_SECONDS),
  }
}
