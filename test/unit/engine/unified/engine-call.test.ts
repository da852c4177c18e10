import { afterAll, describe, expect, it } from 'vitest'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import {
  callUnified,
  compileMapping,
  type MappingPart,
  mergeMappings,
  parseModel,
  previewUnified,
  type References,
  type UnifiedOutcome,
  type UnifiedRequest,
  unifiedPages,
} from '../../../../src/engine/unified/index.ts'
import type { MappingWarning } from '../../../../src/engine/unified/mapping.ts'
import { catchFailure, Failure } from '../../../../src/foundation/base/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  ACCOUNT,
  CLOCK,
  customers,
  planOf,
  type ScriptedAnswer,
  type SeenRequest,
  SHOP_MODEL,
  SHOP_PLAN,
  scriptedProxy,
} from './engine-support.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

const FIELDS = { id: 'id', name: 'label', status: 'state' }
const ENUMS = { status: { map: { A: 'open', Z: 'closed' } } }
const LIST = { response: { fields: FIELDS }, enums: ENUMS }
const WRITE = { ...LIST, request: { body: { label: 'name', state: 'status', mail: 'emails[0].address' } } }

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = []
  for await (const item of items) list.push(item)
  return list
}

interface Call {
  readonly outcome: UnifiedOutcome
  readonly seen: readonly SeenRequest[]
}

async function callMethod(
  method: string,
  config: JsonObject,
  request: UnifiedRequest,
  answers: readonly ScriptedAnswer[] | ((request: SeenRequest) => ScriptedAnswer) = [],
): Promise<Call> {
  const { proxy, seen } = scriptedProxy(evaluator, answers)
  const target = { plan: SHOP_PLAN, access: ACCOUNT, mapping: planOf(config, method) }
  return { outcome: await callUnified({ proxy, evaluator, clock: CLOCK }, target, request), seen }
}

async function failureOf(work: Promise<unknown>): Promise<Failure> {
  const failure = await catchFailure(() => work)
  if (!(failure instanceof Failure)) throw new Error(`it succeeded: ${JSON.stringify(failure)}`)
  return failure
}

function problemsOf(failure: Failure): string[] {
  return failure.violations.map(({ field, rule }) => `${field} ${rule}`)
}

const PEOPLE: ScriptedAnswer = { body: { items: [{ id: 1, label: 'Ada', state: 'A' }], next: 'c2' } }

describe('a list', () => {
  it('is one page with a cursor, mapped', async () => {
    const { outcome, seen } = await callMethod('list', LIST, { page: { limit: 1 } }, [PEOPLE])
    expect(outcome).toMatchObject({
      kind: 'ok',
      result: [{ id: '1', name: 'Ada', status: 'open', status_raw: 'A' }],
      page: { nextCursor: expect.any(String) },
      ignoredFilters: [],
      warnings: [],
    })
    expect(seen).toEqual([{ method: 'GET', path: '/people?limit=1', body: undefined }])
  })

  it('has one time for all its expressions, that of its begin', async () => {
    const { proxy, seen } = scriptedProxy(evaluator, [PEOPLE])
    let readings = 0
    const clock = { now: () => new Date(Date.UTC(2026, 0, 1, 0, 0, readings++)) }
    const response = { fields: { id: 'id', name: '$called_at' } }
    const mapping = planOf({ response, request: { query: { since: '$called_at', until: '$called_at' } } }, 'list')
    const outcome = await callUnified({ proxy, evaluator, clock }, { plan: SHOP_PLAN, access: ACCOUNT, mapping }, {})
    expect(seen[0]?.path).toContain('since=2026-01-01T00:00:00.000Z&until=2026-01-01T00:00:00.000Z')
    expect(outcome).toMatchObject({ result: [{ name: '2026-01-01T00:00:00.000Z' }] })
  })

  it('continues at its cursor', async () => {
    const first = await callMethod('list', LIST, {}, [PEOPLE])
    const cursor = first.outcome.kind === 'ok' ? first.outcome.page?.nextCursor : undefined
    const last = { body: { items: [{ id: 2 }] } }
    const { seen } = await callMethod('list', LIST, { page: { cursor: cursor ?? '' } }, [last])
    expect(seen[0]?.path).toContain('cursor=c2')
  })

  it('takes its records from an expression', async () => {
    const config = { ...LIST, response: { ...LIST.response, items: 'result.inner' } }
    const answer = { body: { items: [{ inner: [{ id: 1 }, { id: 2 }] }, { inner: { id: 3 } }] } }
    const { outcome } = await callMethod('list', config, {}, [answer])
    expect(outcome).toMatchObject({ result: [{ id: '1' }, { id: '2' }, { id: '3' }] })
  })

  it('is read page by page, and resumed', async () => {
    const { proxy } = scriptedProxy(evaluator, ({ path }) =>
      path.includes('cursor=c2') ? { body: { items: [{ id: 2 }] } } : PEOPLE,
    )
    const target = { plan: SHOP_PLAN, access: ACCOUNT, mapping: planOf(LIST) }
    const steps = await collect(unifiedPages({ proxy, evaluator, clock: CLOCK }, target, {}))
    expect(steps).toMatchObject([
      { kind: 'page', records: [{ id: '1' }] },
      { kind: 'page', records: [{ id: '2' }], state: null },
    ])
    const state = steps[0]?.state ?? null
    const resumed = await collect(unifiedPages({ proxy, evaluator, clock: CLOCK }, target, {}, state))
    expect(resumed).toMatchObject([{ page: 2, records: [{ id: '2' }] }])
  })
})

describe('steps after a list that is read page by page', () => {
  const some = { run_if: '$count($response) > 0' }
  const query = { ids: "$join($after.ids, ',')" }
  const after = [
    { name: 'ids', type: 'transform', expression: '$response.id' },
    { name: 'details', type: 'request', resource: 'users', method: 'list', query, ...some },
    { name: 'type', type: 'transform', expression: '$headers.`content-type`' },
    { name: 'merged', type: 'transform', expression: '$after.details[label != "gone"]', ...some, result: true },
  ]
  const config = { after, response: { fields: { id: 'id', name: 'label', tags: '$append($after.ids, $after.type)' } } }
  const PAGES: Record<string, JsonObject> = {
    '/people?limit=2': { items: [{ id: 'a' }, { id: 'b' }], next: 'c2' },
    '/people?cursor=c2&limit=2': { items: [{ id: 'c' }], next: 'c3' },
    '/users?ids=a,b&limit=2': {
      items: [
        { id: 'a', label: 'Ada' },
        { id: 'b', label: 'gone' },
      ],
    },
    '/users?ids=c&limit=2': { items: [{ id: 'c', label: 'Cleo' }] },
  }

  const read = async (
    answer: (request: SeenRequest) => ScriptedAnswer | undefined,
    state: JsonObject | null = null,
  ) => {
    const { proxy, seen } = scriptedProxy(
      evaluator,
      (request) => answer(request) ?? { body: PAGES[request.path] ?? { items: [] } },
    )
    const target = { plan: SHOP_PLAN, access: ACCOUNT, mapping: planOf(config) }
    const steps = await collect(unifiedPages({ proxy, evaluator, clock: CLOCK }, target, {}, state))
    return { steps, paths: seen.map(({ path }) => path) }
  }

  it('run for each page, with its records as $response, and may replace them', async () => {
    const { steps, paths } = await read(() => undefined)
    expect(steps).toMatchObject([
      { kind: 'page', page: 1, records: [{ id: 'a', name: 'Ada', tags: ['a', 'b', 'application/json'] }] },
      { kind: 'page', page: 2, records: [{ id: 'c', name: 'Cleo', tags: ['c', 'application/json'] }] },
      { kind: 'page', page: 3, records: [], state: null },
    ])
    expect(paths).toEqual([
      '/people?limit=2',
      '/users?ids=a,b&limit=2',
      '/people?cursor=c2&limit=2',
      '/users?ids=c&limit=2',
      '/people?cursor=c3&limit=2',
    ])
  })

  it('that meet a rate limit are a step, after which they run for the same page', async () => {
    let isLimited = true
    const { steps, paths } = await read(({ path }) => {
      if (!path.includes('ids=c') || !isLimited) return undefined
      isLimited = false
      return { status: 429, body: {} }
    })
    expect(steps.map(({ kind, page }) => `${kind} ${page}`)).toEqual(['page 1', 'rate_limited 2', 'page 2', 'page 3'])
    expect(steps[1]?.state).toEqual(steps[0]?.state)
    expect(paths.filter((path) => path.startsWith('/people'))).toHaveLength(3)
  })

  it('that fail end the list with the state of their page, from which it is resumed', async () => {
    const failed = await read(({ path }) => (path.includes('ids=c') ? { status: 403, body: {} } : undefined))
    expect(failed.steps).toMatchObject([{ kind: 'page' }, { kind: 'upstream_error', status: 403, page: 2 }])
    const state = failed.steps[1]?.state ?? null
    expect(state).toEqual(failed.steps[0]?.state)
    const resumed = await read(() => undefined, state)
    expect(resumed.steps).toMatchObject([
      { kind: 'page', page: 2, records: [{ id: 'c', name: 'Cleo' }] },
      { kind: 'page', page: 3 },
    ])
  })
})

describe('a rate limit in a list that is read page by page', () => {
  const before = [{ name: 'me', type: 'request', resource: 'users', method: 'get', id: "'me'" }]
  const owner = { resource: 'users', method: 'get', ids: 'owner', fields: { name: 'label' } }
  const config = {
    before,
    response: { fields: { id: 'id', owner: { id: 'owner' } } },
    expand: { owner },
  }

  it.each(['/users/me', '/users/7', '/people'])(
    'of %s is a step, after which the same page is read',
    async (limited) => {
      const denied = new Set<string>()
      const { proxy } = scriptedProxy(evaluator, ({ path }) => {
        if (path.startsWith(limited) && !denied.has(limited)) {
          denied.add(limited)
          return { status: 429, body: {} }
        }
        if (path.startsWith('/users')) return { body: { label: 'Bo' } }
        return path.includes('cursor')
          ? { body: { items: [] } }
          : { body: { items: [{ id: 1, owner: 7 }], next: 'c2' } }
      })
      const target = { plan: SHOP_PLAN, access: ACCOUNT, mapping: planOf(config) }
      const steps = await collect(unifiedPages({ proxy, evaluator, clock: CLOCK }, target, { expand: ['owner'] }))
      expect(steps.map(({ kind, page }) => `${kind} ${page}`)).toEqual(['rate_limited 1', 'page 1', 'page 2'])
      expect(steps[1]).toMatchObject({ records: [{ id: '1', owner: { id: '7', name: 'Bo' } }] })
    },
  )
})

describe('filters', () => {
  const config = {
    ...LIST,
    filters: {
      status: { ops: ['eq', 'in'], to: 'state' },
      seen_at: { ops: ['gte', 'lte'], to: { gte: 'since', lte: 'until' }, format: 'epoch' },
      name: { ops: ['like'], to: 'q', value: "$op & ':' & $value" },
      age: { ops: ['gt'] },
      is_active: { ops: ['eq'], to: 'active' },
    },
    sort: { name: { asc: { order: "'label'" }, desc: { order: "'-label'" } } },
    request: { query: { older_than: '$filters.age.gt', archived: false } },
  }

  it.each<[string, UnifiedRequest, string]>([
    [
      'an enumeration in the words of the provider',
      { filters: [{ field: 'status', op: 'eq', value: 'open' }] },
      'state=A',
    ],
    ['a list of values', { filters: [{ field: 'status', op: 'in', value: 'open, closed' }] }, 'state=A&state=Z'],
    [
      'a parameter per operator, in the format of the provider',
      {
        filters: [
          { field: 'seen_at', op: 'gte', value: '2024-01-02T03:04:05Z' },
          { field: 'seen_at', op: 'lte', value: '2024-01-03' },
        ],
      },
      'since=1704164645&until=1704240000',
    ],
    ['a computed value', { filters: [{ field: 'name', op: 'like', value: 'Ad' }] }, 'q=like:Ad'],
    ['a value that the request reads', { filters: [{ field: 'age', op: 'gt', value: '40' }] }, 'older_than=40'],
    ['a truth value', { filters: [{ field: 'is_active', op: 'eq', value: 'yes' }] }, 'active=true'],
    ['an order', { sort: { field: 'name', direction: 'desc' } }, 'order=-label'],
    ['parameters of the provider over all', { query: { archived: 'all' } }, 'archived=all'],
  ])('are sent: %s', async (_what, request, wanted) => {
    const { outcome, seen } = await callMethod('list', config, request, [PEOPLE])
    expect(seen[0]?.path).toContain(wanted)
    expect(outcome).toMatchObject({ ignoredFilters: [] })
  })

  const UNKNOWN: UnifiedRequest = {
    filters: [
      { field: 'shoe', op: 'eq', value: '1' },
      { field: 'score', op: 'eq', value: '1' },
      { field: 'status', op: 'ne', value: 'open' },
    ],
    sort: { field: 'age', direction: 'asc' },
  }

  it('are reported when the provider is not asked for them', async () => {
    const { outcome } = await callMethod('list', config, UNKNOWN, [PEOPLE])
    expect(outcome).toMatchObject({
      ignoredFilters: [
        { field: 'shoe', op: 'eq', reason: 'unknown_field' },
        { field: 'score', op: 'eq', reason: 'not_supported' },
        { field: 'status', op: 'ne', reason: 'operator_not_supported' },
        { field: 'age', op: 'sort', reason: 'not_supported' },
      ],
    })
  })

  it('are errors then where the caller is strict, before anything is sent', async () => {
    const failure = await failureOf(callMethod('list', config, { ...UNKNOWN, strictFilters: true }))
    expect(failure.reason).toBe('INVALID_FIELD')
    expect(problemsOf(failure)).toEqual(['shoe filter', 'score filter', 'status filter', 'sort_by filter'])
  })

  it.each<[string, string, Json]>([
    ['status', 'eq', 'frozen'],
    ['status', 'in', 'open,frozen'],
    ['seen_at', 'gte', 'yesterday'],
    ['age', 'gt', 'old'],
    ['is_active', 'eq', 'perhaps'],
    ['status', 'eq', ['open', 'closed']],
  ])('with a value that the field cannot have are errors: %s %s %j', async (field, op, value) => {
    const filters = [{ field, op, value }] as UnifiedRequest['filters']
    const failure = await failureOf(callMethod('list', config, { filters }))
    expect(problemsOf(failure)).toEqual([`${field} filter`])
  })
})

describe('a write', () => {
  const CREATED: ScriptedAnswer = { status: 201, body: { id: 9, label: 'Ada', state: 'A' } }

  it('sends the fields of the provider, with values of its enumerations', async () => {
    const body = { name: 'Ada', status: 'closed', emails: [{ address: 'a@b.c' }] }
    const { outcome, seen } = await callMethod('create', WRITE, { body }, [CREATED])
    expect(seen).toEqual([{ method: 'POST', path: '/people', body: { label: 'Ada', state: 'Z', mail: 'a@b.c' } }])
    expect(outcome).toMatchObject({ result: { id: '9', name: 'Ada', status: 'open' }, warnings: [] })
  })

  it.each<[string, JsonObject, Json]>([
    ['the first that maps to it', { map: { Y: 'open', A: 'open' } }, 'Y'],
    ['what the mapping writes', { map: { Y: 'open' }, write: { open: 17 } }, 17],
    ['itself where the mapping names none', {}, 'open'],
  ])('sends of an enumeration %s', async (_what, status, wanted) => {
    const { seen } = await callMethod(
      'update',
      { ...WRITE, enums: { status } },
      { id: '9', body: { status: 'open' } },
      [CREATED],
    )
    expect(seen[0]?.body).toEqual({ state: wanted })
  })

  it('merges fields of the provider over the body', async () => {
    const request = { body: { name: 'Ada' }, remoteFields: { label: 'Lady Ada', x: { y: null } } }
    const { seen } = await callMethod('create', WRITE, request, [CREATED])
    expect(seen[0]?.body).toEqual({ label: 'Lady Ada', x: { y: null } })
  })

  it('says which fields the mapping does not send', async () => {
    const { outcome } = await callMethod('create', WRITE, { body: { name: 'Ada', age: 3 } }, [CREATED])
    expect(outcome).toMatchObject({ warnings: [{ field: 'age', rule: 'not_mapped' }] })
  })

  it('clears a field with null', async () => {
    const { seen } = await callMethod('update', WRITE, { id: '9', body: { status: null } }, [CREATED])
    expect(seen).toEqual([{ method: 'PATCH', path: '/people/9', body: { state: null } }])
  })

  const READ = { name: 'read', type: 'request', resource: 'people', method: 'get', id: '$id', run_if: '$exists(tags)' }
  const MERGE = { ...READ, method: 'merge', body: { tags: 'tags' } }
  const SITE = '$firstNonEmpty(website, passport) ?? ($exists(website) or $exists(passport) ? null)'
  const EMPTIED = { website: null, passport: '' }
  it.each<[string, JsonObject, JsonObject, Json]>([
    ['of an empty list by a condition', { body: { tags: 'tags ? tags' } }, { tags: [] }, ['body.tags no_effect']],
    ['of a path of a reference', { body: { owner: 'owner.id' } }, { owner: null }, ['body.owner no_effect']],
    ['of $removeEmpty', { body: '$removeEmpty({"label": name, "age": age})' }, { age: null }, ['body.age no_effect']],
    ['that is not mapped', { body: { label: 'name' } }, { age: null, passport: '' }, ['body.age', 'body.passport']],
    [
      'within an object',
      { body: { city: 'address.city' } },
      { address: { city: null, street: null } },
      ['body.address.street'],
    ],
    [
      'of a status that only chooses',
      { body: { age: 'status = "Z" ? age' } },
      { status: null },
      ['body.status no_effect'],
    ],
    ['written as null', { body: { owner: 'owner.id ?? owner' } }, { owner: null }, { owner: null }],
    ['written as an empty list', { body: { tags: 'tags' } }, { tags: null }, { tags: [] }],
    ['written within an object', { body: { city: 'address.city' } }, { address: { city: null } }, { city: null }],
    ['beside another, empty too, for one place', { body: { site: SITE } }, EMPTIED, { site: null }],
    [
      'written under a condition',
      { body: { age: 'status = "Z" ? age' } },
      { status: 'closed', age: null },
      { age: null },
    ],
  ])('never loses an empty value without an error: %s', async (_title, request, body, expected) => {
    const call = callMethod('update', { ...LIST, request }, { id: '9', body }, [CREATED])
    if (!Array.isArray(expected)) expect((await call).seen[0]?.body).toEqual(expected)
    else {
      const problems = problemsOf(await failureOf(call))
      expect(problems).toEqual(expected.map((each) => (String(each).includes(' ') ? each : `${each} no_effect`)))
    }
  })

  it.each<[string, JsonObject, readonly string[]]>([
    ['a step that writes it', { after: [MERGE] }, ['PATCH', 'POST']],
    ['a value that a step computes', { before: [{ name: 't', type: 'transform', expression: 'tags' }] }, ['PATCH']],
  ])('counts %s as an effect of an empty value', async (_title, steps, methods) => {
    const request = { body: { label: 'name', list: '$before.t' } }
    const { seen } = await callMethod('update', { ...LIST, request, ...steps }, { id: '9', body: { tags: [] } }, [
      CREATED,
      CREATED,
    ])
    expect(seen.map(({ method }) => method)).toEqual(methods)
  })

  it('does not count a step that only reads', async () => {
    const config = { ...WRITE, after: [READ] }
    const failure = await failureOf(callMethod('update', config, { id: '9', body: { tags: [] } }, []))
    expect(problemsOf(failure)).toEqual(['body.tags no_effect'])
    expect(failure.message).toContain('body.tags has no effect: the mapping of this integration cannot clear it')
  })

  it('leaves empty values of a create out', async () => {
    const request = { body: { label: 'name', owner: 'owner.id', tags: 'tags ? tags' } }
    const body = { name: 'Ada', owner: null, tags: [] }
    const { seen } = await callMethod('create', { ...LIST, request }, { body }, [CREATED])
    expect(seen[0]?.body).toEqual({ label: 'Ada' })
  })

  it('of a delete answers the id', async () => {
    const { outcome, seen } = await callMethod('delete', {}, { id: '9' }, [{ status: 204, body: null }])
    expect(seen[0]).toMatchObject({ method: 'DELETE', path: '/people/9' })
    expect(outcome).toMatchObject({ result: { id: '9' } })
  })

  it.each<[string, string, Json, string[]]>([
    ['no required field', 'create', {}, ['body.name required']],
    ['a required field that is null', 'update', { name: null }, ['body.name required']],
    ['no object', 'create', [], ['body type']],
    ['an unknown field', 'update', { nmae: 'Ada' }, ['body.nmae unknown_field']],
    [
      'read-only fields',
      'update',
      { id: '1', seen_at: '2024-01-01T00:00:00Z' },
      ['body.id read_only', 'body.seen_at read_only'],
    ],
    ['an unknown enumeration value', 'update', { status: 'frozen' }, ['body.status enum']],
    [
      'wrong types',
      'update',
      { name: 1, age: '1', score: 'x', is_active: 'yes', tags: 'a', owner: '7', address: [] },
      ['name', 'age', 'score', 'is_active', 'tags', 'owner', 'address'].map((field) => `body.${field} type`),
    ],
    [
      'wrong formats',
      'update',
      { born_on: '2024-1-2', balance: '1,5', country: 'Germany', website: 'x', emails: [{ address: 'x' }] },
      ['body.born_on', 'body.balance', 'body.country', 'body.website', 'body.emails[0].address'].map(
        (at) => `${at} format`,
      ),
    ],
    ['wrong lengths', 'update', { name: '' }, ['body.name minLength']],
    [
      'a nested object without what it must have',
      'update',
      { emails: [{ type: 'work' }] },
      ['body.emails[0].address required'],
    ],
    ['a value without counterpart', 'create', { name: 'A', status: 'closed' }, ['body.status enum']],
  ])('with %s is an error before anything is sent', async (_what, method, body, wanted) => {
    const enums =
      wanted.includes('body.status enum') && method === 'create' ? { status: { map: { A: 'open' } } } : ENUMS
    const failure = await failureOf(callMethod(method, { ...WRITE, enums }, { id: '9', body }))
    expect(failure.reason).toBe('INVALID_FIELD')
    expect(problemsOf(failure)).toEqual(wanted)
  })

  it('is checked in the words in which arguments are', async () => {
    const body = { name: '', age: 1.5, tags: 'a', emails: [null], status: null, owner: {}, address: { zip: '1' } }
    const { violations } = await failureOf(callMethod('update', WRITE, { id: '9', body }))
    expect(violations.map(({ field, description }) => `${field} ${description}`)).toEqual([
      'body.name must have at least 1 character',
      'body.age must be integer, not number',
      'body.tags must be array, not string',
      'body.emails[0] must be object, not null',
      'body.owner.id is required',
      'body.address.zip is not a field of this resource; use remote_fields for what the model lacks',
    ])
  })

  it('has one problem for each field that is wrong', async () => {
    const tags = Array.from({ length: 1_001 }, () => 'a')
    const failure = await failureOf(callMethod('update', WRITE, { id: '9', body: { id: null, status: 'x', tags } }))
    expect(problemsOf(failure)).toEqual(['body.id read_only', 'body.status enum', 'body.tags maxItems'])
  })

  it('may have a number for an amount', async () => {
    const { seen } = await callMethod('update', WRITE, { id: '9', body: { balance: 12.5, age: 3.0 } }, [CREATED])
    expect(seen).toHaveLength(1)
  })

  it.each(['get', 'update', 'delete'])('or %s without an id is an error', async (method) => {
    expect(problemsOf(await failureOf(callMethod(method, WRITE, { body: {} })))).toEqual(['id required'])
  })

  it('of a method of the mapping passes its body on', async () => {
    const { seen } = await callMethod('merge', LIST, { id: '9', body: { other: 4 } }, [CREATED])
    expect(seen).toEqual([{ method: 'POST', path: '/people/9/merge', body: { other: 4 } }])
  })
})

describe('the target', () => {
  const config = { ...LIST, method: { expression: "$filters.name.eq ? 'search' : 'list'", allowed: ['list'] } }

  it('is chosen by an expression', async () => {
    const { seen } = await callMethod('list', config, {}, [PEOPLE])
    expect(seen).toHaveLength(1)
  })

  it('must be one of those allowed', async () => {
    const filters = { name: { ops: ['eq'] } }
    const request: UnifiedRequest = { filters: [{ field: 'name', op: 'eq', value: 'x' }] }
    const failure = await failureOf(callMethod('list', { ...config, filters }, request))
    expect(failure.reason).toBe('METHOD_NOT_DEFINED')
  })
})

describe('steps', () => {
  it('before the call are read by the request and the records', async () => {
    const before = [
      { name: 'me', type: 'request', resource: 'users', method: 'get', id: "'me'" },
      { name: 'skipped', type: 'transform', expression: '1', run_if: '$before.me.id = 0' },
      { name: 'team', type: 'transform', expression: "$before.me.team & '-' & $ctx.region" },
    ]
    const config = {
      ...LIST,
      before,
      request: { query: { team: '$before.team' } },
      response: { fields: { id: 'id', name: "label & ' of ' & $before.team" } },
    }
    const answers = [{ body: { id: 5, team: 'red' } }, PEOPLE]
    const { outcome, seen } = await callMethod('list', config, {}, answers)
    expect(seen.map(({ path }) => path)).toEqual(['/users/me', '/people?team=red-eu&limit=2'])
    expect(outcome).toMatchObject({ result: [{ name: 'Ada of red-eu' }] })
  })

  it('after the call may replace the answer', async () => {
    const after = [
      { name: 'again', type: 'request', resource: 'people', method: 'get', id: '$response.id', result: true },
    ]
    const answers = [{ body: { id: 9 } }, { body: { id: 9, label: 'Ada', state: 'Z' } }]
    const { outcome, seen } = await callMethod('create', { ...WRITE, after }, { body: { name: 'Ada' } }, answers)
    expect(seen.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /people', 'GET /people/9'])
    expect(outcome).toMatchObject({ result: { id: '9', name: 'Ada', status: 'closed' } })
  })

  it('after the call read the headers of its answer', async () => {
    const after = [{ name: 'type', type: 'transform', expression: "$headers.`content-type` & '!'" }]
    const response = { fields: { id: 'id', name: '$after.type' } }
    const { outcome } = await callMethod('get', { after, response }, { id: '1' }, [{ body: { id: 1 } }])
    expect(outcome).toMatchObject({ result: { id: '1', name: 'application/json!' } })
  })

  it('that fail end the call', async () => {
    const before = [{ name: 'me', type: 'request', resource: 'users', method: 'get', id: "'me'" }]
    const { outcome, seen } = await callMethod('list', { ...LIST, before }, {}, [{ status: 403, body: {} }])
    expect(outcome).toMatchObject({ kind: 'upstream_error', status: 403 })
    expect(seen).toHaveLength(1)
  })
})

describe('errors', () => {
  it('are worded by the mapping', async () => {
    const error = '{"status": 404, "code": "gone", "message": body.why, "fields": ["name"]}'
    const { outcome } = await callMethod('get', { ...LIST, error }, { id: '1' }, [{ status: 400, body: { why: 'No' } }])
    expect(outcome).toMatchObject({
      kind: 'upstream_error',
      status: 404,
      message: 'No',
      metadata: { code: 'gone', fields: ['name'] },
    })
  })

  it('are those of the proxy without a mapping; a rate limit is an outcome', async () => {
    const { outcome } = await callMethod('get', LIST, { id: '1' }, [{ status: 429, body: {} }])
    expect(outcome).toMatchObject({ kind: 'rate_limited', retryAfterSeconds: 60 })
  })
})

/** The schema of customers, where the owner is personal data. */
function sensitiveOwner(): JsonObject {
  const { schema } = customers()
  const { id: _id, remote_id: _remote, created_at: _created, updated_at: _updated, ...rest } = schema.properties
  const { deleted: _deleted, custom_fields: _custom, owner, ...properties } = rest
  return { ...schema, properties: { ...properties, owner: { ...owner, 'x-sensitive': true } } }
}

describe('expanded references', () => {
  const fields = { ...FIELDS, owner: { id: 'owner' }, friends: 'friends' }
  const single = { resource: 'users', method: 'get', ids: 'owner', fields: { name: 'label' } }
  const batch = { size: 2, query: { ids: "$join($ids, ',')" }, key: 'key' }
  const many = { resource: 'users', method: 'list', ids: 'friends', batch, fields: { name: 'label' } }
  const config = { response: { fields }, expand: { owner: single, friends: many } }

  it('are loaded once each', async () => {
    const people = [{ id: 1, owner: 7 }, { id: 2, owner: 7 }, { id: 3, owner: 8 }, { id: 4 }]
    const { outcome, seen } = await callMethod('list', config, { expand: ['owner'] }, ({ path }) =>
      path.startsWith('/users/') ? { body: { label: `user ${path.slice(7)}` } } : { body: { items: people } },
    )
    expect(seen.map(({ path }) => path)).toEqual(['/people?limit=2', '/users/7', '/users/8'])
    expect(outcome).toMatchObject({
      result: [
        { owner: { id: '7', name: 'user 7' } },
        { owner: { id: '7', name: 'user 7' } },
        { owner: { id: '8', name: 'user 8' } },
        { owner: null },
      ],
    })
  })

  it('are loaded in batches where the mapping says how', async () => {
    const { outcome, seen } = await callMethod('get', config, { id: '1', expand: ['friends'] }, ({ path }) =>
      path.startsWith('/users')
        ? { body: { items: path.includes('ids=a,b') ? [{ key: 'b', label: 'B' }] : [{ key: 'c', label: 'C' }] } }
        : { body: { id: 1, friends: ['a', 'b', 'c'] } },
    )
    expect(seen.map(({ path }) => path)).toEqual(['/people/1', '/users?ids=a,b&limit=2', '/users?ids=c&limit=1'])
    expect(outcome).toMatchObject({
      result: { friends: [{ id: 'a' }, { id: 'b', name: 'B' }, { id: 'c', name: 'C' }] },
    })
  })

  it('stay as they are, with a warning, when they cannot be loaded', async () => {
    const { outcome } = await callMethod('get', config, { id: '1', expand: ['owner'] }, ({ path }) =>
      path.startsWith('/users') ? { status: 404, body: {} } : { body: { id: 1, owner: 7 } },
    )
    expect(outcome).toMatchObject({ result: { owner: { id: '7' } }, warnings: [{ field: 'owner', rule: 'expand' }] })
  })

  it('are at most 50 one by one, unless the caller agrees to more', async () => {
    const items = Array.from({ length: 51 }, (_, id) => ({ id, owner: id }))
    const answer = ({ path }: SeenRequest): ScriptedAnswer =>
      path.startsWith('/users') ? { body: { label: 'x' } } : { body: { items } }
    const failure = await failureOf(callMethod('list', config, { expand: ['owner'] }, answer))
    expect(problemsOf(failure)).toEqual(['expand max'])
    const { seen } = await callMethod('list', config, { expand: ['owner'], expandUnbatched: true }, answer)
    expect(seen).toHaveLength(52)
  })

  it('must be known', async () => {
    const failure = await failureOf(callMethod('list', config, { expand: ['boss'] }))
    expect(failure.publicMessage).toContain('names boss, which cannot be expanded; there are friends, owner')
  })

  describe('that show fields of what they refer to', () => {
    const FRIEND = {
      key: 'b',
      label: 'B',
      state: 'A',
      since: '2024-01-02 03:04:05',
      amount: 'much',
      pass: 'P1',
      shoe: 40,
    }
    const shown = {
      name: 'label',
      status: 'state',
      seen_at: 'since',
      balance: 'amount',
      passport: 'pass',
      address: { city: "'x'", zip: 'shoe' },
      shoe: 'shoe',
    }
    const references: References = new Map([['shop/customers', { resource: customers(), enums: ENUMS }]])

    const expandFriends = async (layers: readonly MappingPart[], request: UnifiedRequest = {}) => {
      const { proxy } = scriptedProxy(evaluator, ({ path }) =>
        path.startsWith('/users') ? { body: { items: [FRIEND] } } : { body: { id: 1, friends: ['b'], state: '?' } },
      )
      const target = { plan: SHOP_PLAN, access: ACCOUNT, mapping: planOf(layers, 'get', references) }
      const outcome = await callUnified({ proxy, evaluator, clock: CLOCK }, target, {
        id: '1',
        expand: ['friends'],
        ...request,
      })
      return outcome.kind === 'ok' ? (outcome.result as JsonObject) : {}
    }
    const layerOf = (layer: MappingPart['layer'], fields: Json): MappingPart => ({
      layer,
      config: {
        resource: 'people',
        method: 'get',
        response: { fields: { id: 'id', friends: 'friends', status: 'state' } },
        expand: { friends: { ...many, fields } },
      },
    })

    it('are coerced as its own records are, with its enumerations, and without sensitive fields', async () => {
      const { friends, _warnings } = await expandFriends([layerOf('shipped', shown)])
      expect(friends).toEqual([
        {
          id: 'b',
          name: 'B',
          status: 'open',
          status_raw: 'A',
          seen_at: '2024-01-02T03:04:05Z',
          balance: null,
          address: { city: 'x' },
        },
      ])
      expect((_warnings as unknown as MappingWarning[]).map(({ field, rule }) => `${field} ${rule}`)).toEqual([
        'status enum',
        'friends.balance format',
        'friends.address unknown_field',
        'friends unknown_field',
      ])
    })

    it('show sensitive fields to callers that ask for them', async () => {
      const { friends } = await expandFriends([layerOf('shipped', shown)], { includeSensitive: true })
      expect(friends).toMatchObject([{ passport: 'P1' }])
    })

    it('keep what an environment adds beyond the schema, but not what the schema marks as sensitive', async () => {
      const added = {
        layer: 'environment',
        config: { expand: { friends: { fields: { shoe: 'shoe', passport: 'pass' } } } },
      } as const
      const { friends } = await expandFriends([layerOf('shipped', { name: 'label' }), added])
      expect(friends).toEqual([{ id: 'b', name: 'B', shoe: 40 }])
      const whole = { layer: 'account', config: { expand: { friends: { fields: '$' } } } } as const
      const { friends: all } = await expandFriends([layerOf('shipped', { name: 'label' }), whole])
      expect(all).toEqual([
        { id: 'b', key: 'b', label: 'B', state: 'A', since: FRIEND.since, amount: 'much', pass: 'P1', shoe: 40 },
      ])
    })

    it('name the expression that fails', async () => {
      const { friends, _warnings } = await expandFriends([
        layerOf('shipped', { name: 'label', status: '$error("no")' }),
      ])
      expect(friends).toEqual([{ id: 'b', name: 'B' }])
      expect(_warnings).toContainEqual(expect.objectContaining({ field: 'friends.status', rule: 'expression' }))
    })
  })

  it('of a sensitive field are loaded for callers that ask for such fields alone', async () => {
    const schema = { ...SHOP_MODEL, resources: { customers: { methods: ['get'], schema: sensitiveOwner() } } }
    const resource = parseModel(schema).resources.get('customers') ?? customers()
    const merged = mergeMappings([{ layer: 'shipped', config: { resource: 'people', method: 'get', ...config } }])
    const mapping = compileMapping(merged, resource, 'get')
    const { proxy, seen } = scriptedProxy(evaluator, ({ path }) =>
      path.startsWith('/users') ? { body: { label: 'Bo' } } : { body: { id: 1, owner: 7 } },
    )
    const call = (includeSensitive: boolean) =>
      callUnified(
        { proxy, evaluator, clock: CLOCK },
        { plan: SHOP_PLAN, access: ACCOUNT, mapping },
        { id: '1', expand: ['owner'], includeSensitive },
      )
    const withheld = await call(false)
    expect(withheld).toMatchObject({ warnings: [{ field: 'owner', rule: 'expand' }] })
    expect(withheld).not.toHaveProperty('result.owner')
    expect(seen).toHaveLength(1)
    expect(await call(true)).toMatchObject({ result: { owner: { id: '7', name: 'Bo' } } })
  })

  it('pass a rate limit on', async () => {
    const { outcome } = await callMethod('get', config, { id: '1', expand: ['owner'] }, ({ path }) =>
      path.startsWith('/users') ? { status: 429, body: {} } : { body: { id: 1, owner: 7 } },
    )
    expect(outcome).toMatchObject({ kind: 'rate_limited' })
  })
})

describe('a dry run', () => {
  it('is an error where it would lose an empty value', async () => {
    const { proxy } = scriptedProxy(evaluator, [])
    const target = { plan: SHOP_PLAN, access: ACCOUNT, mapping: planOf(WRITE, 'update') }
    const request = { id: '9', body: { emails: [] } }
    const failure = await failureOf(previewUnified({ proxy, evaluator, clock: CLOCK }, target, request))
    expect(problemsOf(failure)).toEqual(['body.emails no_effect'])
  })

  it('shows the request and maps a sample, with a trace; nothing is sent', async () => {
    const { proxy, seen } = scriptedProxy(evaluator, [])
    const before = [{ name: 'me', type: 'request', resource: 'users', method: 'get', id: "'me'" }]
    const target = { plan: SHOP_PLAN, access: ACCOUNT, mapping: planOf({ ...WRITE, before }, 'create') }
    const sample = { status: 201, headers: {}, body: { id: 9, label: 'Ada', state: 'A' } }
    const preview = await previewUnified({ proxy, evaluator, clock: CLOCK }, target, {
      body: { name: 'Ada', age: 1 },
      sample,
    })
    expect(preview).toMatchObject({
      method: 'POST',
      url: 'https://api.test/people',
      body: '{"label":"Ada"}',
      providerBody: { label: 'Ada' },
      skippedSteps: ['me'],
      warnings: [{ field: 'age' }],
      mapped: [{ id: '9', name: 'Ada', status: 'open' }],
    })
    expect(preview.traces?.[0]).toContainEqual({
      field: 'name',
      expression: 'label',
      layer: 'shipped',
      lane: 'inline',
      value: 'Ada',
    })
    expect(seen).toEqual([])
  })
})
