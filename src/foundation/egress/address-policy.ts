import { isIP } from 'node:net'
import { Failure } from '../base/errors.ts'
import { type AddressRange, isInRanges, isPublicAddress, parseRange } from './address.ts'

/** Address policy: which addresses may be connected to. */
export interface EgressPolicy {
  /** Completes "… is not a public address": how the operator may allow it all the same. */
  readonly advice: string
  /** @param address an IP address in canonical text, without brackets */
  allows(address: string): boolean
}

/** Options of `createEgressPolicy`. */
export interface EgressPolicyOptions {
  /** CIDR ranges or addresses, IPv4 and IPv6, separated by commas; empty allows none. */
  readonly allow: string
  /** The environment variable of `allow`, for messages. */
  readonly variable?: string
}

const EGRESS_ALLOW = 'PATCHBAY_EGRESS_ALLOW'

/**
 * The address policy of every outbound connection: the public internet plus the ranges of the operator.
 *
 * A range may allow loopback and private networks, for development and for operators who call their own services.
 *
 * @throws Failure INVALID_FIELD naming the entry that is no range
 */
export function createEgressPolicy({ allow, variable = EGRESS_ALLOW }: EgressPolicyOptions): EgressPolicy {
  const entries = allow
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
  const ranges = entries.map((entry) => parseAllowedRange(variable, entry))
  return {
    allows: (address) => isPublicAddress(address) || isInRanges(address, ranges),
    advice: `set ${variable} for servers, workers and commands to allow it`,
  }
}

/**
 * The violation of a URL without name resolution, or `undefined`: scheme, user information, a literal address or a
 * well-known internal name that the policy does not allow, a port of another protocol.
 *
 * For validation when a URL is stored. The addresses of a name are checked when a connection is made, each time.
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
    return `must not point to ${host}, which is not a public address: ${policy.advice}`
  return undefined
}

/** The host for a socket: an IPv6 literal without brackets, a name without its trailing dot. */
export function hostOf(url: URL): string {
  return url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname.replace(/\.$/, '')
}

/** The error of a rejected destination. It names the host as the caller wrote it, never the address. */
export function egressBlocked(host: string, why: string): Failure {
  return new Failure('EGRESS_BLOCKED', `the host "${host}" may not be called: ${why}`, { metadata: { host } })
}

function parseAllowedRange(variable: string, entry: string): AddressRange {
  const range = parseRange(entry)
  if (range) return range
  throw new Failure(
    'INVALID_FIELD',
    `${variable} takes CIDR ranges separated by commas, such as 127.0.0.0/8,fd00::/8; "${entry}" is not one`,
  )
}

/** Names of internal services, rejected without resolution, with the address they stand for in the policy. */
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

/** Ports of line-based protocols, whose servers could read an HTTP request as commands. */
const NON_HTTP_PORTS: ReadonlySet<string> = new Set(
  [21, 22, 23, 25, 53, 110, 119, 143, 465, 587, 993, 995, 3306, 5432, 6379, 6667, 11211].map(String),
)
