import { describe, expect, it } from 'vitest'
import { findShippedDefinition, labelOf, SHIPPED_NAMES } from '../../../../src/engine/catalog/index.ts'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import { isJsonObject } from '../../../../src/foundation/json/index.ts'
import { deriveTools } from '../../../../src/tools/servers/derive-tools.ts'
import { ALL_TOOLS } from '../../../../src/tools/servers/tool-filter.ts'
import { geminiProblems } from './gemini-problems.ts'

function toolsOf(name: string) {
  const definition = findShippedDefinition(name)
  if (definition === undefined || !isJsonObject(definition.config)) throw new Error(`${name} has no config`)
  const { config } = definition
  const integration = {
    integrationName: name,
    label: labelOf(definition),
    config,
    plan: compilePlan(config),
    accountIds: ['a'],
  }
  return deriveTools({
    integrations: [integration],
    unified: [],
    filter: ALL_TOOLS,
    isReadOnly: false,
    isPrefixed: true,
  })
}

describe.each(SHIPPED_NAMES)('the tools of %s', (name) => {
  const { tools, warnings } = toolsOf(name)

  it('have names, arguments and texts that clients take', () => {
    expect(tools.length).toBeGreaterThan(0)
    expect(new Set(tools.map((tool) => tool.name)).size).toBe(tools.length)
    for (const tool of tools) {
      expect(tool.name).toMatch(/^[a-z0-9_]{1,48}$/)
      expect(tool.description.length).toBeLessThan(400)
      const properties = Object.keys(tool.inputSchema.properties as object)
      for (const property of properties) expect(property).toMatch(/^[A-Za-z0-9_.-]{1,64}$/)
      expect(properties).toEqual(expect.arrayContaining([...((tool.inputSchema.required ?? []) as readonly string[])]))
      expect(geminiProblems(tool.inputSchema)).toEqual([])
    }
  })

  it('lead every argument to one place', () => {
    for (const { inputSchema, target } of tools) {
      const read = [...Object.keys(target.parameters), ...Object.values(target.controls)]
      expect(read.sort()).toEqual(Object.keys(inputSchema.properties as object).sort())
    }
  })

  it('are the same bytes every time, and nothing of the definition is left out', () => {
    expect(JSON.stringify(toolsOf(name).tools)).toBe(JSON.stringify(tools))
    expect(warnings.filter(({ code }) => code === 'no_description')).toEqual([])
  })
})
