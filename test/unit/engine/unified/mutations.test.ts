import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import type { InputPath } from '../../../../src/engine/expressions/input-analysis.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { caseCount, someCases } from '../../../support/case-count.ts'
import { canonical, createInlineEvaluator, type Evaluators } from './harness.ts'
import {
  MAPPED_RESOURCES,
  mapRecord,
  placesIn,
  providerRecords,
  type RecordPath,
  readPaths,
  replaceAt,
} from './mapped-records.ts'
import { outputValidator } from './output-schema.ts'

const evaluators: Evaluators = { definition: createEvaluator(), mapping: createInlineEvaluator() }
/** Values of types that no API answers may need the sandbox. */
const tolerant: Evaluators = { definition: evaluators.definition, mapping: evaluators.definition }
afterAll(async () => {
  await evaluators.definition[Symbol.asyncDispose]()
  await evaluators.mapping[Symbol.asyncDispose]()
})

/** Each of them maps a record as often as it has places. */
describe.each(someCases(MAPPED_RESOURCES, 12))('%s', (_title, place) => {
  const validate = outputValidator(place.model, place.resource, true)

  test.each([
    ['missing', undefined],
    ['null', null],
  ])('a value that is %s changes only the fields that read it', async (_kind, value) => {
    const problems: string[] = []
    for (const source of await providerRecords(evaluators, place)) {
      const reads = readPaths(place, source.method)
      const before = await mapRecord(evaluators, place, source, source.record)
      for (const path of placesIn(source.record)) {
        const after = await mapRecord(evaluators, place, source, replaceAt(source.record, path, value))
        if (before === undefined || after === undefined) continue
        const unexpected = changedFields(before, after).filter((field) => !isReadBy(reads, field, path))
        const warnings = (after._warnings as JsonObject[] | undefined)?.filter(({ field }) => field !== 'id') ?? []
        if (unexpected.length > 0) problems.push(`${path.join('.')} changes ${unexpected.join(', ')}`)
        if (warnings.length > 0) problems.push(`${path.join('.')} warns ${JSON.stringify(warnings)}`)
        if (after.id !== null && !validate(after)) problems.push(`${path.join('.')} ${JSON.stringify(validate.errors)}`)
      }
    }
    expect(problems).toEqual([])
  })

  test('any value in any place gives a record that validates', async () => {
    const sources = await providerRecords(evaluators, place)
    await fc.assert(
      fc.asyncProperty(
        fc.nat(),
        fc.nat(),
        fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('', 'unheard of', -1, 1e21, true)),
        async (which, where, value) => {
          const source = sources[which % sources.length]
          if (source === undefined) return
          const places = placesIn(source.record)
          const path = places[where % places.length] as RecordPath
          const mapped = await mapRecord(tolerant, place, source, replaceAt(source.record, path, value as Json))
          if (mapped === undefined || mapped.id === null || mapped.id === '') return
          expect(validate(mapped), `${path.join('.')}: ${JSON.stringify(validate.errors)}`).toBe(true)
        },
      ),
      { numRuns: caseCount(6, 40) },
    )
  })
})

function changedFields(before: JsonObject, after: JsonObject): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) => key !== '_warnings' && canonical(before[key]) !== canonical(after[key]),
  )
}

/** Custom fields are what no field reads, and `remote_id` is the id. */
function isReadBy(reads: ReadonlyMap<string, readonly InputPath[] | undefined>, changed: string, path: RecordPath) {
  if (changed === 'custom_fields') return true
  const field = changed.replace(/_raw$/, '')
  const of = reads.get(field) ?? (field === 'remote_id' ? reads.get('id') : undefined)
  const names = path.filter((key) => typeof key === 'string')
  if (of === undefined) return reads.has(field)
  return of.some((read) => read.every((name, at) => at >= names.length || name === names[at]))
}
