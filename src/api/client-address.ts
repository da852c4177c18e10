import { type BlockList, isIP, isIPv6 } from 'node:net'
import type { RequestHead } from './open-call.ts'

/**
 * The address that a request is counted under: the peer of the connection, or, when that peer is a trusted proxy, the
 * last address in `X-Forwarded-For` that is not a trusted proxy itself. An IPv6 address counts as its /64 network, which
 * one subscriber usually has whole.
 *
 * @param trustedProxies `PATCHBAY_TRUSTED_PROXIES`; what any other peer says in the header is ignored
 */
export function clientAddress({ socket, headers }: RequestHead, trustedProxies: BlockList): string {
  let address = withoutMapping(socket.remoteAddress ?? '')
  const forwarded = headers['x-forwarded-for']
  const hops = (Array.isArray(forwarded) ? forwarded.join(',') : (forwarded ?? '')).split(',')
  while (isTrusted(address, trustedProxies)) {
    const hop = withoutMapping(hops.pop()?.trim() ?? '')
    if (isIP(hop) === 0) break
    address = hop
  }
  return isIPv6(address) ? networkOf(address) : address
}

function isTrusted(address: string, trustedProxies: BlockList): boolean {
  return trustedProxies.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}

/** An IPv4 address as dual-stack sockets print it, `::ffff:192.0.2.1`, is the IPv4 address. */
function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}

/** The first 64 bits, in one spelling. */
function networkOf(address: string): string {
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? []
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length
  const all = [...groups, ...Array.from({ length: Math.max(0, zeros) }, () => '0'), ...after]
  return `${all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
