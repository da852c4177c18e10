import type { IncomingHttpHeaders } from 'node:http'

/** Stands before the name of a header that is meant for the third party. */
const UPSTREAM_PREFIX = 'patchbay-upstream-'

/** Headers that a caller wants to be sent, by their names there. */
export function upstreamHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const upstream: Record<string, string> = {}
  for (const name in headers) {
    const value = headers[name]
    if (!name.startsWith(UPSTREAM_PREFIX) || value === undefined) continue
    upstream[name.slice(UPSTREAM_PREFIX.length)] = Array.isArray(value) ? value.join(', ') : value
  }
  return upstream
}

/** The same for a call whose answer passes through as it is, so that its encoding is the client's own choice. */
export function streamedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const accepted = headers['accept-encoding']
  const upstream = upstreamHeaders(headers)
  return typeof accepted === 'string' ? { 'accept-encoding': accepted, ...upstream } : upstream
}
