import { afterAll, describe, expect, test } from 'vitest'
import { listMappedIntegrations, SHIPPED_MODEL_NAMES } from '../../../../src/engine/catalog/index.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { checkMapping } from '../../../../src/engine/unified/check-mapping.ts'
import {
  type CaseResult,
  FIXTURE_NAMES,
  type FixtureCase,
  readFixtures,
  readGolden,
  writeGolden,
} from './fixture-file.ts'
import {
  caseResult,
  createInlineEvaluator,
  definitionPlan,
  type Evaluators,
  mappedMethods,
  methodConfig,
  recordsOf,
  resourceOf,
  runCase,
} from './harness.ts'
import { outputValidator } from './output-schema.ts'

const evaluators: Evaluators = { definition: createEvaluator(), mapping: createInlineEvaluator() }
afterAll(async () => {
  await evaluators.definition[Symbol.asyncDispose]()
  await evaluators.mapping[Symbol.asyncDispose]()
})

const MAPPINGS = SHIPPED_MODEL_NAMES.flatMap((model) =>
  listMappedIntegrations(model).map((integration) => [model, integration] as const),
)
const isWriting = process.env.WRITE_GOLDEN !== undefined

test('every fixture file belongs to a mapping', () => {
  const mapped = new Set(MAPPINGS.map(([model, integration]) => `${model}/${integration}`))
  expect(FIXTURE_NAMES.filter((name) => !mapped.has(name))).toEqual([])
})

describe.each(MAPPINGS)('%s of %s', (model, integration) => {
  const fixtures = readFixtures(model, integration)
  const golden = readGolden(model, integration)
  const methods = mappedMethods(model, integration)
  const cases = Object.entries(fixtures).flatMap(([resource, byName]) =>
    Object.entries(byName).map(([name, fixture]) => [`${resource} ${name}`, resource, name, fixture] as const),
  )
  const written: Record<string, Record<string, CaseResult>> = {}
  afterAll(() => {
    if (isWriting) writeGolden(model, integration, written)
  })

  test('has no problem, and no cases of resources that are not mapped', () => {
    const problems = [...methods].flatMap(([resource, names]) =>
      names.flatMap((method) =>
        checkMapping(
          methodConfig(model, integration, resource, method),
          { resource: resourceOf(model, resource), method, plan: definitionPlan(integration) },
          `${resource}.${method}`,
        ),
      ),
    )
    expect(problems).toEqual([])
    expect(Object.keys(fixtures).filter((resource) => !methods.has(resource))).toEqual([])
  })

  test.each([...methods])('%s has a case of each method, an empty list and an error', (resource, names) => {
    const byName = fixtures[resource] ?? {}
    expect([...new Set(Object.values(byName).map(({ method }) => method))].sort()).toEqual([...names].sort())
    const wanted = [...names.filter((name) => name === 'list' || name === 'get'), 'error']
    if (names.includes('list')) wanted.push('empty')
    expect(wanted.filter((name) => byName[name] === undefined)).toEqual([])
    expect(Object.values(byName).filter(({ docs }) => ![docs].flat().every((url) => /^https:\/\//.test(url)))).toEqual(
      [],
    )
  })

  test.each(cases)('%s', async (_title, resource, name, fixture) => {
    const run = await runCase(evaluators, { model, integration, resource }, fixture)
    const result = caseResult(run)
    written[resource] = { ...written[resource], [name]: result }
    if (!isWriting) expect(result).toEqual(golden[resource]?.[name])
    assertKind(name, result)
    const validate = outputValidator(model, resource, ['list', 'get'].includes(fixture.method))
    for (const record of recordsOf(run.outcome)) {
      if (fixture.method === 'delete') continue
      expect(validate(record), JSON.stringify(validate.errors)).toBe(true)
      expect(record._warnings, 'warnings').toBe(undefined)
    }
    assertEchoed(fixture, result)
    expect(textsIn(result.result).filter((text) => /\b(?:null|undefined|NaN)\b/.test(text))).toEqual([])
  })
})

/** The case of that name shows what its name says. */
function assertKind(name: string, result: CaseResult): void {
  if (/^error(_|$)/.test(name)) expect(result.outcome).toBe('upstream_error')
  else expect(result.outcome, JSON.stringify(result.error)).toBe('ok')
  if (name === 'empty') expect(result.result).toEqual([])
  if (name === 'list') expect(result.result).not.toEqual([])
  const records = [result.result].flat() as Record<string, unknown>[]
  if (name === 'deleted') expect(records.some(({ deleted }) => deleted === true)).toBe(true)
  if (name === 'custom_fields')
    expect(
      records.some(({ custom_fields: custom }) => custom !== null && Object.keys(custom as object).length > 0),
    ).toBe(true)
}

/** What was written is in the record that a create or update answers. */
function assertEchoed(fixture: FixtureCase, { outcome, result }: CaseResult): void {
  if (outcome !== 'ok' || !['create', 'update'].includes(fixture.method)) return
  const body = fixture.body as Record<string, unknown>
  const record = result as Record<string, unknown>
  const not = fixture.not_echoed ?? {}
  for (const [field, value] of Object.entries(body))
    if (!(field in not))
      expect({ [field]: shown(record[field]) }).toMatchObject({ [field]: shown(withoutNames(value)) })
}

/** A field without value is left out of the answer of a write. */
function shown(value: unknown): unknown {
  return value === undefined || (Array.isArray(value) && value.length === 0) ? null : value
}

/** References are compared by their ids: their names are not written. */
function withoutNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNames)
  if (typeof value !== 'object' || value === null) return value
  const { name: _, ...rest } = value as Record<string, unknown>
  return 'id' in value ? rest : value
}

/** A missing value that was joined to a text shows there. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}
