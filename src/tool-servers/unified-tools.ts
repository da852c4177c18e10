import { isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import type { ToolDraft } from './draft.ts'
import type { ToolKind } from './tool.ts'
import { accountControl, DRY_RUN_CONTROL, FIELDS_CONTROL, LIST_CONTROLS } from './tool-controls.ts'
import { buildToolInput } from './tool-input.ts'
import { singularNoun } from './tool-name.ts'
import { simplifySchema } from './tool-schema.ts'

/** A method of a unified resource that accounts of a tool server have. */
export interface UnifiedToolMethod {
  readonly model: string
  readonly resource: string
  readonly method: string
  /** Of the resource. */
  readonly description: string
  /** JSON Schema of its records, with references resolved. */
  readonly schema: JsonObject
  /** Fields by which a list can be filtered for equality. */
  readonly filterFields: readonly string[]
  /** The accounts whose integrations map it, with the label of their integration. */
  readonly accounts: readonly { readonly id: string; readonly label: string }[]
}

const HOW_TO_CONTINUE = 'Returns one page; pass next_cursor as cursor for the next.'
const READS: ReadonlySet<string> = new Set(['list', 'get'])
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
    const isWrite = !READS.has(method)
    const labels = new Map(accounts.map(({ id, label }) => [id, label]))
    const accountIds = accounts.map(({ id }) => id)
    return {
      name: { method, resource: `${model}_${resource}`, isSingular: !isList },
      description: `${VERBS[method] ?? `Runs ${method} on`} ${resource.replaceAll('_', ' ')} (${model}). ${each.description}`,
      note: isList ? HOW_TO_CONTINUE : undefined,
      input: buildToolInput({
        required: method === 'list' || method === 'create' ? [] : ['id'],
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
      kind: kindOf(method),
      tags: [model],
      verb: VERB_OF[method] ?? 'POST',
      target: { accountIds, model, resource, method, isList, isWrite },
    }
  })
}

const VERB_OF: Readonly<Record<string, string>> = { list: 'GET', get: 'GET', update: 'PATCH', delete: 'DELETE' }

function kindOf(method: string): ToolKind {
  if (READS.has(method)) return 'read'
  return method === 'create' || method === 'update' || method === 'delete' ? 'write' : 'custom'
}

function filterSchema({ schema, filterFields }: UnifiedToolMethod): JsonObject {
  const properties = isJsonObject(schema.properties) ? schema.properties : {}
  const known = filterFields.map((field) => [field, properties[field] ?? { type: 'string' }] as const)
  return {
    type: 'object',
    properties: Object.fromEntries(known.map(([field, property]) => [field, filterOf(property)])),
  }
}

/** The schema of a filter value: that of the field, or of one item of a list. References are filtered by id. */
function filterOf(property: Json): Json {
  if (!isJsonObject(property)) return {}
  const { readOnly: _, ...rest } = property
  if (rest.type === 'array') return filterOf(rest.items ?? {})
  return rest.type === 'object' ? { type: 'string', description: rest.description ?? '' } : rest
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

/** The structured result. Every field may be absent or null: projection leaves fields out, and APIs do. */
function outputSchema({ schema, method }: UnifiedToolMethod): JsonObject | undefined {
  if (method !== 'list' && method !== 'get') return undefined
  const record = nullable(simplifySchema(withoutReadOnly(schema)))
  if (method === 'get') return { ...record, type: 'object' }
  return {
    type: 'object',
    properties: {
      records: { type: 'array', items: record },
      next_cursor: { type: ['string', 'null'] },
    },
    required: ['records'],
  }
}

function withoutReadOnly(value: JsonObject): JsonObject {
  return mapObjects(value, ({ readOnly: _, ...rest }) => rest)
}

/** A schema of records as they are read: nothing is required, `null` is valid everywhere, other values than the listed too. */
function nullable(schema: JsonObject): JsonObject {
  return mapObjects(schema, ({ required: _, additionalProperties: __, enum: ___, format: ____, ...rest }) =>
    typeof rest.type === 'string' ? { ...rest, type: [rest.type, 'null'] } : rest,
  )
}

/** Applies a change to every schema object; objects of properties are entered, not changed. */
function mapObjects(schema: JsonObject, change: (schema: JsonObject) => JsonObject): JsonObject {
  const entries = Object.entries(change(schema)).map(([key, value]): [string, Json] => {
    if (key === 'properties' && isJsonObject(value)) {
      const inner = Object.entries(value).map(([name, property]): [string, Json] => [
        name,
        isJsonObject(property) ? mapObjects(property, change) : property,
      ])
      return [key, Object.fromEntries(inner)]
    }
    return [key, key === 'items' && isJsonObject(value) ? mapObjects(value, change) : value]
  })
  return Object.fromEntries(entries)
}
