import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { callSearchTool, checkArguments, type SearchableTool, toolError } from '../../../../src/tools/servers/index.ts'
import { FIELDS_CONTROL } from '../../../../src/tools/servers/tool-controls.ts'

describe('the fields to return', () => {
  it.each<[string, Json, string, string]>([
    ['more than 100', Array.from({ length: 101 }, (_, at) => `f${at}`), 'fields', 'maxItems'],
    ['one of more than 200 characters', ['x'.repeat(201)], 'fields[0]', 'maxLength'],
  ])('cannot be %s', (_, fields, field, rule) => {
    const schema = { type: 'object', properties: { fields: FIELDS_CONTROL.schema } }
    expect(checkArguments(schema, { fields })).toMatchObject([{ field, rule }])
  })
})

describe('a search of tools', () => {
  const named = (name: string): SearchableTool => ({
    name,
    title: name,
    description: '',
    inputSchema: {},
    annotations: {
      title: name,
      readOnlyHint: true,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: true,
    },
    tags: [],
  })
  const search = (query: string): JsonObject => {
    const space = {
      searchable: ['first', 'second'].map(named),
      canWrite: false,
      resultBytesMax: 10_000,
      unknownTool: () => toolError('validation', ''),
    }
    const outcome = callSearchTool(space, { name: 'search_tools', arguments: { query } })
    return 'result' in outcome ? outcome.result.structured : {}
  }
  const others = (count: number) => Array.from({ length: count }, (_, at) => `w${at}`).join(' ')

  it('rejects a query of more than 500 characters', () => {
    expect(search('x '.repeat(251))).toMatchObject({
      error: { fields: [{ field: 'query', description: 'must have at most 500 characters' }] },
    })
  })

  it('compares the first 32 distinct words', () => {
    expect(search(`${others(31)} w0 second`)).toMatchObject({ tools: [{ name: 'second' }] })
    expect(search(`${others(32)} second`)).toMatchObject({ tools: [] })
  })
})
