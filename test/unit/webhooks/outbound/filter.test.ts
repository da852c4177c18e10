import { describe, expect, it } from 'vitest'
import { type Json, type JsonObject, parseJson } from '../../../../src/foundation/json/index.ts'
import { type FilteredEvent, parseFilter } from '../../../../src/webhooks/outbound/filter.ts'
import { cpuMsOf } from '../../../support/cpu-time.ts'

const EVENT: FilteredEvent = {
  id: '019a0000-0000-7000-8000-000000000001',
  type: 'record:updated',
  createdAt: new Date('2026-11-22T10:00:00.500Z'),
  integratedAccountId: '019a0000-0000-7000-8000-0000000000aa',
  payload: parseJson(`{
    "resource": "contacts", "amount": 10, "rate": 1.10, "big": 12345678901234567890, "open": true, "gone": null, "empty": "",
    "tags": ["vip", "beta"], "items": [{"id": 7}, {"id": 8}], "a.b": {"c d": "dotted"}, "list": [], "nested": {"x": 1}
  }`) as JsonObject,
}

function passes(filter: string, event: FilteredEvent = EVENT): boolean {
  const parsed = parseFilter(parseJson(filter) as JsonObject, 'filter')
  expect(parsed.violations).toEqual([])
  return parsed.passes(event)
}

describe('a filter', () => {
  it.each([
    ['{}', true],
    ['{"type": "record:updated"}', true],
    ['{"type": "record:created"}', false],
    ['{"type": {"$startsWith": "record:"}}', true],
    ['{"type": {"$endsWith": ":deleted"}}', false],
    ['{"id": {"$in": ["x", "019a0000-0000-7000-8000-000000000001"]}}', true],
    ['{"integrated_account_id": "019a0000-0000-7000-8000-0000000000aa"}', true],
    ['{"integrated_account_id": {"$exist": false}}', false],
    ['{"payload.resource": "contacts", "payload.amount": 10}', true],
    ['{"payload.resource": "contacts", "payload.amount": 11}', false],
    ['{"payload.amount": {"$gt": 9, "$lt": 11}}', true],
    ['{"payload.amount": {"$gte": 10, "$lte": 10}}', true],
    ['{"payload.amount": {"$gt": 10}}', false],
    ['{"payload.amount": {"$lt": 10}}', false],
    ['{"payload.rate": 1.1}', true],
    ['{"payload.rate": 1.100}', true],
    ['{"payload.rate": {"$gt": 1, "$lt": 1.2}}', true],
    ['{"payload.amount": 10.0}', true],
    ['{"payload.amount": 1e1}', true],
    ['{"payload.amount": 10.0000000000000000001}', false],
    ['{"payload.big": 12345678901234567890}', true],
    ['{"payload.big": 12345678901234567891}', false],
    ['{"payload.amount": "10"}', false],
    ['{"payload.amount": {"$gt": "1"}}', false],
    ['{"payload.resource": {"$gt": "b", "$lt": "d"}}', true],
    ['{"payload.open": true}', true],
    ['{"payload.open": 1}', false],
    ['{"payload.gone": null}', true],
    ['{"payload.gone": {"$exist": true}}', true],
    ['{"payload.missing": null}', false],
    ['{"payload.missing": {"$exist": false}}', true],
    ['{"payload.missing": {"$gt": 0}}', false],
    ['{"payload.missing": {"$neq": "x"}}', true],
    ['{"payload.missing": {"$nin": ["x"]}}', true],
    ['{"payload.resource": {"$neq": "contacts"}}', false],
    ['{"payload.resource": {"$nin": ["deals", "contacts"]}}', false],
    ['{"payload.empty": ""}', true],
    ['{"payload.nested": {"$exist": true}}', true],
    ['{"payload.nested": {"$eq": "[object Object]"}}', false],
    ['{"payload.tags": "beta"}', true],
    ['{"payload.tags": {"$neq": "beta"}}', false],
    ['{"payload.tags": {"$nin": ["none"]}}', true],
    ['{"payload.tags": {"$startsWith": "v"}}', true],
    ['{"payload.tags[0]": "beta"}', false],
    ['{"payload.list": {"$neq": "x"}}', true],
    ['{"payload.list": {"$exist": true}}', true],
    ['{"payload.items[1].id": 8}', true],
    ['{"payload.items.1.id": 8}', true],
    ['{"payload.items[2].id": {"$exist": true}}', false],
    [String.raw`{"payload[\"a.b\"][\"c d\"]": "dotted"}`, true],
    ['{"payload.a.b": {"$exist": true}}', false],
    ['{"payload.constructor": {"$exist": true}}', false],
    ['{"payload.__proto__": {"$exist": true}}', false],
    ['{"payload.tags.length": {"$exist": true}}', false],
    ['{"created_at": {"$gte": "2026-11-22T10:00:00.5Z"}}', true],
    ['{"created_at": {"$gt": "2026-11-22T11:00:00.499+01:00"}}', true],
    ['{"created_at": {"$lt": "2026-11-22T10:00:00Z"}}', false],
    ['{"created_at": {"$startsWith": "2026-11-22"}}', true],
    ['{"$or": [{"payload.amount": 1}, {"payload.open": true}]}', true],
    ['{"$or": [{"payload.amount": 1}, {"payload.open": false}]}', false],
    ['{"$and": [{"payload.amount": 10}, {"payload.open": false}]}', false],
    ['{"$not": {"payload.amount": 10, "payload.open": false}}', true],
    ['{"$not": {"$or": [{"payload.amount": 10}]}}', false],
    ['{"payload.amount": 10, "$not": {"type": {"$startsWith": "link"}}}', true],
  ])('%s: %s', (filter, expected) => {
    expect(passes(filter)).toBe(expected)
  })

  it('treats the account of an event without one as missing', () => {
    for (const integratedAccountId of [null, undefined])
      expect(passes('{"integrated_account_id": {"$exist": false}}', { ...EVENT, integratedAccountId })).toBe(true)
  })
})

const nested = (levels: number): Json => (levels === 0 ? { type: 'x' } : { $not: nested(levels - 1) })
const many = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`payload.k${index}`, 1]))

describe('a filter is rejected', () => {
  it.each<[string, JsonObject, string, string]>([
    ['an unknown field', { tenant: 'x' }, 'filter.tenant', 'is not a field; fields are id, type, created_at'],
    ['the payload itself', { payload: 'x' }, 'filter.payload', 'is not a field'],
    ['a broken path', { 'payload..x': 1 }, 'filter.payload..x', 'is not a field'],
    ['an unknown operator', { type: { $regex: 'a+' } }, 'filter.type.$regex', 'is not an operator; operators are $eq'],
    ['an unknown combination', { $nor: [] }, 'filter.$nor', 'is not a field'],
    ['no operator', { type: {} }, 'filter.type', 'must be a value or operators'],
    ['a list as value', { type: ['a'] }, 'filter.type', 'must be a number, true, false, null or a text'],
    ['an object to equal', { type: { $eq: {} } }, 'filter.type.$eq', 'must be a number'],
    ['$in without a list', { type: { $in: 'a' } }, 'filter.type.$in', 'must be a list of 1 to 100 values'],
    ['$in with 101 items', { type: { $in: Array(101).fill('a') } }, 'filter.type.$in', 'must be a list of 1 to 100'],
    ['$gt with a boolean', { 'payload.a': { $gt: true } }, 'filter.payload.a.$gt', 'must be a number or a text'],
    ['$startsWith with a number', { type: { $startsWith: 1 } }, 'filter.type.$startsWith', 'must be a text'],
    ['$exist with a text', { 'payload.a': { $exist: 'yes' } }, 'filter.payload.a.$exist', 'must be true or false'],
    ['a time that is none', { created_at: { $gt: 'today' } }, 'filter.created_at.$gt', 'must be a time such as'],
    ['a month that is none', { created_at: '2026-13-01T00:00:00Z' }, 'filter.created_at', 'must be a time such as'],
    ['$or without a list', { $or: { type: 'x' } }, 'filter.$or', 'must be a list of at least one filter'],
    ['an empty $and', { $and: [] }, 'filter.$and', 'must be a list of at least one filter'],
    ['$and of texts', { $and: ['x'] }, 'filter.$and[0]', 'must be an object of conditions'],
    ['a long text', { type: 'x'.repeat(1025) }, 'filter.type', 'at most 1024 characters'],
    ['101 conditions', many(101), 'filter', 'must have at most 100 conditions'],
    ['101 nested filters', { $or: Array(101).fill({}) }, 'filter', 'must have at most 100 conditions'],
    ['nesting of 9 levels', nested(9) as JsonObject, `filter${'.$not'.repeat(9)}`, 'must not be nested more than 8'],
  ])('for %s', (_, filter, field, description) => {
    const { violations } = parseFilter(filter, 'filter')
    expect(violations).toEqual([expect.objectContaining({ field, description: expect.stringContaining(description) })])
  })

  it('with all of its violations at once', () => {
    const { violations } = parseFilter({ a: 1, $or: [{ type: { $x: 1 } }, { 'payload.b': [] }] }, 'filter')
    expect(violations.map(({ field }) => field)).toEqual([
      'filter.a',
      'filter.$or[0].type.$x',
      'filter.$or[1].payload.b',
    ])
  })

  it('with at most 20 violations', () => {
    const unknown = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`k${index}`, 1]))
    expect(parseFilter(unknown, 'filter').violations).toHaveLength(20)
  })

  it('at its limits it is accepted', () => {
    for (const filter of [many(100), nested(8) as JsonObject, { type: { $in: Array(100).fill('a') } }])
      expect(parseFilter(filter, 'filter').violations).toEqual([])
  })
})

describe('100 conditions on the largest lists take less than 200 ms', () => {
  const list = (item: (index: number) => string) =>
    parseJson(`[${Array.from({ length: 120_000 }, (_, index) => item(index)).join()}]`)
  it.each<[string, Json, JsonObject]>([
    ['of texts, $in', list((index) => `"item ${index}"`), { $in: ['x', 'y'] }],
    ['of numbers, $eq', list((index) => `${index + 0.5}`), { $eq: -1 }],
    ['of numbers, $gt', list((index) => `${index + 0.5}`), { $gt: 1e9 }],
    ['of numbers that are no doubles, $eq', list((index) => `${index}.10`), { $eq: -1 }],
    ['of numbers that are no doubles, $gt', list((index) => `${index}.10`), { $gt: 1e9 }],
    ['of one long number, $eq', parseJson(`[1.${'7'.repeat(900_000)}]`), { $eq: -1 }],
  ])('%s', (_, items, condition) => {
    const { passes: test } = parseFilter({ $or: Array(50).fill({ 'payload.items': condition }) }, 'filter')
    const cpuMs = cpuMsOf(() => expect(test({ ...EVENT, payload: { items } })).toBe(false))
    expect(cpuMs).toBeLessThan(200)
  })
})

it('compares the first 1 000 items of a list', () => {
  const items = Array.from({ length: 1_001 }, (_, index) => index)
  const test = (condition: JsonObject) =>
    parseFilter({ 'payload.items': condition }, 'filter').passes({ ...EVENT, payload: { items } })
  expect([test({ $eq: 999 }), test({ $eq: 1_000 }), test({ $neq: 1_000 })]).toEqual([true, false, true])
})
