import { describe, expect, test } from 'vitest'
import { SHIPPED_NAMES } from '../../../../src/engine/catalog/index.ts'
import { compilePlan, FORM_ACTION } from '../../../../src/engine/definitions/index.ts'
import { optionsFrom } from '../../../../src/platform/links/form-option.ts'
import { readGoldenFile } from './golden-file.ts'
import { shipped } from './shipped.ts'

const FIELDS = SHIPPED_NAMES.flatMap((name) => {
  const steps = compilePlan(shipped(name).config).actions.get(FORM_ACTION)?.steps ?? []
  const fields = steps.flatMap((step) => (step.type === 'form' ? step.fields : []))
  return fields.map((field) => [`${name}: ${field.name}`, name, field] as const)
})

describe.each(FIELDS)('the form field %s', (_title, name, { remote, help_text, required }) => {
  test('offers what the API answered in the recorded call', () => {
    if (remote === undefined) return
    const recorded = readGoldenFile(name)?.calls.filter(({ call }) => call === `${remote.resource}.${remote.method}`)
    const options = recorded?.flatMap(({ result }) => optionsFrom(remote, Array.isArray(result) ? result : []))
    expect(options?.length).toBeGreaterThan(0)
    expect(options?.some(({ value, label }) => label !== value)).toBe(true)
  })

  test('says what an empty choice means', () => {
    expect(required || help_text !== undefined).toBe(true)
  })
})

test('some definitions have forms', () => {
  expect(new Set(FIELDS.map(([, name]) => name)).size).toBeGreaterThanOrEqual(7)
})
