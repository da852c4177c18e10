import { describe, expect, it } from 'vitest'
import { PathRouter, parsePathPattern } from '../../../../src/server/api/rest/router.ts'

describe('a path pattern', () => {
  it.each([
    ['/a', 'a'],
    ['/a/{id}', 'a {id}'],
    ['/a/{b_c}/d', 'a {b_c} d'],
    ["/a=b&c;d@e!$'()+,~/f.g-h_i", "a=b&c;d@e!$'()+,~ f.g-h_i"],
    ['/a%20b/%C3%A9', 'a%20b %C3%A9'],
  ])('%s has its segments', (pattern, segments) => {
    const shown = parsePathPattern(pattern).map((segment) =>
      segment.kind === 'literal' ? segment.text : `{${segment.field}}`,
    )
    expect(shown.join(' ')).toBe(segments)
  })

  it.each([
    '',
    '/',
    '//',
    'a',
    'a/b',
    '{x}',
    '/a/',
    '/a//b',
    '/{}',
    '/{=*}',
    '/{x=}',
    '/a b',
    '/a?b',
    '/a#b',
    '/ä',
    '/%',
    '/%2',
    '/a%2z',
    '/a/x*',
    '/{x.}',
    '/{x-y}',
    '/{1x}',
    '/a/{id',
    '/a/id}',
    '/a{x}',
    '/{x}a',
    '/{x}{y}',
    '/a/{x}/b/{x}',
  ])('"%s" is rejected as malformed', (pattern) => {
    expect(() => parsePathPattern(pattern)).toThrow('is not served over REST')
  })

  it.each(['/a/*', '/a/**', '/{name=shelves/*}', '/v1/{name=a/**}', '/a/{b.c}/d', '/a:stop', '/a/{id}:stop', '/a:b/c'])(
    '"%s", which google/api/http.proto allows, is rejected',
    (pattern) => {
      expect(() => parsePathPattern(pattern)).toThrow('is not served over REST')
    },
  )
})

describe('the router', () => {
  const router = new PathRouter<string>()
  for (const [verb, pattern] of [
    ['GET', '/a/{id}'],
    ['PATCH', '/a/{id}'],
    ['POST', '/a/preview'],
    ['GET', '/a/{id}/b'],
    ['GET', '/a/fixed/c'],
    ['HEAD', '/head/{id}'],
    ['GET', '/head/{id}'],
  ] as const)
    router.add(verb, parsePathPattern(pattern), `${verb} ${pattern}`)

  it.each([
    ['GET', '/a/1', 'GET /a/{id}'],
    ['GET', '/a/preview', 'GET /a/{id}'],
    ['POST', '/a/preview', 'POST /a/preview'],
    ['GET', '/a/1:stop', 'GET /a/{id}'],
    ['GET', '/a/fixed/b', 'GET /a/{id}/b'],
    ['GET', '/a/fixed/c', 'GET /a/fixed/c'],
    ['HEAD', '/head/1', 'HEAD /head/{id}'],
    ['HEAD', '/a/1', 'GET /a/{id}'],
  ])('leads %s %s to %s', (verb, path, target) => {
    expect(router.match(verb, path)).toMatchObject({ kind: 'found', target })
  })

  it('gives the text of variables as the path has it', () => {
    expect(router.match('GET', '/a/a%2Fb/b')).toMatchObject({ variables: [{ field: 'id', text: 'a%2Fb' }] })
  })

  it('collects the verbs of every route the path could mean', () => {
    expect(router.match('DELETE', '/a/preview')).toEqual({ kind: 'other_verb', allow: ['GET', 'PATCH', 'POST'] })
    expect(router.match('GET', '/a')).toEqual({ kind: 'unknown' })
    expect(router.match('GET', '/a/')).toEqual({ kind: 'unknown' })
  })

  it('rejects two routes for one verb and path', () => {
    expect(() => router.add('GET', parsePathPattern('/a/{other}'), 'x')).toThrow('two routes')
  })
})
