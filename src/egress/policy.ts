import { isIP } from 'node:net'
import { Failure } from '../base/index.ts'
import { type AddressRange, isInRanges, isPublicAddress, parseRange } from './address.ts'

/** Decides which addresses may be dialled. */
export interface EgressPolicy {
  /** @param address an IP address in canonical text, without brackets */
  allows(address: string): boolean
}

/** What an operator opens beside the public internet. */
export interface EgressPolicyOptions {
  /** `PATCHBAY_EGRESS_ALLOW`: CIDR ranges or addresses, IPv4 and IPv6, separated by commas; empty opens nothing. */
  readonly allow: string
}

/**
 * The policy every outward connection is checked against: the public internet plus the operator's ranges.
 *
 * A range may open loopback and private networks, and with them what runs there; it is meant for development and for
 * operators who call their own services.
 *
 * @throws Failure INVALID_FIELD naming the entry that is no range
 */
export function createEgressPolicy(options: EgressPolicyOptions): EgressPolicy {
  const entries = options.allow
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
  const ranges = entries.map(parseAllowedRange)
  return { allows: (address) => isPublicAddress(address) || isInRanges(address, ranges) }
}

/**
 * What is wrong with a URL before any name is resolved, or `undefined`: scheme, user information, a literal address or
 * a well-known internal name that the policy does not allow, a port that speaks another protocol.
 *
 * Good for refusing a URL when it is written. It does not look up the name: what a name points to is checked when the
 * connection is made, each time.
 *
 * @returns a predicate that completes "the URL …", e.g. `must use http or https`
 */
export function findUrlViolation(policy: EgressPolicy, url: string | URL): string | undefined {
  const parsed = typeof url === 'string' ? URL.parse(url) : url
  if (!parsed) return 'must be an absolute URL'
  if (parsed.protocol !== 'https:' && parsed.protocol !== 'http:') return 'must use http or https'
  if (parsed.username !== '' || parsed.password !== '') return 'must not contain a user name or password'
  if (NON_HTTP_PORTS.has(parsed.port)) return `must not use port ${parsed.port}, which belongs to another protocol`
  const host = hostOf(parsed)
  const address = isIP(host) === 0 ? internalNameAddress(host) : host
  if (address !== undefined && !policy.allows(address))
    return `must not point to ${host}, which is not a public address`
  return undefined
}

/** The host as a socket wants it: an IPv6 literal without brackets, a name without its trailing dot. */
export function hostOf(url: URL): string {
  return url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname.replace(/\.$/, '')
}

/** Refuses a destination; the message names the host as the caller wrote it, never what it resolved to. */
export function egressBlocked(host: string, why: string): Failure {
  return new Failure('EGRESS_BLOCKED', `the host "${host}" may not be called: ${why}`, { metadata: { host } })
}

function parseAllowedRange(entry: string): AddressRange {
  const range = parseRange(entry)
  if (range) return range
  throw new Failure(
    'INVALID_FIELD',
    `PATCHBAY_EGRESS_ALLOW takes CIDR ranges separated by commas, such as 127.0.0.0/8,fd00::/8; "${entry}" is not one`,
  )
}

/** Names that mean an internal address wherever they resolve; refused without asking the resolver. */
const INTERNAL_NAMES: ReadonlyMap<string, string> = new Map([
  ['localhost', '127.0.0.1'],
  ['metadata', '169.254.169.254'],
  ['metadata.goog', '169.254.169.254'],
  ['metadata.google.internal', '169.254.169.254'],
  ['instance-data', '169.254.169.254'],
  ['instance-data.ec2.internal', '169.254.169.254'],
])

function internalNameAddress(host: string): string | undefined {
  return host.endsWith('.localhost') ? '127.0.0.1' : INTERNAL_NAMES.get(host)
}

/** Services that take lines of text and would read an HTTP request as commands. */
const NON_HTTP_PORTS: ReadonlySet<string> = new Set(
  [21, 22, 23, 25, 53, 110, 119, 143, 465, 587, 993, 995, 3306, 5432, 6379, 6667, 11211].map(String),
)
