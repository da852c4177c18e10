import { describe, expect, test } from 'vitest'
import { findShippedDefinition, labelOf, SHIPPED_NAMES } from '../../../../src/engine/catalog/index.ts'
import { checkConfig, compilePlan, secretPaths } from '../../../../src/engine/definitions/index.ts'
import { shipped } from './shipped.ts'

describe.each(SHIPPED_NAMES)('%s', (name) => {
  const definition = shipped(name)
  const { category, config } = definition

  test('has nothing that a check complains about', () => {
    expect(checkConfig(config, 'integration', 'config')).toEqual([])
  })

  test('carries no secret', () => {
    expect(secretPaths(config)).toEqual([])
  })

  test('has the name of its file, one that an integration can have, label, category and a description of one sentence', () => {
    expect(definition.name).toBe(name)
    expect(name).toMatch(/^[a-z0-9_-]+$/)
    expect(category).not.toBe('')
    expect(labelOf(definition)).not.toBe(name)
    expect(config.description).toMatch(/^[A-Z][^.]{15,120}\.$/)
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
})

test('an unknown name is no definition', () => {
  expect(findShippedDefinition('no-such-api')).toBeUndefined()
  expect(findShippedDefinition('./github')).toBeUndefined()
})
