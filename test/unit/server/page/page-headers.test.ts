import { expect, it } from 'vitest'
import { pageHeaders } from '../../../../src/server/page/page-headers.ts'

it.each([
  [['https://a;script-src-elem', 'https://a,b', 'https://*', "'self'", 'https://a b'], "'none'"],
  [['https://*.com', 'https://app.example.com', 'http://[::1]:8080'], 'https://app.example.com http://[::1]:8080'],
])('origins %j are written as the ancestors %s', (frameOrigins, ancestors) => {
  const policy = pageHeaders({ frameOrigins })['content-security-policy']
  expect(policy?.split('; ').at(-1)).toBe(`frame-ancestors ${ancestors}`)
})
