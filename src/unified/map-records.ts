import { isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import { isTruthy } from '../formats/index.ts'
import { type Coercion, rawOf, warn } from './coerce.ts'
import type { MappingPlan, RecordPlan } from './compile-mapping.ts'
import { readCustomFields } from './custom-fields.ts'
import { buildValue } from './field-map.ts'
import type { FieldTrace, MappingScope } from './mapping.ts'
import {
  asRoot,
  type Evaluation,
  evaluateColumns,
  type MappingEvaluator,
  Turn,
  type ValueColumn,
} from './mapping-expression.ts'

/** What is added to mapped records. */
export interface MappingOptions {
  readonly includeRemoteData?: boolean | undefined
  readonly includeSensitive?: boolean | undefined
  /** Records how each field came about. Default false. */
  readonly trace?: boolean | undefined
}

/** Mapped records. */
export interface MappedRecords {
  /** In the order of the provider, without those that `drop_if` leaves out. */
  readonly records: readonly JsonObject[]
  /** The provider's record of each. */
  readonly sources: readonly Json[]
  /** Of each, with `trace`. */
  readonly traces: readonly (readonly FieldTrace[])[] | undefined
}

/**
 * Maps records of the provider to unified records: coerced to the schema, with `_warnings` where something did not fit.
 *
 * An expression that fails leaves its field without value, with a warning.
 *
 * @throws Failure EXPRESSION_QUARANTINED, RATE_LIMITED, DEADLINE_EXCEEDED, SHUTTING_DOWN, INTERNAL of the sandbox
 */
export async function mapRecords(
  { evaluator }: { readonly evaluator: MappingEvaluator },
  { records: plan }: MappingPlan,
  records: readonly Json[],
  scope: MappingScope,
  options: MappingOptions = {},
): Promise<MappedRecords> {
  const evaluation: Evaluation = { evaluator, bindings: bindingsOf(scope), owner: scope.owner }
  const roots = records.map(asRoot)
  const { leaves } = plan.map
  const columns = await evaluateColumns(
    evaluation,
    plan.dropIf === undefined ? leaves : [...leaves, plan.dropIf],
    roots,
  )
  const customFields = await readCustomFields(evaluation, plan.customFields, roots)
  const dropped = plan.dropIf === undefined ? undefined : columns[leaves.length]
  const mapped: JsonObject[] = []
  const sources: Json[] = []
  const traces: (readonly FieldTrace[])[] = []
  const turn = new Turn()
  for (const [row, source] of records.entries()) {
    if (dropped !== undefined && isTruthy(dropped.values[row])) continue
    mapped.push(assembleRecord(plan, columns, row, { source, custom: customFields?.[row], options }))
    sources.push(source)
    if (options.trace === true) traces.push(traceRecord(plan, columns, row))
    if (turn.isOver) await turn.pause()
  }
  return { records: mapped, sources, traces: options.trace === true ? traces : undefined }
}

const NOTHING: JsonObject = {}

/** The variables that expressions of a mapping read. */
export function bindingsOf(scope: MappingScope): JsonObject {
  return {
    ctx: scope.context,
    query: scope.query ?? NOTHING,
    filters: scope.filters ?? NOTHING,
    id: scope.id ?? null,
    body: scope.body ?? NOTHING,
    before: scope.before ?? NOTHING,
    after: scope.after ?? NOTHING,
    parent: scope.parent ?? NOTHING,
  }
}

interface RecordParts {
  readonly source: Json
  readonly custom: JsonObject | undefined
  readonly options: MappingOptions
}

function assembleRecord(
  plan: RecordPlan,
  columns: readonly ValueColumn[],
  row: number,
  parts: RecordParts,
): JsonObject {
  const coercion: Coercion = { warnings: undefined, includeSensitive: parts.options.includeSensitive ?? false }
  const given = givenFields(plan, columns, row, coercion)
  const record: Record<string, Json> = plan.template === undefined ? {} : { ...plan.template }
  coerceRecord(plan, given, record, coercion)
  setIds(plan, record, coercion)
  addCustomFields(plan, record, parts.custom)
  addOtherFields(plan, given, record, coercion)
  if (coercion.warnings !== undefined) record._warnings = coercion.warnings as unknown as Json
  if (parts.options.includeRemoteData === true) record.remote_data = parts.source
  return record
}

/** What the field map returns, before it is coerced. */
function givenFields(plan: RecordPlan, columns: readonly ValueColumn[], row: number, coercion: Coercion): JsonObject {
  for (let at = 0; at < columns.length; at++) {
    const failures = columns[at]?.failures
    if (failures === undefined || failures.size === 0) continue
    const failure = failures.get(row)
    const field = plan.map.leaves[at]?.field ?? 'drop_if'
    if (failure !== undefined) warn(coercion, field, 'expression', failure.publicMessage)
  }
  const given = buildValue(plan.map.tree, columns, row)
  if (given === undefined || given === null) return NOTHING
  if (isJsonObject(given)) return given
  warn(coercion, '', 'type', 'the fields are not an object')
  return NOTHING
}

function coerceRecord(plan: RecordPlan, given: JsonObject, record: Record<string, Json>, coercion: Coercion): void {
  for (const field of plan.fields) {
    const value = Object.hasOwn(given, field.key) ? given[field.key] : undefined
    if (field.isSensitive && !coercion.includeSensitive) continue
    if (value === undefined || value === null) {
      if (field.isSensitive && plan.template !== undefined) record[field.key] = null
      continue
    }
    record[field.key] = field.coerce(value, coercion)
    const raw = field.raw === undefined ? undefined : rawOf(field.raw, given, value)
    if (field.raw !== undefined && raw !== undefined) record[field.raw.key] = raw
  }
}

function setIds(plan: RecordPlan, record: Record<string, Json>, coercion: Coercion): void {
  const id = record.id ?? null
  if (id === null && plan.template !== undefined) warn(coercion, 'id', 'required', 'has no value')
  if ((record.remote_id ?? null) === null && id !== null) record.remote_id = id
}

/** Custom fields that the map names count before those that are found. */
function addCustomFields(plan: RecordPlan, record: Record<string, Json>, found: JsonObject | undefined): void {
  const named = isJsonObject(record.custom_fields) ? record.custom_fields : undefined
  if (named !== undefined || found !== undefined) record.custom_fields = { ...found, ...named }
  else if (plan.template !== undefined) record.custom_fields = NOTHING
}

function addOtherFields(plan: RecordPlan, given: JsonObject, record: Record<string, Json>, coercion: Coercion): void {
  for (const key in given) {
    if (plan.knownKeys.has(key) || !Object.hasOwn(given, key)) continue
    const isKept = (plan.extraKeys.has(key) || plan.keepsUnknown) && !RESERVED.has(key)
    if (isKept) record[key] = given[key] ?? null
    else warn(coercion, key.slice(0, 100), 'unknown_field', 'is not in the schema and is left out')
  }
}

/** Keys that the engine writes itself. */
const RESERVED: ReadonlySet<string> = new Set(['__proto__', '_warnings', 'remote_data'])

function traceRecord(plan: RecordPlan, columns: readonly ValueColumn[], row: number): readonly FieldTrace[] {
  return plan.map.leaves.map(({ field, text }, at) => {
    const column = columns[at]
    const value = column?.values[row]
    const error = column?.failures.get(row)?.publicMessage
    return {
      field,
      expression: text,
      layer: plan.leafLayers[at],
      lane: column?.pending.includes(row) === true ? 'sandbox' : 'inline',
      ...(value === undefined ? {} : { value }),
      ...(error === undefined ? {} : { error }),
    }
  })
}
