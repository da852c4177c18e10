import { describe, expect, it } from 'vitest'
import { isInRanges, isPublicAddress, parseRange } from '../../../../src/foundation/egress/address.ts'

describe('isPublicAddress', () => {
  it.each([
    '1.1.1.1',
    '8.8.8.8',
    '140.82.112.3',
    '172.15.255.255',
    '172.32.0.1',
    '192.167.255.255',
    '100.63.255.255',
    '223.255.255.255',
    '168.63.129.17',
    '::ffff:8.8.8.8',
    '2606:4700::6810:84e5',
    '2a00:1450:4001:82a::200e',
    '2001:4860:4860::8888',
  ])('takes %s', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  it.each([
    ['unspecified', '0.0.0.0'],
    ['this network', '0.1.2.3'],
    ['private', '10.255.255.255'],
    ['private', '172.31.255.255'],
    ['private', '192.168.0.1'],
    ['carrier-grade NAT, a cloud metadata address in it', '100.100.100.200'],
    ['loopback', '127.255.255.254'],
    ['link-local, metadata', '169.254.169.254'],
    ['protocol assignments, metadata', '192.0.0.192'],
    ['documentation', '192.0.2.1'],
    ['benchmarking', '198.19.0.1'],
    ['documentation', '203.0.113.7'],
    ['multicast', '224.0.0.1'],
    ['reserved', '240.0.0.1'],
    ['broadcast', '255.255.255.255'],
    ['the wire server of a cloud', '168.63.129.16'],
    ['mapped loopback', '::ffff:127.0.0.1'],
    ['mapped metadata', '::ffff:a9fe:a9fe'],
    ['IPv6 unspecified', '::'],
    ['IPv6 loopback', '::1'],
    ['IPv4-compatible loopback', '::7f00:1'],
    ['IPv4-compatible public', '::808:808'],
    ['IPv4-compatible public as resolvers print it', '::8.8.8.8'],
    ['IPv4-translated', '::ffff:0:7f00:1'],
    ['NAT64', '64:ff9b::7f00:1'],
    ['local NAT64', '64:ff9b:1::7f00:1'],
    ['6to4', '2002:7f00:1::1'],
    ['Teredo', '2001:0:4136:e378:8000:63bf:80ff:fffe'],
    ['ISATAP', '2a00:1450::5efe:7f00:1'],
    ['ISATAP with the universal bit', '2a00:1450::200:5efe:7f00:1'],
    ['link-local', 'fe80::1'],
    ['link-local with a zone', 'fe80::1%eth0'],
    ['unique local, metadata', 'fd00:ec2::254'],
    ['site-local', 'fec0::1'],
    ['multicast', 'ff02::1'],
    ['discard', '100::1'],
    ['documentation', '2001:db8::1'],
    ['documentation', '3fff::1'],
    ['segment routing', '5f00::1'],
    ['unassigned', '4000::1'],
    ['no address', 'example.com'],
    ['no address', ''],
    ['a spelling sockets do not take', '0x7f.1'],
  ])('refuses %s: %s', (_kind, address) => {
    expect(isPublicAddress(address)).toBe(false)
  })
})

describe('ranges', () => {
  const ranges = ['127.0.0.0/8', '10.1.0.0/16', 'fd00::/8', '192.168.7.7'].map((text) => {
    const range = parseRange(text)
    if (!range) throw new Error(`${text} does not parse`)
    return range
  })

  it.each(['127.0.0.1', '::ffff:127.0.0.1', '10.1.255.255', 'fd00:ec2::254', '192.168.7.7'])(
    'contain %s',
    (address) => {
      expect(isInRanges(address, ranges)).toBe(true)
    },
  )

  it.each(['10.2.0.1', '::1', 'fe80::1', '192.168.7.8', '::127.0.0.1', 'example.com'])(
    'do not contain %s',
    (address) => {
      expect(isInRanges(address, ranges)).toBe(false)
    },
  )

  it.each(['', '10.0.0.0/33', '10.0.0/8', '10.0.0.0/', 'fd00::/129', 'localhost', '127.1'])(
    'are refused when written as %j',
    (text) => {
      expect(parseRange(text)).toBeUndefined()
    },
  )
})
