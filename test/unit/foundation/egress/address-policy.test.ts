import { describe, expect, it } from 'vitest'
import { createEgressPolicy, findUrlViolation } from '../../../../src/foundation/egress/index.ts'
import { bypassUrls } from './bypass-urls.ts'

const closed = createEgressPolicy({ allow: '' })
const ADVICE = 'set PATCHBAY_EGRESS_ALLOW for servers, workers and commands to allow it'
const loopback = createEgressPolicy({ allow: ' 127.0.0.0/8, ::1/128 ' })

describe('findUrlViolation', () => {
  it.each([
    'https://api.github.com/repos?per_page=1',
    'http://example.com:8080/',
    'https://1.1.1.1/',
    'https://[2606:4700::6810:84e5]/',
    'https://bücher.example/',
    'https://metadata.example.com/',
    'https://localhost.example.com/',
  ])('passes %s', (url) => {
    expect(findUrlViolation(closed, url)).toBeUndefined()
  })

  it.each([
    ['no URL', '/relative', 'must be an absolute URL'],
    ['another scheme', 'ftp://example.com/', 'must use http or https'],
    ['a user name', 'https://me@example.com/', 'must not contain a user name or password'],
    ['a mail port', 'https://example.com:25/', 'must not use port 25, which belongs to another protocol'],
    ['a literal', 'http://2130706433/', `must not point to 127.0.0.1, which is not a public address: ${ADVICE}`],
    ['an IPv6 literal', 'http://[::1]/', `must not point to ::1, which is not a public address: ${ADVICE}`],
    [
      'a name of this machine',
      'http://x.localhost/',
      `must not point to x.localhost, which is not a public address: ${ADVICE}`,
    ],
  ])('refuses %s', (_kind, url, violation) => {
    expect(findUrlViolation(closed, url)).toBe(violation)
  })

  it('rejects every bypass except names that need the resolver', () => {
    const passed = bypassUrls(4_000).filter((url) => findUrlViolation(closed, url) === undefined)
    expect(passed.map((url) => new URL(url).hostname)).toEqual(['rebind.example', '127.0.0.1.wildcard.example'])
  })

  it('opens loopback, by address and by name, when the operator allows it', () => {
    for (const url of ['http://127.0.0.1:4000/', 'http://localhost:4000/', 'http://[::1]:4000/', 'http://127.1/']) {
      expect(findUrlViolation(loopback, url), url).toBeUndefined()
    }
    expect(findUrlViolation(loopback, 'http://169.254.169.254/')).toBeDefined()
    expect(findUrlViolation(loopback, 'http://metadata.google.internal/')).toBeDefined()
  })
})

describe('createEgressPolicy', () => {
  it.each(['127.0.0.1/40', 'localhost', '10.0.0.0/8;192.168.0.0/16'])('rejects %j and names the variable', (allow) => {
    expect(() => createEgressPolicy({ allow })).toThrowError(/PATCHBAY_EGRESS_ALLOW takes CIDR ranges/)
  })
})
