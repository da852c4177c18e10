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

/** What streamed answers may be compressed with: they pass through as they are, so it is the client's own choice. */
export function acceptedEncoding(headers: IncomingHttpHeaders): Record<string, string> {
  const given = headers['accept-encoding']
  return { 'accept-encoding': Array.isArray(given) ? given.join(', ') : (given ?? 'identity') }
}
