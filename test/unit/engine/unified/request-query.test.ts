import { describe, expect, it } from 'vitest'
import { checkUnifiedQuery, filtersSince } from '../../../../src/engine/unified/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'

const SINCE = '2026-01-01T00:00:00.000Z'

describe('the query of a unified call', () => {
  it.each<[JsonObject, readonly (readonly [string, string, unknown])[]]>([
    [{ status: 'open' }, [['status', 'eq', 'open']]],
    [{ status: ['open', 'closed'] }, [['status', 'in', ['open', 'closed']]]],
    [{ status: { in: 'open,closed,' } }, [['status', 'in', ['open', 'closed']]]],
    [{ size: { gt: 5, lte: '9' } }, [...([['size', 'gt', 5]] as const), ['size', 'lte', '9']]],
    [{ 'owner.id': '9', is_admin: false }, [...([['owner.id', 'eq', '9']] as const), ['is_admin', 'eq', false]]],
    [{ name: '' }, [['name', 'eq', '']]],
    [{ updated_at: null, name: {}, title: { eq: null } }, []],
    [{ sort_by: 'name', limit: '5', expand: 'owner', remote_query: { status: 'x' } }, []],
  ])('has the filters of %j', (query, filters) => {
    const read = checkUnifiedQuery(query)
    expect(read.violations).toEqual([])
    expect(read.query.filters).toEqual(filters.map(([field, op, value]) => ({ field, op, value })))
  })

  it('has options, as values or as texts', () => {
    const flags = {
      expand_unbatched: true,
      include_remote_data: 'true',
      include_sensitive: 'false',
      strict_filters: true,
    }
    const rest = { sort_by: '-updated_at', expand: 'owner, account,owner', limit: '50', remote_query: { a: ['b'] } }
    expect(checkUnifiedQuery({ ...flags, ...rest })).toEqual({
      violations: [],
      query: {
        filters: [],
        sort: { field: 'updated_at', direction: 'desc' },
        expand: ['owner', 'account'],
        expandUnbatched: true,
        includeRemoteData: true,
        includeSensitive: false,
        strictFilters: true,
        query: { a: ['b'] },
        limit: 50,
      },
    })
  })

  it.each<[JsonObject, string, string]>([
    [{ status: { is: 'open' } }, 'status[is]', 'filter.op'],
    [{ status: { eq: ['open'] } }, 'status[eq]', 'filter.value'],
    [{ status: { in: [] } }, 'status[in]', 'filter.value'],
    [{ status: { in: [{}] } }, 'status[in]', 'filter.value'],
    [{ 'a b': 'x' }, 'a b', 'filter.field'],
    [{ ['x'.repeat(129)]: 'x' }, 'x'.repeat(129), 'filter.field'],
    [{ dry_run: 'true' }, 'dry_run', 'reserved'],
    [{ sort_by: ['a'] }, 'sort_by', 'sort_by'],
    [{ sort_by: '--a' }, 'sort_by', 'sort_by'],
    [{ expand: 'a,,b' }, 'expand', 'expand'],
    [{ expand: Array.from({ length: 17 }, (_, index) => `f${index}`) }, 'expand', 'expand.count'],
    [{ strict_filters: 1 }, 'strict_filters', 'type'],
    [{ remote_query: 'x' }, 'remote_query', 'type'],
    [{ limit: 0 }, 'limit', 'int32.gte_lte'],
    [{ limit: '1e3' }, 'limit', 'int32.gte_lte'],
    [Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`f${index}`, 'x'])), 'filters', 'filter.count'],
  ])('rejects %j', (query, field, rule) => {
    expect(checkUnifiedQuery(query, 'query.').violations).toMatchObject([{ field: `query.${field}`, rule }])
  })
})

describe('the filters of an incremental list', () => {
  const honoured = (...operators: string[]) => ({ filters: new Map([['updated_at', operators]]) })
  const own = { field: 'updated_at', op: 'lt', value: 'x' } as const

  it.each([
    ['after the date', honoured('gte', 'gt'), [], SINCE, [{ field: 'updated_at', op: 'gt', value: SINCE }]],
    ['from the date', honoured('gte', 'lt'), [], SINCE, [{ field: 'updated_at', op: 'gte', value: SINCE }]],
    ['as given', honoured('gt'), [own], SINCE, [own]],
    ['none, where the mapping honours none', honoured('lt'), [], SINCE, []],
    ['none, without a date', honoured('gt'), [], undefined, []],
  ])('are %s', (_, mapping, filters, since, expected) => {
    expect(filtersSince(mapping, filters, since)).toEqual(expected)
  })
})
