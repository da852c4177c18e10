import { describe, expect, test } from 'vitest'
import { findShippedDefinition, SHIPPED_NAMES } from '../../../../src/engine/catalog/index.ts'
import { checkConfig, findWarnings } from '../../../../src/engine/definitions/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'

const NOW = new Date('2026-11-29')

const warningsOf = (config: JsonObject) => findWarnings(config, 'c', NOW).map(({ field, rule }) => `${field} ${rule}`)
const EVERY = /status 400, 401, 403, 404, 422, 500 /

describe('an error expression', () => {
  test.each<[string, RegExp | undefined]>([
    ['status >= 400 ? {"status": status, "message": data.message}', undefined],
    ['status >= 400', undefined],
    ['data.ok = false ? {"status": 400} : status >= 400 ? {"status": status}', undefined],
    ['status = 404 ? {"status": 200, "result": []} : status >= 400 ? {"status": status}', undefined],
    ['data.ok = false ? {"status": 400}', EVERY],
    ['body.error', EVERY],
    ['null', EVERY],
    ['status >= 400 and $exists(data.error) ? {"status": status}', EVERY],
    ['status >= 500 ? {"status": status} : status = 404 ? {"status": 404}', /status 400, 401, 403, 422 /],
    ['status >= 400 and status != 404 ? {"status": status}', /status 404 /],
    ['env.STRICT ? {"status": 400}', EVERY],
  ])('%s', (error_expression, forgotten) => {
    const places: JsonObject[] = [
      { error_expression },
      { resources: { a: { list: { path: '/', error_expression } } } },
      { actions: { a: { type: 'request', config: { path: '/', error_expression } } } },
    ]
    for (const config of places) {
      expect(checkConfig(config, 'integration', 'c')).toEqual([])
      const [found, ...more] = findWarnings(config, 'c', NOW)
      expect(more).toEqual([])
      if (forgotten === undefined) expect(found).toBeUndefined()
      else {
        expect(found?.field).toMatch(/error_expression$/)
        expect(found?.rule).toBe('error_expression.forgets_status')
        expect(found?.description).toMatch(forgotten)
      }
    }
  })
})

test.each([
  'data = null',
  'data = "x"',
  '$type(data) = "object" and $not(data)',
  '$type(data) = "array"',
  'data.error = "x"',
  'data.error.message = "x"',
  'data.message = "x"',
])('an error expression that forgets an answer with %s is warned of', (condition) => {
  const error_expression = `${condition} ? null : {"status": status}`
  const [found] = findWarnings({ error_expression }, 'c', NOW)
  expect(found?.description).toMatch(/status 400, 401, 403, 404, 422, 500 /)
})

describe('a list whose example has records without id', () => {
  const warned = ['c.resources.a.list.id_path id_path.missing']
  const list = (settings: JsonObject, response: Json): JsonObject => ({
    resources: { a: { list: { path: '/', ...settings, examples: { response } } } },
  })

  test.each<[string, JsonObject, readonly string[]]>([
    ['is warned of', list({}, [{ pid: 1 }]), warned],
    ['also where a path leads to the records', list({ response_path: 'data' }, { data: [{ pid: 1 }] }), warned],
    ['or an expression', list({ response_path: '$.data' }, { data: [{ pid: 1 }, { pid: 2 }] }), warned],
    ['also of an id that is null', list({}, [{ id: null }]), warned],
    ['unless id_path says what identifies them', list({ id_path: 'pid' }, [{ pid: 1 }]), []],
    ['unless they have one', list({}, [{ id: 1 }]), []],
    ['unless the expression computes one', list({ response_path: '$.data.{"id": pid}' }, { data: [{ pid: 1 }] }), []],
    ['unless there are none', list({}, []), []],
    ['of one record it is not', { resources: { a: { get: { path: '/', examples: { response: [{ p: 1 }] } } } } }, []],
  ])('%s', (_what, config, expected) => {
    expect(warningsOf(config)).toEqual(expected)
  })
})

describe('a shipped definition', () => {
  test.each(SHIPPED_NAMES)('%s has no warning but of webhooks without signatures and of versions that end', (name) => {
    const warnings = findWarnings(findShippedDefinition(name)?.config ?? {}, '', NOW)
    expect(warnings.filter(({ rule }) => !/^(?:webhook|api_versions)\./.test(rule))).toEqual([])
  })

  test('forgets no status, as the sandbox evaluates its expressions', async () => {
    await using evaluator = createEvaluator()
    const forgotten: string[] = []
    for (const name of SHIPPED_NAMES)
      for (const expression of errorExpressions(findShippedDefinition(name)?.config ?? {}))
        for (const status of [400, 404, 500])
          for (const body of [null, {}, [], 'x']) {
            const response = { status, headers: {}, body }
            const result = await evaluator.evaluate(expression, { response, ...response, data: body }).catch(() => 'x')
            if (result === undefined || result === null) forgotten.push(`${name} ${status}`)
          }
    expect(forgotten).toEqual([])
  })
})

function errorExpressions(value: Json): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) =>
    key === 'error_expression' && typeof item === 'string' ? [item] : errorExpressions(item),
  )
}
