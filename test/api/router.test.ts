import { describe, expect, it } from 'vitest'
import { PathRouter, parsePathTemplate } from '../../src/api/rest/router.ts'

describe('a path pattern', () => {
  it.each([
    ['/a/{id}', 'literal one', 'id@1-2'],
    ['/a/{b.c}/d', 'literal one literal', 'b.c@1-2'],
    ['/{name=shelves/*/books/*}', 'literal one literal one', 'name@0-4*'],
    ['/v1/{name=a/**}', 'literal literal rest', 'name@1-*'],
    ['/a/*/{b}', 'literal one one', 'b@2-3'],
    ['/a/**', 'literal rest', ''],
  ])('%s is parsed', (pattern, segments, variables) => {
    const template = parsePathTemplate(pattern)
    expect(template.segments.map(({ kind }) => kind).join(' ')).toBe(segments)
    const shown = template.variables.map(
      ({ fieldPath, start, end, isMulti }) => `${fieldPath.join('.')}@${start}-${end ?? ''}${isMulti ? '*' : ''}`,
    )
    expect(shown.join(' ')).toBe(variables)
  })

  it.each([
    ['/a:stop', 'a', 'stop'],
    ['/a/{id}:stop', 'a *', 'stop'],
    ['/a/{id=b/*}:stop', 'a b *', 'stop'],
    ['/a/*:stop', 'a *', 'stop'],
    ['/a/**:stop', 'a **', 'stop'],
    ['/a/{id}:stop:now', 'a *', 'stop:now'],
    ['/a:b/c:stop', 'a:b c', 'stop'],
    ['/a:b:stop', 'a:b', 'stop'],
    ['/a:b/c', 'a:b c', ''],
    ["/a=b&c;d@e!$'()+,~/f.g-h_i", "a=b&c;d@e!$'()+,~ f.g-h_i", ''],
    ['/a%20b/%C3%A9', 'a%20b %C3%A9', ''],
    ['/{a.b_c.d1=x/*/y}/z', 'x * y z', ''],
  ])('%s has its segments and its custom verb', (pattern, segments, verb) => {
    const template = parsePathTemplate(pattern)
    const shown = template.segments.map((segment) =>
      segment.kind === 'literal' ? segment.text : segment.kind === 'one' ? '*' : '**',
    )
    expect([shown.join(' '), template.verb]).toEqual([segments, verb])
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
    '/a/**/b',
    '/{x=**}/b',
    '/{x=a/**/b}',
    '/***',
    '/{x.}',
    '/{.x}',
    '/{x..y}',
    '/{x-y}',
    '/{1x}',
    '/a/{id',
    '/a/id}',
    '/{x=/b}',
    '/{x={y}}',
    '/{x=a/{y=b}}',
    '/a{x}',
    '/{x}a',
    '/a{x}b',
    '/{x}{y}',
    '/{x}a{y}/s',
    '/{x=a}b',
    '/a/{x}/b/{x}',
    ':stop',
    '/:stop',
    '/a/:stop',
    '/:',
    '/a:',
    '/a/*:',
    '/a/**:',
    '/a/{x}:',
    '/a/{x=b:stop}',
    '/a:stop/',
  ])('"%s" is refused', (pattern) => {
    expect(() => parsePathTemplate(pattern)).toThrow('not a path template')
  })
})

describe('the router', () => {
  const router = new PathRouter<string>()
  for (const [verb, pattern] of [
    ['GET', '/a/{id}'],
    ['PATCH', '/a/{id}'],
    ['POST', '/a/preview'],
    ['POST', '/a/{id}:stop'],
    ['GET', '/a/{id}/b'],
    ['GET', '/a/fixed/c'],
    ['GET', '/deep/{path=**}'],
    ['GET', '/deep/known'],
    ['GET', '/all/**'],
    ['GET', '/tree/{path=root/**}:list'],
    ['GET', '/verb/*:a'],
    ['GET', '/verb/*:a:b'],
    ['HEAD', '/head/{id}'],
    ['GET', '/head/{id}'],
    ['*', '/any/{id}'],
    ['POST', '/any/{id}'],
  ] as const)
    router.add(verb, parsePathTemplate(pattern), `${verb} ${pattern}`)

  it.each([
    ['GET', '/a/1', 'GET /a/{id}'],
    ['GET', '/a/preview', 'GET /a/{id}'],
    ['POST', '/a/preview', 'POST /a/preview'],
    ['POST', '/a/1:stop', 'POST /a/{id}:stop'],
    ['GET', '/a/1:stop', 'GET /a/{id}'],
    ['GET', '/a/fixed/b', 'GET /a/{id}/b'],
    ['GET', '/a/fixed/c', 'GET /a/fixed/c'],
    ['GET', '/deep/known', 'GET /deep/known'],
    ['GET', '/deep/known/more', 'GET /deep/{path=**}'],
    ['GET', '/deep', 'GET /deep/{path=**}'],
    ['GET', '/deep/', 'GET /deep/{path=**}'],
    ['GET', '/all', 'GET /all/**'],
    ['GET', '/all/a/b', 'GET /all/**'],
    ['GET', '/tree/root:list', 'GET /tree/{path=root/**}:list'],
    ['GET', '/tree/root/a/b:list', 'GET /tree/{path=root/**}:list'],
    ['GET', '/verb/x:a', 'GET /verb/*:a'],
    ['GET', '/verb/x:a:b', 'GET /verb/*:a:b'],
    ['GET', '/verb/x:y:a', 'GET /verb/*:a'],
    ['HEAD', '/head/1', 'HEAD /head/{id}'],
    ['HEAD', '/a/1', 'GET /a/{id}'],
    ['PROPFIND', '/any/1', '* /any/{id}'],
    ['POST', '/any/1', 'POST /any/{id}'],
  ])('leads %s %s to %s', (verb, path, target) => {
    expect(router.match(verb, path)).toMatchObject({ kind: 'found', target })
  })

  it('gives the text of variables as the path has it', () => {
    expect(router.match('GET', '/deep/a%2Fb/c')).toMatchObject({ variables: [{ text: 'a%2Fb/c' }] })
    expect(router.match('POST', '/a/x:stop')).toMatchObject({ variables: [{ text: 'x' }] })
    expect(router.match('GET', '/tree/root:list')).toMatchObject({ variables: [{ text: 'root' }] })
    expect(router.match('GET', '/deep')).toMatchObject({ variables: [{ text: '' }] })
  })

  it('collects the verbs of every route the path could mean', () => {
    expect(router.match('DELETE', '/a/preview')).toEqual({ kind: 'other_verb', allow: ['GET', 'PATCH', 'POST'] })
    expect(router.match('GET', '/a')).toEqual({ kind: 'unknown' })
    expect(router.match('GET', '/a/')).toEqual({ kind: 'unknown' })
  })

  it('refuses two routes for one verb and path', () => {
    expect(() => router.add('GET', parsePathTemplate('/a/{other}'), 'x')).toThrow('two routes')
  })
})
