import { listMappedIntegrations, SHIPPED_MODEL_NAMES } from '../../../../src/engine/catalog/index.ts'
import type { InputPath } from '../../../../src/engine/expressions/input-analysis.ts'
import { listInputPaths } from '../../../../src/engine/expressions/input-analysis.ts'
import type { MappingPlan } from '../../../../src/engine/unified/index.ts'
import { mapRecords } from '../../../../src/engine/unified/map-records.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { CALLED_AT } from './engine-support.ts'
import { readFixtures } from './fixture-file.ts'
import { type Evaluators, mappedMethods, mappingPlan, methodConfig, recordsOf, runCase } from './harness.ts'

/** A mapped resource of an integration. */
export interface MappedResource {
  readonly model: string
  readonly integration: string
  readonly resource: string
  readonly methods: readonly string[]
}

export const MAPPED_RESOURCES: readonly (readonly [string, MappedResource])[] = SHIPPED_MODEL_NAMES.flatMap((model) =>
  listMappedIntegrations(model).flatMap((integration) =>
    [...mappedMethods(model, integration)].map(
      ([resource, methods]) =>
        [`${model}/${resource} of ${integration}`, { model, integration, resource, methods }] as const,
    ),
  ),
)

/** A record of the provider, as a case has it. */
export interface ProviderRecord {
  readonly method: 'list' | 'get'
  readonly context: JsonObject
  /** Values by field and operator, which name the parent of records that do not tell it. */
  readonly filters: JsonObject
  readonly record: JsonObject
}

/** The records of the cases `get`, `list` and `custom_fields` of a resource, at most two of each. */
export async function providerRecords(evaluators: Evaluators, place: MappedResource): Promise<ProviderRecord[]> {
  const cases = readFixtures(place.model, place.integration)[place.resource] ?? {}
  const records: ProviderRecord[] = []
  for (const name of ['get', 'list', 'custom_fields']) {
    const fixture = cases[name]
    if (fixture === undefined) continue
    const { outcome } = await runCase(evaluators, place, fixture, { includeRemoteData: true })
    for (const { remote_data: record } of recordsOf(outcome).slice(0, 2))
      if (isJsonObject(record ?? null))
        records.push({
          method: fixture.method === 'list' ? 'list' : 'get',
          context: fixture.context ?? {},
          filters: filtersByOperator(fixture.filters ?? {}),
          record: record as JsonObject,
        })
  }
  return records
}

function filtersByOperator(filters: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(filters).map(([field, value]) => [field, isJsonObject(value) ? value : { eq: value }]),
  )
}

const plans = new Map<string, MappingPlan>()

/** The plan of a method, compiled once for all records of a test. */
function planOf(model: string, integration: string, resource: string, method: string): MappingPlan {
  const key = [model, integration, resource, method].join('/')
  const plan = plans.get(key) ?? mappingPlan(model, integration, resource, method)
  plans.set(key, plan)
  return plan
}

/** Maps one record; `undefined` when `drop_if` leaves it out. */
export async function mapRecord(
  { mapping }: Evaluators,
  { model, integration, resource }: MappedResource,
  { method, context, filters }: Omit<ProviderRecord, 'record'>,
  record: Json,
): Promise<JsonObject | undefined> {
  const plan = planOf(model, integration, resource, method)
  const scope = { calledAt: CALLED_AT, context, filters }
  const { records } = await mapRecords({ evaluator: mapping }, plan, [record], scope, { includeSensitive: true })
  return records[0]
}

/** What each unified field reads of the provider's record; `undefined`: all of it. */
export function readPaths(place: MappedResource, method: string): Map<string, readonly InputPath[] | undefined> {
  const config = methodConfig(place.model, place.integration, place.resource, method)
  const { fields = {} } = (config.response ?? {}) as { readonly fields?: JsonObject }
  return new Map(
    Object.entries(fields).map(([field, map]) => {
      const paths = textsIn(map).map(listInputPaths)
      return [field, paths.includes(undefined) ? undefined : paths.flatMap((path) => path ?? [])]
    }),
  )
}

function textsIn(value: Json): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value as JsonObject).flatMap(textsIn) : []
}

/** A place in a record: keys of objects and indexes of lists. */
export type RecordPath = readonly (string | number)[]

/** The places of all keys of a record; of a list only those of its first entry. */
export function placesIn(value: Json, path: RecordPath = []): RecordPath[] {
  if (Array.isArray(value)) return value.length === 0 ? [] : placesIn(value[0] as Json, [...path, 0])
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([key, item]) => [[...path, key], ...placesIn(item, [...path, key])])
}

/** A copy of a record with another value at a place, or none. */
export function replaceAt(record: Json, path: RecordPath, value: Json | undefined): Json {
  const copy = structuredClone(record) as Json
  let at = copy as Record<string | number, Json>
  for (const key of path.slice(0, -1)) at = at[key] as Record<string | number, Json>
  const last = path.at(-1) as string | number
  if (value === undefined) delete at[last]
  else at[last] = value
  return copy
}
