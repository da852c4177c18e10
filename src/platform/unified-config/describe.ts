import { READING_METHODS, sendsRecord } from '../../engine/definitions/index.ts'
import {
  compileMapping,
  type MergedMapping,
  type UnifiedModel,
  type UnifiedResource,
} from '../../engine/unified/index.ts'
import { Failure, type Violation } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'

/** What a model offers for an account. */
export interface ModelDescription {
  readonly model: UnifiedModel
  readonly integrationName: string
  readonly resources: readonly ResourceDescription[]
}

/** A resource, for an account. */
export interface ResourceDescription {
  readonly resource: UnifiedResource
  readonly methods: readonly MethodDescription[]
  readonly unmappedMethods: readonly string[]
  /** Names at the top of the schema that list or get sets, in the order of the schema. */
  readonly mappedFields: readonly string[]
  readonly unmappedFields: readonly string[]
}

/** A mapped method, for an account. */
export interface MethodDescription {
  readonly name: string
  readonly merged: MergedMapping
  readonly targetResource: string
  /** Several where the request decides. */
  readonly targetMethods: readonly string[]
  readonly filters: readonly FilterDescription[]
  readonly sortFields: readonly string[]
  readonly expandFields: readonly string[]
  readonly customFieldsMode: string
  readonly isPartial: boolean
  /** Fields that the body must have, at the top of the schema. */
  readonly requiredFields: readonly string[]
  /** Why it cannot be called. */
  readonly problems: readonly Violation[]
}

/** A filter that a method honours. */
interface FilterDescription {
  readonly field: string
  readonly operators: readonly string[]
  /** A request without it is rejected. */
  readonly isRequired: boolean
}

/** Fields that a mapping has no leaf for: the engine makes them. */
const MADE_BY_ENGINE = ['custom_fields', 'remote_id']

/** Describes the merged mappings of a resource; one whose layers do not fit together is described with its problems. */
export function describeResource(
  resource: UnifiedResource,
  mappings: ReadonlyMap<string, MergedMapping>,
): ResourceDescription {
  const methods = [...mappings].map(([name, merged]) => describeMethod(resource, name, merged))
  const fields = Object.keys(resource.schema.properties).filter((name) => !MADE_BY_ENGINE.includes(name))
  const set = new Set(READING_METHODS.flatMap((name) => fieldsSet(mappings.get(name), fields)))
  return {
    resource,
    methods,
    unmappedMethods: resource.methods.filter((name) => !mappings.has(name)),
    mappedFields: fields.filter((name) => set.has(name)),
    unmappedFields: fields.filter((name) => !set.has(name)),
  }
}

/** The fields that a mapping sets; one whose map is a single expression may set any. */
function fieldsSet(merged: MergedMapping | undefined, all: readonly string[]): readonly string[] {
  const response = objectOf(merged?.config.response)
  return typeof response.fields === 'string' ? all : Object.keys(objectOf(response.fields))
}

function describeMethod(resource: UnifiedResource, name: string, merged: MergedMapping): MethodDescription {
  const { config } = merged
  return {
    name,
    merged,
    targetResource: typeof config.resource === 'string' ? config.resource : '',
    targetMethods: targetsOf(config.method),
    filters: Object.entries(objectOf(config.filters)).map(([field, filter]) => ({
      field,
      operators: textsOf(objectOf(filter).ops),
      isRequired: objectOf(filter).required === true,
    })),
    sortFields: Object.keys(objectOf(config.sort)),
    expandFields: Object.keys(objectOf(config.expand)),
    customFieldsMode: String(objectOf(config.custom_fields).mode ?? 'none'),
    isPartial: objectOf(config.response).partial === true,
    requiredFields: requiredFields(resource, name, config),
    problems: problemsOf(resource, name, merged),
  }
}

/** What `validateBody` requires: a create is whole, an update needs what the integration asks for alone. */
function requiredFields({ node }: UnifiedResource, method: string, { request }: JsonObject): readonly string[] {
  if (!sendsRecord(method)) return []
  const ofSchema = method === 'create' ? node.required : []
  return [...new Set([...ofSchema, ...textsOf(objectOf(request).required)])]
}

function targetsOf(method: Json | undefined): readonly string[] {
  return typeof method === 'string' ? [method] : textsOf(objectOf(method).allowed)
}

function problemsOf(resource: UnifiedResource, name: string, merged: MergedMapping): readonly Violation[] {
  try {
    compileMapping(merged, resource, name)
    return []
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return error.violations.length > 0
      ? error.violations
      : [{ field: '', description: error.publicMessage, rule: error.reason }]
  }
}

function objectOf(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}

function textsOf(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((item: Json) => typeof item === 'string') : []
}
