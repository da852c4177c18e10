import { beforeEach, expect, test, vi } from 'vitest'
import { compilePlan } from '../../src/definitions/index.ts'
import { compileUrl } from '../../src/expressions/index.ts'

vi.mock('../../src/expressions/index.ts', async (load) => {
  const original = await load<typeof import('../../src/expressions/index.ts')>()
  return { ...original, compileUrl: vi.fn(original.compileUrl) }
})

const names = Array.from({ length: 500 }, (_, at) => `name${at}`)
const config = {
  base_url: 'https://a.example',
  resources: Object.fromEntries(names.map((name) => [name, { list: { path: `/${name}` }, get: { path: '/one' } }])),
  actions: Object.fromEntries(names.map((name) => [name, { type: 'request', config: { path: `/${name}` } }])),
}
const compiled = () => vi.mocked(compileUrl).mock.calls.map(([, path]) => path)

beforeEach(() => {
  vi.mocked(compileUrl).mockClear()
})

test('of a large definition only the method that is called is compiled, once', () => {
  const { resources } = compilePlan(config)
  vi.mocked(compileUrl).mockClear()
  const methods = resources.get('name7')
  expect([resources.size, methods?.size, [...(methods?.keys() ?? [])]]).toEqual([500, 2, ['list', 'get']])
  expect(methods?.get('list')).toMatchObject({ resource: 'name7', method: 'list' })
  expect(methods?.get('list')).toBe(methods?.get('list'))
  expect(compiled()).toEqual(['/name7'])
})

test('of many actions only the one that is run is compiled, once', () => {
  const { actions } = compilePlan(config)
  vi.mocked(compileUrl).mockClear()
  expect(actions.get('name7')).toBe(actions.get('name7'))
  expect([actions.has('name8'), actions.has('toString'), actions.get('toString')]).toEqual([true, false, undefined])
  expect(compiled()).toEqual(['/name7'])
})
