import { isJsonObject, type Json, type JsonObject } from '../../../src/foundation/json/index.ts'

/** What a schema says of a value, its references and combinations read together. */
export interface SchemaView {
  /** Types by name; empty where the schema does not say. */
  readonly types: ReadonlySet<string>
  readonly properties: ReadonlyMap<string, Json>
  readonly required: ReadonlySet<string>
  readonly items: Json | undefined
  /** Values that are allowed; absent where any is. */
  readonly values: ReadonlySet<string> | undefined
  /** It may have properties that it does not name. */
  readonly isOpen: boolean
}

const REFERENCES_MAX = 20
const DEPTH_MAX = 12

/** Follows the references of a value within its document. */
export function resolve(root: JsonObject, value: Json | undefined): Json | undefined {
  let current = value
  for (let count = 0; count < REFERENCES_MAX; count++) {
    if (!isJsonObject(current) || typeof current.$ref !== 'string' || !current.$ref.startsWith('#/')) return current
    current = current.$ref
      .slice(2)
      .split('/')
      .map((key) => decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~'))
      .reduce<Json | undefined>(step, root)
  }
  return undefined
}

function step(value: Json | undefined, key: string): Json | undefined {
  if (Array.isArray(value)) return value[Number(key)]
  return isJsonObject(value) ? value[key] : undefined
}

/** Reads a schema with all that `allOf`, `oneOf` and `anyOf` say of it; what one of several alternatives has counts, what all require is required. */
export function viewSchema(root: JsonObject, schema: Json | undefined, depth = 0): SchemaView {
  const own = resolve(root, schema)
  if (!isJsonObject(own) || depth > DEPTH_MAX) return OPEN
  const parts = partsOf(own.allOf).map((part) => viewSchema(root, part, depth + 1))
  const alternatives = [...partsOf(own.oneOf), ...partsOf(own.anyOf)].map((part) => viewSchema(root, part, depth + 1))
  const views = [ownView(own), ...parts, ...alternatives]
  const declares = views.some(({ properties }) => properties.size > 0)
  return {
    types: new Set(views.flatMap(({ types }) => [...types])),
    properties: joinProperties(views),
    required: new Set([ownView(own), ...parts].flatMap(({ required }) => [...required])),
    items: anyOf(views.flatMap(({ items }) => (items === undefined ? [] : [items]))),
    values: unionOf(views),
    isOpen:
      !declares ||
      ownView(own).isOpen ||
      parts.some(({ isOpen, properties }) => isOpen && properties.size > 0) ||
      alternatives.some(({ isOpen, types }) => isOpen && types.has('object')),
  }
}

const OPEN: SchemaView = {
  types: new Set(),
  properties: new Map(),
  required: new Set(),
  items: undefined,
  values: undefined,
  isOpen: true,
}

function ownView(schema: JsonObject): SchemaView {
  const types = Array.isArray(schema.type) ? schema.type : schema.type === undefined ? [] : [schema.type]
  const properties = isJsonObject(schema.properties) ? Object.entries(schema.properties) : []
  const required = Array.isArray(schema.required) ? schema.required.map(String) : []
  const isReadOnly = (name: string) =>
    properties.some(([key, value]) => key === name && isJsonObject(value) && value.readOnly === true)
  const values = Array.isArray(schema.enum) ? schema.enum : schema.const === undefined ? undefined : [schema.const]
  return {
    types: new Set(types.map(String).filter((type) => type !== 'null')),
    properties: new Map(properties as [string, Json][]),
    required: new Set(required.filter((name) => !isReadOnly(name))),
    items: schema.items,
    values: values === undefined ? undefined : new Set(values.map(String)),
    isOpen: schema.additionalProperties !== undefined && schema.additionalProperties !== false,
  }
}

/** A property that several alternatives have is any of theirs. */
function joinProperties(views: readonly SchemaView[]): ReadonlyMap<string, Json> {
  const schemas = Map.groupBy(
    views.flatMap(({ properties }) => [...properties]),
    ([name]) => name,
  )
  return new Map([...schemas].map(([name, entries]) => [name, anyOf(entries.map(([, schema]) => schema)) ?? {}]))
}

function anyOf(schemas: readonly Json[]): Json | undefined {
  return schemas.length > 1 ? { anyOf: schemas } : schemas[0]
}

/** Values of a scalar: those of all parts that name some, unless an alternative without a list takes any. */
function unionOf(views: readonly SchemaView[]): ReadonlySet<string> | undefined {
  const lists = views.flatMap(({ values }) => (values === undefined ? [] : [values]))
  const takesAny = views.slice(1).some(({ values, types }) => values === undefined && types.size > 0)
  return lists.length === 0 || takesAny ? undefined : new Set(lists.flatMap((list) => [...list]))
}

function partsOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : []
}
