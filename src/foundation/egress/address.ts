import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** A parsed CIDR range: network address and prefix length. */
export type AddressRange = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

/**
 * Public by registry, internal by use: the wire server of a large cloud answers every virtual machine on this address
 * with credentials and configuration.
 */
const INTERNAL_UNICAST: ReadonlySet<string> = new Set(['168.63.129.16'])

/** Everything global unicast lies in 2000::/3; what lies outside is unassigned, local or an embedding of IPv4. */
const GLOBAL_UNICAST_V6 = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether the address belongs to the public internet.
 *
 * False for loopback, private, link-local, carrier-grade NAT, multicast, reserved and documentation ranges, for the
 * metadata addresses of clouds, and for every IPv6 form that carries an IPv4 address inside (NAT64, 6to4, Teredo,
 * IPv4-compatible, translated, ISATAP): their gateways would deliver to the embedded address. An IPv4-mapped address
 * counts as the IPv4 address. False for anything that is not an IP address.
 *
 * @param text canonical text, with or without an IPv6 zone
 */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text)
  if (address?.range() !== 'unicast') return false
  if (address.kind() === 'ipv4') return !INTERNAL_UNICAST.has(address.toString())
  return address.match(GLOBAL_UNICAST_V6) && !isIsatap(address)
}

/** Whether the address lies in one of the ranges; an IPv4-mapped IPv6 address is looked up as IPv4. */
export function isInRanges(text: string, ranges: readonly AddressRange[]): boolean {
  const address = parseAddress(text)
  if (!address) return false
  return ranges.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))
}

/** Parses one CIDR range (`10.0.0.0/8`, `fd00::/8`) or one address; `undefined` when it is neither. */
export function parseRange(text: string): AddressRange | undefined {
  // A zone (`%eth0`) belongs to an interface, not to a range; `isIP` takes it, ipaddr.js not always.
  if (text.includes('%')) return undefined
  if (isIP(text) !== 0) {
    const address = ipaddr.process(text)
    return [address, address.kind() === 'ipv4' ? 32 : 128]
  }
  const [network, bits] = text.split('/')
  if (network === undefined || bits === undefined || isIP(network) === 0 || !ipaddr.isValidCIDR(text)) return undefined
  return ipaddr.parseCIDR(text)
}

/** How resolvers print an IPv4-compatible address; ipaddr.js reads it as the IPv4-mapped one, which is another. */
const DOTTED_COMPATIBLE = /^::\d+\.\d+\.\d+\.\d+$/

function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const bare = text.split('%', 1)[0] ?? ''
  return isIP(bare) === 0 || DOTTED_COMPATIBLE.test(bare) ? undefined : ipaddr.process(bare)
}

/** ISATAP (RFC 5214) keeps an IPv4 address in the lower half, behind 00-00-5E-FE or 02-00-5E-FE. */
function isIsatap(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  const bytes = address.toByteArray()
  return (bytes[8] === 0 || bytes[8] === 2) && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe
}
