import { BlockList } from 'node:net'
import { expect, it } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { clientAddress, RequestContext } from '../../../../src/server/api/request-context.ts'
import { readConfig } from '../../../../src/server/config/index.ts'

const { trustedProxies } = readConfig({ PATCHBAY_TRUSTED_PROXIES: '10.0.0.0/8, 2001:db8:ffff::/48' })

it.each([
  ['the peer', '192.0.2.1', undefined, '192.0.2.1'],
  ['the peer of a dual-stack socket', '::ffff:192.0.2.1', undefined, '192.0.2.1'],
  ['the network of an IPv6 peer', '2001:db8:1:2:3:4:5:6', undefined, '2001:db8:1:2::/64'],
  ['the network of a short IPv6 address', '2001:DB8::1', undefined, '2001:db8:0:0::/64'],
  ['the network of a link-local address', 'fe80::1%eth0', undefined, 'fe80:0:0:0::/64'],
  ['the peer, whatever it claims', '192.0.2.1', '198.51.100.7', '192.0.2.1'],
  ['what a trusted proxy says', '10.0.0.1', '198.51.100.7', '198.51.100.7'],
  [
    'what the outermost of several trusted proxies says',
    '10.0.0.1',
    '203.0.113.9, 198.51.100.7, 10.2.3.4',
    '198.51.100.7',
  ],
  ['what a trusted IPv6 proxy says', '2001:db8:ffff::1', '198.51.100.7', '198.51.100.7'],
  ['the proxy that says nothing', '10.0.0.1', undefined, '10.0.0.1'],
  ['the proxy that passes on no address', '10.0.0.1', '198.51.100.7, unknown', '10.0.0.1'],
])('is %s', (_, peer, forwarded, expected) => {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  expect(clientAddress({ socket: { remoteAddress: peer }, headers }, trustedProxies)).toBe(expected)
})

it.each([
  ['with a port', { 'x-forwarded-for': '203.0.113.7:41234' }, '203.0.113.7'],
  ['in brackets', { 'x-forwarded-for': '[2001:db8:1:2::7]' }, '2001:db8:1:2::/64'],
  ['in brackets with a port', { 'x-forwarded-for': '[2001:db8:1:2::7]:41234' }, '2001:db8:1:2::/64'],
  ['mapped, with a port', { 'x-forwarded-for': '[::ffff:203.0.113.7]:41234' }, '203.0.113.7'],
  ['before a proxy with a port', { 'x-forwarded-for': '203.0.113.7:1, 10.2.3.4:2' }, '203.0.113.7'],
  ['of Forwarded', { forwarded: 'for=203.0.113.7;proto=https;by=10.0.0.1' }, '203.0.113.7'],
  ['of Forwarded, quoted, with a port', { forwarded: 'proto=https; For="203.0.113.7:4711"' }, '203.0.113.7'],
  ['of Forwarded, of IPv6', { forwarded: 'for="[2001:db8:1:2::7]:4711"' }, '2001:db8:1:2::/64'],
  ['of the last Forwarded', { forwarded: 'for=198.51.100.1, for=203.0.113.7, for=10.2.3.4' }, '203.0.113.7'],
  ['of both headers', { forwarded: 'for=203.0.113.7', 'x-forwarded-for': '203.0.113.7' }, '203.0.113.7'],
  ['of the proxy when they differ', { forwarded: 'for=203.0.113.7', 'x-forwarded-for': '192.0.2.9' }, '10.0.0.1'],
  ['of the proxy for a hidden name', { forwarded: 'for=_hidden' }, '10.0.0.1'],
  ['of the proxy for what is no address', { 'x-forwarded-for': '203.0.113.7:x' }, '10.0.0.1'],
  ['of the proxy for an open bracket', { 'x-forwarded-for': '[2001:db8::7' }, '10.0.0.1'],
  ['of the proxy for an empty header', { 'x-forwarded-for': '' }, '10.0.0.1'],
])('that a trusted proxy names is read %s', (_, headers, expected) => {
  expect(clientAddress({ socket: { remoteAddress: '10.0.0.1' }, headers }, trustedProxies)).toBe(expected)
})

it('is empty for a connection that is gone', () => {
  expect(clientAddress({ socket: {}, headers: {} }, new BlockList())).toBe('')
})

it.each(['10.0.0.0/33', 'proxy.example', '10.0.0.0/8,', '::1/129', '10.0.0.0/8/8'])(
  'trusts no proxy written as %s',
  (text) => {
    expect(() => readConfig({ PATCHBAY_TRUSTED_PROXIES: text })).toThrow('PATCHBAY_TRUSTED_PROXIES takes')
  },
)

it('tells listeners of its interruption, those that come later at once, and none that was removed', () => {
  const context = new RequestContext({ headers: {}, socket: {} })
  const told: string[] = []
  context.onInterrupt(() => told.push('removed'))()
  context.onInterrupt(() => told.push('before'))
  context.interrupt(new Failure('CANCELLED', 'the client went away'))
  context.onInterrupt(() => told.push('after'))
  expect(told).toEqual(['before', 'after'])
})
