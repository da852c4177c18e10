import { describe, expect, it } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { parseProxyPath } from '../../../../src/server/api/http/proxy-path.ts'
import { parseProxyQuery } from '../../../../src/server/api/http/proxy-query.ts'

const ACCOUNT = '0190a2b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b'
const OWN = `integrated_account_id=${ACCOUNT}`

/** The rejection of something that must be refused. */
function rejectionOf(act: () => unknown): Failure {
  try {
    act()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
  throw new Error('was not refused')
}

describe('the query of a call', () => {
  it.each([
    ['a=1&b=two', { a: '1', b: 'two' }],
    ['a=1&a=2', { a: ['1', '2'] }],
    ['a[]=1', { a: ['1'] }],
    ['a[]=1&a[]=2&a=3', { a: ['1', '2', '3'] }],
    ['a[x]=1&a[y]=2', { a: { x: '1', y: '2' } }],
    ['a[x][y][]=1&a[x][y][]=2', { a: { x: { y: ['1', '2'] } } }],
    ['a%5Bx%5D=1', { a: { x: '1' } }],
    ['a[0]=x&a[1]=y', { a: { 0: 'x', 1: 'y' } }],
    ['q=a+b%26c', { q: 'a b&c' }],
    ['$filter=name%20eq%20%27x%27', { $filter: "name eq 'x'" }],
    ['a]=1&[b]=2&c[=3', { 'a]': '1', '[b]': '2', 'c[': '3' }],
    ['empty=', { empty: '' }],
    ['toString=1', { toString: '1' }],
    ['', {}],
  ])('leaves to the third party: %s', (text, query) => {
    expect(parseProxyQuery(`${text}&${OWN}`).query).toEqual(query)
  })

  it('keeps six names for this service', () => {
    const own = 'limit=50&next_cursor=abc&dry_run=true&include_raw=true&args[a]=1&args[b][]=2'
    expect(parseProxyQuery(`${OWN}&${own}&other=1`)).toEqual({
      accountId: ACCOUNT,
      limit: 50,
      cursor: 'abc',
      isDryRun: true,
      includeRaw: true,
      args: { a: '1', b: ['2'] },
      query: { other: '1' },
    })
  })

  it('needs none of them but the account', () => {
    expect(parseProxyQuery(`${OWN}&next_cursor=`)).toEqual({
      accountId: ACCOUNT,
      limit: undefined,
      cursor: undefined,
      isDryRun: false,
      includeRaw: false,
      args: undefined,
      query: {},
    })
  })

  it('takes arguments as one JSON object, which keeps their types', () => {
    const args = { n: 1, list: [true, null], text: '2' }
    const text = encodeURIComponent(JSON.stringify(args))
    expect(parseProxyQuery(`${OWN}&args=${text}`).args).toEqual(args)
  })

  it.each([
    [`${OWN}&args=1`, 'args', 'type'],
    [`${OWN}&args={"a":`, 'args', 'type'],
    [`${OWN}&args=[1]`, 'args', 'type'],
    [`${OWN}&args={}&args={}`, 'args', 'type'],
    [`${OWN}&args={"constructor":1}`, 'args.constructor', 'forbidden_key'],
    [`${OWN}&args[a]=1&args={}`, 'args', 'brackets'],
    ['a=1', 'integrated_account_id', 'required'],
    ['integrated_account_id=7', 'integrated_account_id', 'string.uuid'],
    [`${OWN}&limit=0`, 'limit', 'int32.gte_lte'],
    [`${OWN}&limit=10001`, 'limit', 'int32.gte_lte'],
    [`${OWN}&limit=ten`, 'limit', 'int32.gte_lte'],
    [`${OWN}&dry_run=yes`, 'dry_run', 'type'],
    [`${OWN}&include_raw=`, 'include_raw', 'type'],
    [`${OWN}&a=1&a[x]=2`, 'a[x]', 'brackets'],
    [`${OWN}&a[x]=1&a=2`, 'a', 'brackets'],
    [`${OWN}&a[][x]=1`, 'a[][x]', 'brackets'],
    [`${OWN}&a[b][c][d][e][f]=1`, 'a[b][c][d][e][f]', 'depth'],
    [`${OWN}&__proto__[x]=1`, '__proto__[x]', 'forbidden_key'],
    [`${OWN}&a[constructor]=1`, 'a[constructor]', 'forbidden_key'],
    [`${OWN}&a=%00`, 'a', 'nul'],
    [`${OWN}&a=%ff`, 'a', 'percent_encoding'],
    [`${OWN}&a=100%`, 'a', 'percent_encoding'],
    [`${OWN}&${'a=1&'.repeat(1_000)}`, 'query', 'too_many_parameters'],
  ])('is rejected with the parameter: %#', (text, field, rule) => {
    expect(rejectionOf(() => parseProxyQuery(text))).toMatchObject({
      reason: 'INVALID_FIELD',
      violations: [expect.objectContaining({ field, rule })],
    })
  })

  it('is rejected for everything at once', () => {
    const { violations } = rejectionOf(() => parseProxyQuery('limit=0&dry_run=1&a[][b]=2'))
    expect(violations.map(({ field }) => field)).toEqual(['a[][b]', 'integrated_account_id', 'limit', 'dry_run'])
  })
})

describe('verb and path of a call', () => {
  const method = (resource: string, name: string) => ({ kind: 'method', resource, method: name })

  it.each([
    ['GET', 'contacts', method('contacts', 'list'), undefined],
    ['POST', 'contacts', method('contacts', 'create'), undefined],
    ['GET', 'contacts/7', method('contacts', 'get'), '7'],
    ['PUT', 'contacts/7', method('contacts', 'update'), '7'],
    ['PATCH', 'contacts/7', method('contacts', 'update'), '7'],
    ['DELETE', 'contacts/7', method('contacts', 'delete'), '7'],
    ['GET', 'me/_', method('me', 'get'), undefined],
    ['POST', 'contacts/7/merge', method('contacts', 'merge'), '7'],
    ['DELETE', 'contacts/_/purge', method('contacts', 'purge'), undefined],
    ['GET', 'files/a%2Fb%20c', method('files', 'get'), 'a/b c'],
    ['POST', '_/sign_off', { kind: 'action', action: 'sign_off' }, undefined],
    ['GET', 'contacts/_/import', method('contacts', 'import'), undefined],
  ])('%s /proxy/%s', (verb, path, target, id) => {
    expect(parseProxyPath(verb, path)).toEqual({ kind: 'target', target, id })
  })

  it('POST where a record would be names a method of the resource', () => {
    expect(parseProxyPath('POST', 'contacts/import')).toEqual({
      kind: 'target',
      target: method('contacts', 'import'),
      id: undefined,
      otherVerbs: ['GET', 'PUT', 'PATCH', 'DELETE'],
    })
  })

  it.each([
    ['DELETE', 'contacts', ['GET', 'POST']],
    ['POST', 'contacts/_', ['GET', 'PUT', 'PATCH', 'DELETE']],
    ['GET', '_/sign_off', ['POST']],
  ])('%s /proxy/%s names no method', (verb, path, allow) => {
    expect(parseProxyPath(verb, path)).toEqual({ kind: 'other_verb', allow })
  })

  it.each(['', 'contacts/', 'contacts/7/', 'contacts//merge', 'contacts/7/merge/more', '_/sign_off/now'])(
    'lead nowhere: /proxy/%s',
    (path) => {
      expect(rejectionOf(() => parseProxyPath('POST', path)).reason).toBe('ROUTE_NOT_FOUND')
    },
  )

  it.each(['contacts/%', 'contacts/%ff', 'contacts/%00'])('are rejected: /proxy/%s', (path) => {
    expect(rejectionOf(() => parseProxyPath('GET', path)).violations).toMatchObject([{ field: 'path' }])
  })
})
