import type { IncomingHttpHeaders } from 'node:http'
import { Failure } from '../base/errors.ts'

/** Headers by lower-case name. */
export type HttpHeaders = Readonly<Record<string, string>>

/** Set by the client itself, or usable for request smuggling; a caller's value is dropped. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Hop-by-hop headers (RFC 9110 §7.6.1), removed from responses. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Request headers that are kept on a redirect to another origin: none of them can carry a credential. */
const CROSS_ORIGIN_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'content-type',
  'user-agent',
])

const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
/** Visible characters, space, tab and Latin-1: no CR, LF, NUL or other control character. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * Request headers as sent: names in lower case, connection headers left out.
 *
 * @throws Failure INVALID_FIELD for a name that is no token or a value with characters that no header can carry
 */
export function outgoingHeaders(headers: HttpHeaders): Record<string, string> {
  const outgoing: Record<string, string> = {}
  for (const name in headers) {
    const lower = name.toLowerCase()
    if (CONNECTION_HEADERS.has(lower)) continue
    const value = headers[name] ?? ''
    if (!TOKEN.test(lower)) throw new Failure('INVALID_FIELD', `"${printable(name)}" is not a header name`)
    if (!FIELD_VALUE.test(value)) {
      throw new Failure('INVALID_FIELD', `the value of header "${lower}" contains characters a header cannot carry`)
    }
    outgoing[lower] = value
  }
  return outgoing
}

/** Request headers after a redirect to another origin. */
export function headersAcrossOrigins(headers: HttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => CROSS_ORIGIN_HEADERS.has(name.toLowerCase())))
}

/** Response headers as one string each: repeated ones joined with a comma; cookies and connection headers left out. */
export function incomingHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const incoming: Record<string, string> = {}
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || name === 'set-cookie' || HOP_BY_HOP.has(name)) continue
    incoming[name] = typeof value === 'string' ? value : value.join(', ')
  }
  const named = headers.connection
  if (named !== undefined && !KEEP_ALIVE_OR_CLOSE.test(named))
    for (const name of named.toLowerCase().split(',')) delete incoming[name.trim()]
  return incoming
}

/** The cookies of `set-cookie` headers, by name; of two with one name the last. Deleted ones, which are empty, are left out. */
export function incomingCookies({ 'set-cookie': lines = [] }: IncomingHttpHeaders): Record<string, string> {
  const pairs = [lines]
    .flat()
    .map((line) => (line.split(';', 1)[0] ?? '').split(/=(.*)/s, 2).map((part) => part.trim()))
  return Object.fromEntries(pairs.filter(([name, value]) => name !== '' && value !== undefined && value !== ''))
}

/** The common values of `connection`; any other value names further hop-by-hop headers. */
const KEEP_ALIVE_OR_CLOSE = /^(?:keep-alive|close)$/i

function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, 64)
}
