import { Failure } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'

/** One node of a sync as users write it and as it is stored (specification, element of `resources`). */
export type SyncResource = {
  /** `<resource_name>`, or `<unified_api_name>/<resource_name>`. */
  readonly resource: string
  readonly method: string
  /** Syncs one record: a value or a template. Absent: all that the method returns. */
  readonly id?: string
  /** Templates by parameter name. */
  readonly query?: JsonObject
  /** Name of an array-valued argument; the node runs once per element. */
  readonly loop_on?: string
  /** `resource` of the parent; the node runs once per record of it. */
  readonly depends_on?: string
  readonly persist?: boolean
  /** How far `{{previous_run_date}}` lies before the start of the last complete run. Absent: 0. */
  readonly look_back_seconds?: number
}

/** Optional texts of a node, in the order of the specification. */
const TEXTS = ['id', 'loop_on', 'depends_on'] as const

/**
 * Parses nodes of storage and clients. Other keys are dropped; `checkResources` validates the values.
 *
 * @throws Failure RESOURCES_INVALID when a value has the wrong type; rows that were checked never do
 */
export function readSyncResources(values: readonly Json[]): readonly SyncResource[] {
  return values.map(readSyncResource)
}

/** Tells whether the name has the form of a unified resource, whose records are always delivered. */
export function isUnifiedName(resource: string): boolean {
  return resource.includes('/')
}

function readSyncResource(value: Json, index: number): SyncResource {
  if (!isJsonObject(value)) throw invalidType(index, 'must be an object')
  const { resource, method, query, persist, look_back_seconds } = value
  if (typeof resource !== 'string' || typeof method !== 'string') throw invalidType(index, 'needs resource and method')
  if (query !== undefined && !isJsonObject(query)) throw invalidType(index, 'has a query that is not an object')
  if (persist !== undefined && typeof persist !== 'boolean')
    throw invalidType(index, 'has a persist that is not a boolean')
  if (look_back_seconds !== undefined && typeof look_back_seconds !== 'number')
    throw invalidType(index, 'has look_back_seconds that are not a number')
  return {
    resource,
    method,
    ...readTexts(value, index),
    ...(query === undefined ? {} : { query }),
    ...(persist === undefined ? {} : { persist }),
    ...(look_back_seconds === undefined ? {} : { look_back_seconds }),
  }
}

function readTexts(value: JsonObject, index: number): Pick<SyncResource, (typeof TEXTS)[number]> {
  const texts: { [Name in (typeof TEXTS)[number]]?: string } = {}
  for (const name of TEXTS) {
    const text = value[name]
    if (text === undefined) continue
    if (typeof text !== 'string') throw invalidType(index, `has a ${name} that is not a string`)
    texts[name] = text
  }
  return texts
}

function invalidType(index: number, description: string): Failure {
  const field = `resources[${index}]`
  return new Failure('RESOURCES_INVALID', `${field} ${description}`, {
    violations: [{ field, description, rule: 'resources.type' }],
  })
}
