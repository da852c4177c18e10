import { expect, it } from 'vitest'
import { OpenRequests } from '../../../../src/server/api/open-requests.ts'

it('holds what was added and not removed, and uses the places of what was removed', () => {
  const slots = new OpenRequests<{ readonly name: string }>()
  expect(slots.isEmpty).toBe(true)
  const [a, b] = ['a', 'b'].map((name) => slots.add({ name }))
  slots.remove(a ?? -1)
  expect(slots.add({ name: 'c' })).toBe(a)
  expect([...slots].map(({ name }) => name)).toEqual(['c', 'b'])
  for (const slot of [a, b]) slots.remove(slot ?? -1)
  expect([...slots]).toEqual([])
  expect(slots.isEmpty).toBe(true)
})
