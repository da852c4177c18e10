import { expect, test } from 'vitest'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import { LazyMap } from '../../../../src/foundation/base/index.ts'

const names = Array.from({ length: 500 }, (_, at) => `name${at}`)
const config = {
  base_url: 'https://a.example',
  resources: Object.fromEntries(names.map((name) => [name, { list: { path: `/${name}` }, get: { path: '/one' } }])),
  actions: Object.fromEntries(names.map((name) => [name, { type: 'request', config: { path: `/${name}` } }])),
}

test('of a large definition only the method that is called is compiled, once', () => {
  const { resources } = compilePlan(config)
  const methods = resources.get('name7')
  expect(methods).toBeInstanceOf(LazyMap)
  expect([resources.size, methods?.size, [...(methods?.keys() ?? [])]]).toEqual([500, 2, ['list', 'get']])
  expect(methods?.get('list')).toMatchObject({ resource: 'name7', method: 'list' })
  expect(methods?.get('list')).toBe(methods?.get('list'))
})

test('of many actions only the one that is run is compiled, once', () => {
  const { actions } = compilePlan(config)
  expect(actions).toBeInstanceOf(LazyMap)
  expect(actions.get('name7')).toBe(actions.get('name7'))
  expect([actions.has('name8'), actions.has('toString'), actions.get('toString')]).toEqual([true, false, undefined])
})
