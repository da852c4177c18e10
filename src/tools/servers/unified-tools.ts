import { isReadingMethod, methodKind } from '../../engine/definitions/index.ts'
import type { FilterOperator, MappingPlan } from '../../engine/unified/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { accountControl, DRY_RUN_CONTROL, FIELDS_CONTROL, LIST_CONTROLS } from './tool-controls.ts'
import { buildToolInput } from './tool-input.ts'
import { singularNoun } from './tool-name.ts'
import type { ToolDraft } from './unnamed-tool.ts'

/** A method of a unified resource that accounts of a tool server have. */
export interface UnifiedToolMethod {
  readonly model: string
  readonly resource: string
  readonly method: string
  /** Of the resource. */
  readonly description: string
  /** JSON Schema of its records, with references resolved. */
  readonly schema: JsonObject
  /** By what a list can be filtered. */
  readonly filters: readonly UnifiedToolFilter[]
  /** What all these integrations require beyond the schema: `query.ticket`, `body.collections`. */
  readonly required: readonly string[]
  /** The accounts whose integrations map it, with the label of their integration. */
  readonly accounts: readonly { readonly id: string; readonly label: string }[]
}

/** A field that a list can be filtered by, and how. */
export interface UnifiedToolFilter {
  readonly field: string
  readonly op: FilterOperator
}

const HOW_TO_CONTINUE = 'Returns one page; pass next_cursor as cursor, with the same arguments, for the next.'
/** The fields that the service itself adds to records. */
const OWN_FIELDS = ['remote_id', 'created_at', 'updated_at', 'deleted'] as const

/** What each method does, to follow the name of the records. */
const VERBS: Readonly<Record<string, string>> = {
  list: 'Lists',
  get: 'Gets one of the',
  create: 'Creates one of the',
  update: 'Changes one of the',
  delete: 'Deletes one of the',
}

/** The tools of unified resources: one for all accounts whose integrations map the method. */
export function unifiedTools(methods: readonly UnifiedToolMethod[]): readonly ToolDraft[] {
  return methods.map((each): ToolDraft => {
    const { model, resource, method, accounts } = each
    const isList = method === 'list'
    const isWrite = !isReadingMethod(method)
    const labels = new Map(accounts.map(({ id, label }) => [id, label]))
    const accountIds = accounts.map(({ id }) => id)
    return {
      name: { method, resource: `${model}_${resource}`, isSingular: !isList },
      description: `${VERBS[method] ?? `Runs ${method} on`} ${resource.replaceAll('_', ' ')} (${model}). ${each.description}`,
      note: isList ? HOW_TO_CONTINUE : undefined,
      input: buildToolInput({
        required: [...(method === 'list' || method === 'create' ? [] : ['id']), ...each.required],
        querySchema: isList ? filterSchema(each) : {},
        bodySchema: isWrite && method !== 'delete' ? writeSchema(each) : {},
        hidden: new Set(OWN_FIELDS.map((field) => `body.${field}`)),
        noun: singularNoun(resource),
        hasBody: false,
        controls: [
          ...(isList ? LIST_CONTROLS : []),
          ...(isWrite ? [DRY_RUN_CONTROL] : [FIELDS_CONTROL]),
          ...accountControl(accountIds, (id) => labels.get(id) ?? ''),
        ],
      }),
      outputSchema: outputSchema(each),
      source: 'unified',
      kind: methodKind(method),
      tags: [model],
      verb: VERB_OF[method] ?? 'POST',
      target: { accountIds, model, resource, method, isList, isWrite },
    }
  })
}

const VERB_OF: Readonly<Record<string, string>> = { list: 'GET', get: 'GET', update: 'PATCH', delete: 'DELETE' }

/** What each operator asks of a value, to follow the name of the field; those without are not offered. */
const OPERATORS: Readonly<Partial<Record<FilterOperator, string>>> = {
  eq: 'is this',
  gt: 'is greater or later than this',
  gte: 'is this, greater or later',
  lt: 'is less or earlier than this',
  lte: 'is this, less or earlier',
  like: 'contains this',
}
/** Operators that another one makes superfluous. */
const COVERED_BY: Readonly<Partial<Record<FilterOperator, FilterOperator>>> = { gt: 'gte', lt: 'lte' }

function filterSchema({ schema, filters }: UnifiedToolMethod): JsonObject {
  const properties = isJsonObject(schema.properties) ? schema.properties : {}
  const offered = filters.filter(
    ({ field, op }) => !filters.some((other) => other.field === field && other.op === COVERED_BY[op]),
  )
  const entries = offered.flatMap(({ field, op }): [string, Json][] => {
    const meaning = OPERATORS[op]
    if (meaning === undefined) return []
    const value = filterOf(properties[field] ?? { type: 'string' })
    const description = `Only records whose ${field.replaceAll('_', ' ')} ${meaning}.`
    return [[filterParameter({ field, op }), { ...value, description }]]
  })
  return { type: 'object', properties: Object.fromEntries(entries) }
}

/** The arguments that a mapping requires: filters by equality, and fields of the body. */
export function requiredArguments({ request }: Pick<MappingPlan, 'request'>): readonly string[] {
  const filters = [...request.filters].filter(([, { isRequired, operators }]) => isRequired && operators.has('eq'))
  return [...filters.map(([field]) => `query.${field}`), ...request.required.map((field) => `body.${field}`)]
}

/** `status`, or with another operator `updated_at[gte]`, of which the argument is named `updated_at_gte`. */
function filterParameter({ field, op }: UnifiedToolFilter): string {
  return op === 'eq' ? field : `${field}[${op}]`
}

/** The filter of a parameter that `filterParameter` has named. */
export function filterOfParameter(name: string): UnifiedToolFilter {
  const [, field = name, op = 'eq'] = /^(.+)\[(\w+)\]$/.exec(name) ?? []
  return { field, op: op as FilterOperator }
}

/** The schema of a filter value: that of the field, or of one item of a list. References are filtered by id. */
function filterOf(property: Json): JsonObject {
  if (!isJsonObject(property)) return {}
  const { readOnly: _, ...rest } = property
  if (rest.type === 'array') return filterOf(rest.items ?? {})
  return rest.type === 'object' ? { type: 'string' } : rest
}

/** The fields of a write; those required of a creation. */
function writeSchema({ schema, method }: UnifiedToolMethod): JsonObject {
  const properties = isJsonObject(schema.properties) ? schema.properties : {}
  const { id: _, ...fields } = properties
  const { required, ...rest } = schema
  return {
    ...rest,
    properties: fields,
    additionalProperties: false,
    ...(method === 'create' && required !== undefined ? { required } : {}),
  }
}

/**
 * The structured result. Every field may be absent or null: projection leaves fields out, and APIs do. Nothing is required, so that
 * errors and cut results fit it too: clients check those as well.
 */
function outputSchema({ schema, method }: UnifiedToolMethod): JsonObject | undefined {
  if (method !== 'list' && method !== 'get') return undefined
  const record = nullable(schema)
  if (method === 'get') return { ...record, type: 'object' }
  return {
    type: 'object',
    properties: {
      records: { type: 'array', items: record },
      next_cursor: { type: ['string', 'null'] },
    },
  }
}

/**
 * A schema of records as they are read: nothing is required, `null` is valid everywhere, other values than the listed too.
 * Without descriptions, which the arguments have: they would cost as many tokens again.
 */
function nullable({ type, properties, items }: JsonObject): JsonObject {
  return {
    ...(typeof type === 'string' ? { type: [type, 'null'] } : {}),
    ...(isJsonObject(items) ? { items: nullable(items) } : {}),
    ...(isJsonObject(properties) ? { properties: mapObject(properties, nullable) } : {}),
  }
}

function mapObject(properties: JsonObject, change: (schema: JsonObject) => JsonObject): JsonObject {
  const entries = Object.entries(properties)
  return Object.fromEntries(entries.map(([name, property]) => [name, isJsonObject(property) ? change(property) : {}]))
}
