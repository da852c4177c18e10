import { describe, expect, it } from 'vitest'
import { Router } from '../../src/api/rest/router.ts'
import { parseTemplate } from '../../src/api/rest/template.ts'

describe('a path pattern', () => {
  it.each([
    ['/a/{id}', 'literal one', 'id@1-2'],
    ['/a/{b.c}/d', 'literal one literal', 'b.c@1-2'],
    ['/{name=shelves/*/books/*}', 'literal one literal one', 'name@0-4*'],
    ['/v1/{name=a/**}', 'literal literal rest', 'name@1-*'],
    ['/a/*/{b}', 'literal one one', 'b@2-3'],
    ['/a/**', 'literal rest', ''],
  ])('%s is parsed', (pattern, segments, variables) => {
    const template = parseTemplate(pattern)
    expect(template.segments.map(({ kind }) => kind).join(' ')).toBe(segments)
    const shown = template.variables.map(
      ({ fieldPath, start, end, isMulti }) => `${fieldPath.join('.')}@${start}-${end ?? ''}${isMulti ? '*' : ''}`,
    )
    expect(shown.join(' ')).toBe(variables)
  })

  it('may end in a custom verb', () => {
    expect(parseTemplate('/a/{id}:stop')).toMatchObject({ verb: 'stop', segments: [{ text: 'a' }, { kind: 'one' }] })
  })

  it.each(['/a/**/b', '/a/{id', '/a/x*'])('%s is a bug in the contract', (pattern) => {
    expect(() => parseTemplate(pattern)).toThrow()
  })
})

describe('the router', () => {
  const router = new Router<string>()
  for (const [verb, pattern] of [
    ['GET', '/a/{id}'],
    ['PATCH', '/a/{id}'],
    ['POST', '/a/preview'],
    ['POST', '/a/{id}:stop'],
    ['GET', '/a/{id}/b'],
    ['GET', '/a/fixed/c'],
    ['GET', '/deep/{path=**}'],
    ['GET', '/deep/known'],
  ] as const)
    router.add(verb, parseTemplate(pattern), `${verb} ${pattern}`)

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
  ])('leads %s %s to %s', (verb, path, target) => {
    expect(router.match(verb, path)).toMatchObject({ kind: 'found', target })
  })

  it('gives the text of variables as the path has it', () => {
    expect(router.match('GET', '/deep/a%2Fb/c')).toMatchObject({ variables: [{ text: 'a%2Fb/c' }] })
    expect(router.match('POST', '/a/x:stop')).toMatchObject({ variables: [{ text: 'x' }] })
  })

  it('collects the verbs of every route the path could mean', () => {
    expect(router.match('DELETE', '/a/preview')).toEqual({ kind: 'other_verb', allow: ['GET', 'PATCH', 'POST'] })
    expect(router.match('GET', '/a')).toEqual({ kind: 'unknown' })
    expect(router.match('GET', '/a/')).toEqual({ kind: 'unknown' })
  })

  it('refuses two routes for one verb and path', () => {
    expect(() => router.add('GET', parseTemplate('/a/{other}'), 'x')).toThrow('two routes')
  })
})
