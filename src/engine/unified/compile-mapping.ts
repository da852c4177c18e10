import { invalidFields } from '../../foundation/base/index.ts'
import { formatDotPath, type JsonObject, parseJson } from '../../foundation/json/index.ts'
import { findSchemaViolations } from '../definitions/findings.ts'
import { isReadingMethod } from '../definitions/method-kinds.ts'
import { type CoercionRules, compileFields, type FieldCoercion } from './coerce.ts'
import { compileCustomFields } from './custom-fields.ts'
import { compileExpansions } from './expansions.ts'
import { listExtraFields } from './extra-fields.ts'
import { compileFieldMap } from './field-map.ts'
import type { MappingLayer, MergedMapping } from './mapping.ts'
import { compileMappingExpression } from './mapping-expression.ts'
import type { MappingPlan, RecordPlan } from './mapping-plan.ts'
import { type MappingConfig, mappingConfigSchema } from './mapping-schema.ts'
import type { UnifiedResource } from './model.ts'
import { listReferences, type References } from './references.ts'
import { compileRequest } from './request-plan.ts'

const FIELDS_PATH = 'response.fields'

/**
 * Compiles the merged mapping of a unified method.
 *
 * @param references rules of the resources that `references` of the plan names; of others expanded references show what the
 *   reference itself has, such as id and name
 * @throws Failure DEFINITION_INVALID when it is not a whole mapping
 */
export function compileMapping(
  merged: MergedMapping,
  resource: UnifiedResource,
  method: string,
  references: References = new Map(),
): MappingPlan {
  const config = parseConfig(merged.config)
  return {
    resource,
    method,
    config,
    layers: merged.layers,
    filters: new Map(Object.entries(config.filters ?? {}).map(([field, { ops }]) => [field, ops])),
    sorts: new Set(Object.keys(config.sort ?? {})),
    expandable: new Set(Object.keys(config.expand ?? {})),
    request: compileRequest(config, resource),
    records: compileRecords(config, merged.layers, resource, method),
    items: config.response?.items === undefined ? undefined : compileMappingExpression(config.response.items),
    error: config.error === undefined ? undefined : compileMappingExpression(config.error),
    expansions: compileExpansions(config, resource, merged.layers, references),
    references: listReferences(merged.config, resource),
  }
}

function parseConfig(config: JsonObject): MappingConfig {
  const violations = findSchemaViolations(mappingConfigSchema, config, 'config')
  if (violations.length > 0) throw invalidFields(violations, 'DEFINITION_INVALID')
  return config as unknown as MappingConfig
}

function compileRecords(
  config: MappingConfig,
  layers: MergedMapping['layers'],
  resource: UnifiedResource,
  method: string,
): RecordPlan {
  const map = compileFieldMap(config.response?.fields ?? {})
  const dropIf = config.response?.drop_if === undefined ? undefined : compileMappingExpression(config.response.drop_if)
  const extra = listExtraFields(config.response?.fields ?? {}, layers, FIELDS_PATH)
  const rules: CoercionRules = { enums: config.enums ?? {}, extraFields: extra.fields }
  const fields = compileFields(resource.node, '', rules)
  const known = fields.flatMap(({ key, raw }) => (raw === undefined ? [key] : [key, raw.key]))
  const keys = map.tree.kind === 'object' ? map.tree.entries.map(([key]) => key) : known
  const ids = Object.values(config.expand ?? {}).map(({ ids: text }) => compileMappingExpression(text))
  return {
    map,
    keys,
    leafLayers: map.leaves.map(({ field }) => layerOf(layers, field)),
    dropIf,
    fields: fields.map((field) => ({
      ...field,
      at: keys.indexOf(field.key),
      rawAt: field.raw === undefined ? -1 : keys.indexOf(field.raw.key),
    })),
    knownKeys: new Set(known),
    otherAt: keys.flatMap((key, at) => (known.includes(key) ? [] : at)),
    extraKeys: new Set([...extra.fields].map((field) => field.split('.')[0] ?? field)),
    keepsUnknown: extra.keepsUnknown,
    // Records that are read are whole: what the provider does not tell is `null`.
    template: isReadingMethod(method) ? templateOf(fields) : undefined,
    customFields: compileCustomFields(config.custom_fields, [...map.leaves, ...ids]),
  }
}

/**
 * A copy of an object that `JSON.parse` made stays in V8's fast mode, where one that grows by computed keys leaves it after a
 * few: 3 µs of 14 per record.
 */
function templateOf(fields: readonly FieldCoercion[]): JsonObject {
  const visible = fields.filter(({ isSensitive }) => !isSensitive)
  return parseJson(JSON.stringify(Object.fromEntries(visible.map(({ key }) => [key, null])))) as JsonObject
}

/** The layer of an expression: of the leaf, or of the list that it is in. */
function layerOf(layers: MergedMapping['layers'], field: string): MappingLayer | undefined {
  const list = field.indexOf('[')
  const path = (list === -1 ? field : field.slice(0, list)).split('.').filter((name) => name !== '')
  return layers.get(formatDotPath(path, FIELDS_PATH))
}
