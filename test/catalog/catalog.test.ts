import { describe, expect, test } from 'vitest'
import { CATALOG, findShippedDefinition, labelOf } from '../../src/catalog/index.ts'
import { checkConfig, compilePlan, secretPaths } from '../../src/definition/index.ts'

describe.each(CATALOG.map((definition) => [definition.name, definition] as const))(
  '%s',
  (name, { category, config }) => {
    test('has nothing that a check complains about', () => {
      expect(checkConfig(config, 'integration', 'config')).toEqual([])
    })

    test('carries no secret', () => {
      expect(secretPaths(config)).toEqual([])
    })

    test('is listed under a name that an integration can have, with label and category', () => {
      expect(name).toMatch(/^[a-z0-9_-]+$/)
      expect(category).not.toBe('')
      expect(labelOf({ name, category, config })).not.toBe('')
      expect(findShippedDefinition(name)?.config).toBe(config)
    })

    test('describes every method, and tags only resources that it has', () => {
      const { resources } = compilePlan(config)
      const defined = config.resources as Record<string, Record<string, { description?: string }>>
      const silent = Object.entries(defined).flatMap(([resource, methods]) =>
        Object.entries(methods).flatMap(([method, { description }]) => (description ? [] : [`${resource}.${method}`])),
      )
      expect(silent).toEqual([])
      expect(Object.keys(config.tool_tags ?? {}).filter((resource) => !resources.has(resource))).toEqual([])
    })
  },
)

test('names are unique', () => {
  expect(new Set(CATALOG.map(({ name }) => name)).size).toBe(CATALOG.length)
})
