import { afterAll, expect, test } from 'vitest'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { bodySchema } from '../../../../src/engine/unified/model.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { someCases } from '../../../support/case-count.ts'
import { readFixtures } from './fixture-file.ts'
import { type CaseRun, createInlineEvaluator, type Evaluators, resourceOf, runCase } from './harness.ts'
import { MAPPED_RESOURCES, type MappedResource, mapRecord, providerRecords } from './mapped-records.ts'

const evaluators: Evaluators = { definition: createEvaluator(), mapping: createInlineEvaluator() }
afterAll(async () => {
  await evaluators.definition[Symbol.asyncDispose]()
  await evaluators.mapping[Symbol.asyncDispose]()
})

const WRITTEN = MAPPED_RESOURCES.filter(([, { methods }]) => methods.includes('create') || methods.includes('update'))

test.each(someCases(WRITTEN, 16))(
  '%s: a record that is written as it was read stays as it was',
  async (_title, place) => {
    const method = place.methods.includes('update') ? 'update' : 'create'
    const fixture = readFixtures(place.model, place.integration)[place.resource]?.[method]
    if (fixture === undefined) throw new Error(`no case ${method}`)
    for (const source of await providerRecords(evaluators, place)) {
      const read = await mapRecord(evaluators, place, source, source.record)
      if (read === undefined) continue
      const exchanges = fixture.exchanges.map(({ response }) => ({ response }))
      const given = requiredBy(place, method, fixture.body)
      const kept = writable(place, method, read)
      // A write of nothing is rejected.
      if (Object.keys({ ...given, ...kept }).length === 0) continue
      const { body, requests } = await write(kept, (fields) =>
        runCase(evaluators, place, { ...fixture, body: { ...given, ...fields }, exchanges }, { anyNumber: true }),
      )
      const sent = requests.find((request) => request.method !== 'GET' && isJsonObject(request.body ?? null))
      const written = overlay(source.record, unwrap(source.record, (sent?.body ?? {}) as JsonObject))
      const again = await mapRecord(evaluators, place, source, written)
      for (const [field, value] of Object.entries(body))
        if (!(field in (fixture.not_echoed ?? {})))
          expect({ [field]: comparable(again?.[field]) }).toEqual({ [field]: comparable(value) })
    }
  },
)

/** Writes a record without the values of enumerations that the provider answers, and does not take. */
async function write(
  body: JsonObject,
  run: (body: JsonObject) => Promise<CaseRun>,
): Promise<{ readonly body: JsonObject; readonly requests: CaseRun['requests'] }> {
  try {
    const { requests } = await run(body)
    return { body, requests }
  } catch (error) {
    const violations = error instanceof Failure ? error.violations : []
    const unknown = violations.filter(({ rule }) => rule === 'enum').map(({ field }) => field.split('.')[1] ?? '')
    if (unknown.length === 0) throw error
    return write(Object.fromEntries(Object.entries(body).filter(([field]) => !unknown.includes(field))), run)
  }
}

/** Required fields of a write, as its case has them: a record does not always tell what it belongs to. */
function requiredBy({ model, resource }: MappedResource, method: string, body: Json = {}): JsonObject {
  const { required = [] } = bodySchema(resourceOf(model, resource), method) as { readonly required?: readonly string[] }
  return Object.fromEntries(Object.entries(body as JsonObject).filter(([field]) => required.includes(field)))
}

/** The fields of a record that can be written and have a value: what is empty would be cleared. */
function writable({ model, resource }: MappedResource, method: string, read: JsonObject): JsonObject {
  const { properties } = bodySchema(resourceOf(model, resource), method) as { readonly properties: JsonObject }
  return Object.fromEntries(
    Object.entries(read).flatMap(([key, value]) => {
      const isOwn = key in properties && !['id', 'remote_id', 'custom_fields', 'deleted'].includes(key)
      const isEmpty = value === null || (Array.isArray(value) && value.length === 0)
      const kept = isOwn && !isEmpty ? known(properties[key] as JsonObject, value) : undefined
      return kept === undefined ? [] : [[key, kept]]
    }),
  )
}

/** A value without what the schema lacks (`<enum>_raw`), without `null`. */
function known(schema: JsonObject, value: Json): Json | undefined {
  if (value === null) return undefined
  if (Array.isArray(value)) return value.map((item: Json) => known(schema.items as JsonObject, item) ?? null)
  if (!isJsonObject(value)) return value
  const properties = (schema.properties ?? {}) as Readonly<Record<string, JsonObject>>
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => {
      const kept = properties[key] === undefined ? undefined : known(properties[key], item)
      return kept === undefined ? [] : [[key, kept]]
    }),
  )
}

/** The record inside of a body: the body, or what is in its only key (`{"ticket": {…}}`, `{"data": [{…}]}`). */
function unwrap(record: JsonObject, body: JsonObject): JsonObject {
  const [[key, value] = ['', null], ...others] = Object.entries(body)
  const inner = Array.isArray(value) ? (value[0] ?? null) : (value as Json)
  return others.length === 0 && !(key in record) && isJsonObject(inner) ? inner : body
}

/** The record with what was written; a value of another kind (an id where a record is answered) is not comparable and stays. */
function overlay(record: Json, written: Json): Json {
  if (isJsonObject(record) && isJsonObject(written)) {
    const merged: Record<string, Json> = { ...record }
    for (const [key, value] of Object.entries(written)) {
      const old = record[key]
      merged[key] = old === undefined || old === null ? value : overlay(old, value)
    }
    return merged
  }
  return kindOf(record) === kindOf(written) ? written : record
}

function kindOf(value: Json): string {
  if (Array.isArray(value)) return `list of ${value.length === 0 ? 'nothing' : kindOf(value[0] as Json)}`
  return isJsonObject(value) ? 'object' : 'scalar'
}

/** Without names of references, without raw values, with amounts as numbers. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparable)
  if (typeof value === 'string' && /^-?\d+\.\d+$/.test(value)) return Number(value)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, item]) => item !== null && !key.endsWith('_raw') && !(key === 'name' && 'id' in value))
      .map(([key, item]) => [key, comparable(item)]),
  )
}
