import { afterAll, expect, test } from 'vitest'
import { findShippedModel, SHIPPED_MODEL_NAMES } from '../../../../src/engine/catalog/index.ts'
import { checkModel } from '../../../../src/engine/unified/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { readFixtures } from './fixture-file.ts'
import { createInlineEvaluator, type Evaluators, modelOf, recordsOf, runCase } from './harness.ts'
import { MAPPED_RESOURCES } from './mapped-records.ts'

const evaluator = createInlineEvaluator()
const evaluators: Evaluators = { definition: evaluator, mapping: evaluator }
afterAll(() => evaluator[Symbol.asyncDispose]())

test('six models with 31 resources are shipped, each mapped for three integrations at least', () => {
  const resources = SHIPPED_MODEL_NAMES.map((model) => [model, modelOf(model).resources.size])
  expect(Object.fromEntries(resources)).toEqual({
    directory: 2,
    crm: 7,
    ticketing: 4,
    hris: 5,
    ats: 7,
    accounting: 6,
  })
  for (const model of SHIPPED_MODEL_NAMES) {
    const mapped = new Set(MAPPED_RESOURCES.filter(([, place]) => place.model === model).map(([, p]) => p.integration))
    expect(mapped.size, model).toBeGreaterThanOrEqual(3)
  }
})

test.each(SHIPPED_MODEL_NAMES)(
  '%s has no problem, describes every field, and refers to resources that exist',
  (name) => {
    const document = findShippedModel(name) ?? {}
    expect(checkModel(document, 'config')).toEqual([])
    const schemas = [...objectsIn(document.resources ?? {}), ...objectsIn(document.$defs ?? {})]
    const fields = schemas.flatMap(({ properties }) =>
      isJsonObject(properties ?? null) ? Object.entries(properties as JsonObject) : [],
    )
    expect(fields.length).toBeGreaterThan(0)
    expect(
      fields.filter(([, field]) => typeof (field as JsonObject).description !== 'string').map(([key]) => key),
    ).toEqual([])
    const references = schemas.flatMap(({ 'x-reference': reference }) =>
      typeof reference === 'string' ? [reference] : [],
    )
    const missing = references.filter((reference) => {
      const [model = '', resource = ''] = reference.split('/')
      return !SHIPPED_MODEL_NAMES.includes(model) || !modelOf(model).resources.has(resource)
    })
    expect(missing).toEqual([])
  },
)

/** Schemas and everything inside of them. */
function objectsIn(value: Json): JsonObject[] {
  if (typeof value !== 'object' || value === null) return []
  const inner = Object.values(value as JsonObject).flatMap(objectsIn)
  return isJsonObject(value) ? [value, ...inner] : inner
}

test('personal data is left out unless it is asked for', async () => {
  const places = MAPPED_RESOURCES.filter(([, place]) => place.model === 'hris' && place.resource === 'employees')
  expect(places.length).toBeGreaterThan(0)
  for (const [, place] of places) {
    const fixture = readFixtures(place.model, place.integration).employees?.get
    if (fixture === undefined) throw new Error('no case get')
    const keysWith = async (includeSensitive: boolean) => {
      const { outcome } = await runCase(evaluators, place, fixture, { includeSensitive })
      return Object.keys(recordsOf(outcome)[0] ?? {})
    }
    const hidden = ['date_of_birth', 'gender', 'home_address', 'personal_email']
    expect(await keysWith(true)).toEqual(expect.arrayContaining(hidden))
    expect((await keysWith(false)).filter((key) => hidden.includes(key.replace(/_raw$/, '')))).toEqual([])
  }
})
