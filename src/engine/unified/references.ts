import { isJsonObject, type JsonObject } from '../../foundation/json/index.ts'
import { type Coercion, coerceFields, compileFields, type FieldCoercion, warn } from './coerce.ts'
import { listExtraFields } from './extra-fields.ts'
import type { MergedMapping } from './mapping.ts'
import type { FieldMap, MappingConfig } from './mapping-schema.ts'
import type { UnifiedResource } from './model.ts'
import type { ObjectNode } from './schema-node.ts'

/** A resource that fields of others refer to, as its own records are mapped. */
export interface ReferencedResource {
  readonly resource: UnifiedResource
  /** Enumerations of the mapping of its list, else of its get; absent where it is not mapped. */
  readonly enums: MappingConfig['enums']
}

/** Referenced resources by name, `<model>/<resource>`. */
export type References = ReadonlyMap<string, ReferencedResource>

/** How an expanded value is made to fit the schema: by the fields of the reference itself, and those of what it refers to. */
export interface ExpandedValuePlan {
  /** Dotted unified field. */
  readonly field: string
  /** The model marks the field as sensitive. */
  readonly isSensitive: boolean
  readonly fields: readonly FieldCoercion[]
  /** Keys of the schemas, with those of raw values. */
  readonly knownKeys: ReadonlySet<string>
  /** Keys beyond the schemas that an environment or account adds. */
  readonly extraKeys: ReadonlySet<string>
  readonly keepsUnknown: boolean
}

/**
 * The resources that expanded references show more of than the references have themselves, such as their id and name.
 *
 * @param config merged, not necessarily checked
 */
export function listReferences({ expand: expansions = {} }: JsonObject, resource: UnifiedResource): readonly string[] {
  const names = Object.entries(isJsonObject(expansions) ? expansions : {}).flatMap(([field, expansion]) => {
    const { fields = {} } = isJsonObject(expansion) ? expansion : {}
    const name = referenceOf(resource, field)
    const own = objectNodeOf(resource, field)?.properties
    const isOwn = isJsonObject(fields) && Object.keys(fields).every((key) => own?.has(key) === true)
    return name === undefined || isOwn ? [] : [name]
  })
  return [...new Set(names)]
}

/** The resource that a field refers to. */
export function referenceOf({ schema }: UnifiedResource, field: string): string | undefined {
  const property = Object.hasOwn(schema.properties, field) ? schema.properties[field] : undefined
  const { items } = property ?? {}
  const name = (isJsonObject(items ?? null) ? (items as JsonObject) : property)?.['x-reference']
  return typeof name === 'string' ? name : undefined
}

/** The object that a field is, or a list of. */
export function objectNodeOf({ node }: UnifiedResource, field: string): ObjectNode | undefined {
  const property = node.properties.get(field)
  const found = property?.kind === 'array' ? property.items : property
  return found?.kind === 'object' ? found : undefined
}

/** Compiles what becomes of the values that a field is expanded with. */
export function compileExpandedValue(
  resource: UnifiedResource,
  field: string,
  map: FieldMap,
  { enums = {} }: Pick<MappingConfig, 'enums'>,
  layers: MergedMapping['layers'],
  referenced: ReferencedResource | undefined,
): ExpandedValuePlan {
  const extra = listExtraFields(map, layers, `expand.${field}.fields`)
  const extraFields = withPrefix(field, extra.fields)
  const node = objectNodeOf(resource, field)
  const own = node === undefined ? [] : compileFields(node, field, { enums, extraFields })
  const ownKeys = new Set(own.map(({ key }) => key))
  const theirs =
    referenced === undefined
      ? []
      : compileFields(referenced.resource.node, field, { enums: prefixed(field, referenced.enums ?? {}), extraFields })
  const fields = [...own, ...theirs.filter(({ key }) => !ownKeys.has(key))]
  return {
    field,
    isSensitive: resource.node.properties.get(field)?.isSensitive ?? false,
    fields,
    knownKeys: new Set(fields.flatMap(({ key, raw }) => (raw === undefined ? [key] : [key, raw.key]))),
    extraKeys: new Set([...extra.fields].map((name) => name.split('.')[0] ?? name)),
    keepsUnknown: extra.keepsUnknown,
  }
}

function withPrefix(field: string, names: Iterable<string>): ReadonlySet<string> {
  return new Set([...names].map((name) => `${field}.${name}`))
}

function prefixed<Value>(field: string, values: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${field}.${name}`, value]))
}

/** The value as the schemas want it: coerced, without sensitive fields unless the caller asks for them. */
export function coerceExpanded(plan: ExpandedValuePlan, given: JsonObject, coercion: Coercion): JsonObject {
  const value = coerceFields(plan.fields, given, coercion)
  if (value === undefined) return given
  for (const key of Object.keys(given)) {
    if (plan.knownKeys.has(key)) continue
    if ((plan.extraKeys.has(key) || plan.keepsUnknown) && key !== '__proto__') value[key] = given[key] ?? null
    else warn(coercion, plan.field, 'unknown_field', `${key.slice(0, 100)} is not in the schema and is left out`)
  }
  return value
}
