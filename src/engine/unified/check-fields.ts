import {
  canonicalJson,
  formatDotPath,
  isJsonNumber,
  isJsonObject,
  type Json,
  type JsonObject,
} from '../../foundation/json/index.ts'
import { isReadingMethod } from '../definitions/method-kinds.ts'
import { isInline } from './expression-verdicts.ts'
import { fieldExpressions, fieldLeaves } from './field-leaves.ts'
import type { MergedMapping } from './mapping.ts'
import type { UnifiedResource } from './model.ts'
import type { ObjectNode, SchemaNode } from './schema-node.ts'

/** Custom fields of providers, which the definition of one account has: Salesforce's `Tier__c`, Jira's `customfield_10010`, and the like. */
const CUSTOM_KEY = /\b\w+__c\b|\bcustom_?field_?\d+\b|\bcf_\w+\b|\bcustom\d+\b/i

/** The fields of the response: what is never set, constants of the wrong type, custom fields of one account, the lane. */
export function checkFields({ resource, method, merged }: CheckedMethod): readonly FindingAt[] {
  const fields = fieldsOf(merged)
  const leaves = fieldLeaves(fields)
  const { node } = resource
  return [
    ...(isReadingMethod(method) && !isPartial(merged) && isJsonObject(fields) ? neverSet(fields, node) : []),
    ...leaves.flatMap(({ path, value }) => mistyped(path, value, node.properties)),
    ...leaves.flatMap(({ path, value }) => hardCoded(path, value, merged)),
    ...(isJsonObject(fields) ? unusedEnums(fields, merged) : []),
    ...expressionsOf(merged).flatMap(({ path, value }) => outsideLane(path, value)),
  ]
}

/** Fields that list and get map from different expressions, although both answer the whole record. */
export function compareFields(
  { method, merged }: CheckedMethod,
  siblings: ReadonlyMap<string, MergedMapping>,
): readonly FindingAt[] {
  const other = siblings.get('get')
  if (method !== 'list' || other === undefined || isPartial(merged)) return []
  const [own, theirs] = [fieldsOf(merged), fieldsOf(other)]
  if (!isJsonObject(own) || !isJsonObject(theirs)) return []
  const names = new Set([...Object.keys(own), ...Object.keys(theirs)])
  return [...names]
    .filter((name) => canonicalJson(own[name] ?? null) !== canonicalJson(theirs[name] ?? null))
    .map((name) => ({
      at: ['response', 'fields', name],
      rule: 'methods.differ',
      severity: 'warning' as const,
      message: 'is mapped differently by list and get: share it under *, or set response.partial of list',
    }))
}

/** The field map of the response. */
export function fieldsOf({ config }: MergedMapping): Json | undefined {
  return isJsonObject(config.response) ? config.response.fields : undefined
}

function isPartial({ config }: MergedMapping): boolean {
  return isJsonObject(config.response) && config.response.partial === true
}

function neverSet(fields: JsonObject, { required }: ObjectNode): readonly FindingAt[] {
  return [...required]
    .filter((name) => fields[name] === undefined)
    .map((name) => ({
      at: ['response', 'fields', name],
      rule: 'field.never_set',
      severity: 'warning' as const,
      message: 'is required by the schema, and no expression sets it',
    }))
}

/** A constant that the schema does not allow, and an id that is no expression. */
function mistyped(
  path: readonly (string | number)[],
  value: Json,
  properties: ReadonlyMap<string, SchemaNode>,
): FindingAt[] {
  const at = ['response', 'fields', ...path]
  const [name] = path
  if (name === 'id' && path.length === 1 && typeof value !== 'string')
    return [
      { at, rule: 'id.type', severity: 'error', message: 'must be an expression of the id of the record, a text' },
    ]
  const node = typeof value === 'string' ? undefined : nodeAt(properties, path)
  if (node === undefined || node.kind === typeOf(value)) return []
  if (node.kind === 'string' && isJsonNumber(value)) return []
  if (node.kind === 'number' && typeOf(value) === 'integer') return []
  const message = `is a constant ${typeOf(value)}, and the schema has a ${node.kind}`
  return [{ at, rule: 'field.type', severity: 'error', message }]
}

function nodeAt(
  properties: ReadonlyMap<string, SchemaNode>,
  path: readonly (string | number)[],
): SchemaNode | undefined {
  const [name, ...rest] = path
  let node = properties.get(String(name))
  for (const step of rest) {
    if (node?.kind === 'array' && typeof step === 'number') node = node.items
    else if (node?.kind === 'object') node = node.properties.get(String(step))
    else return undefined
  }
  return node
}

function typeOf(value: Json): SchemaNode['kind'] {
  if (typeof value === 'boolean') return 'boolean'
  if (isJsonNumber(value)) return Number.isInteger(Number(value)) ? 'integer' : 'number'
  return 'string'
}

/** Layers that hold for many accounts. */
const SHARED_LAYERS: readonly (string | undefined)[] = ['shipped', 'base']

function hardCoded(path: readonly (string | number)[], value: Json, { layers }: MergedMapping): readonly FindingAt[] {
  const key = typeof value === 'string' ? CUSTOM_KEY.exec(value)?.[0] : undefined
  const at = ['response', 'fields', ...path]
  if (key === undefined || !SHARED_LAYERS.includes(layers.get(formatDotPath(at)))) return []
  const message = `reads ${key}, a custom field that one account has: map it in the layer of the account or environment`
  return [{ at, rule: 'custom_fields.hard_coded', severity: 'warning', message }]
}

/** An enum of a field that the field map leaves out has no effect on what is read. */
function unusedEnums(fields: JsonObject, { config }: MergedMapping): readonly FindingAt[] {
  return Object.keys(isJsonObject(config.enums) ? config.enums : {})
    .filter((field) => fields[field.split('.')[0] ?? ''] === undefined)
    .map((field) => ({
      at: ['enums', field],
      rule: 'enum.unused',
      severity: 'hint' as const,
      message: 'belongs to a field that response.fields does not set',
    }))
}

/** Expressions that are evaluated per record. */
function expressionsOf({ config }: MergedMapping) {
  const response = isJsonObject(config.response) ? config.response : {}
  const { fields, drop_if: dropIf } = response
  return [...fieldExpressions(fields, ['response', 'fields']), ...fieldExpressions(dropIf, ['response', 'drop_if'])]
}

function outsideLane(at: readonly (string | number)[], expression: string): readonly FindingAt[] {
  if (isInline(expression)) return []
  const message = 'is evaluated in a child process, at about a millisecond per page: a simpler expression is not'
  return [{ at, rule: 'expression.sandbox', severity: 'hint', message }]
}

/** A method of a resource as checks see it. */
export interface CheckedMethod {
  readonly resource: UnifiedResource
  readonly method: string
  readonly merged: MergedMapping
  /** Config of the integration; absent: not known. */
  readonly definition: JsonObject | undefined
}

/** Findings at a path of the merged config of one method, before it has its prefix. */
export type FindingAt = Omit<MappingFinding, 'path'> & { readonly at: readonly (string | number)[] }

/** Something that a check found in a mapping. */
export interface MappingFinding {
  /** Dotted, such as `response.fields.name`. */
  readonly path: string
  /** Stable name. */
  readonly rule: string
  readonly severity: FindingSeverity
  readonly message: string
}

/** `error`: the mapping cannot be used; `warning`: some records or requests will probably be wrong; `hint`: it could be better. */
type FindingSeverity = 'error' | 'warning' | 'hint'
