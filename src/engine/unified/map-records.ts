import { TimeSlice } from '../../foundation/fair/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { ValueColumn } from '../expressions/evaluator.ts'
import { isTruthy } from '../formats/format.ts'
import { type Coercion, rawOf, warn } from './coerce.ts'
import { readCustomFields } from './custom-fields.ts'
import { buildEntries, buildValue } from './field-map.ts'
import type { FieldTrace, MappingScope } from './mapping.ts'
import { asRoot, type Evaluation, evaluateColumns, type MappingEvaluator } from './mapping-expression.ts'
import type { MappingPlan, RecordPlan } from './mapping-plan.ts'

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
  const failed = columns.filter(({ failures }) => failures.size > 0)
  const assembly: Assembly = { plan, columns, failed, options, values: new Array(plan.keys.length) }
  const mapped: JsonObject[] = []
  const sources: Json[] = []
  const traces: (readonly FieldTrace[])[] = []
  const slice = new TimeSlice()
  for (let row = 0; row < records.length; row++) {
    const source = records[row] ?? null
    if (dropped !== undefined && isTruthy(dropped.values[row])) continue
    mapped.push(assembleRecord(assembly, row, source, customFields?.[row]))
    sources.push(source)
    if (options.trace === true) traces.push(traceRecord(plan, columns, row))
    if (slice.isOver) await slice.pause()
  }
  return { records: mapped, sources, traces: options.trace === true ? traces : undefined }
}

const NOTHING: JsonObject = {}

/** The variables that expressions of a mapping read. */
export function bindingsOf(scope: MappingScope): JsonObject {
  return {
    called_at: scope.calledAt,
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

/** What the records of a page are assembled from. */
interface Assembly {
  readonly plan: RecordPlan
  readonly columns: readonly ValueColumn[]
  /** Columns with an expression that failed. */
  readonly failed: readonly ValueColumn[]
  readonly options: MappingOptions
  /**
   * What the map gives the record that is being assembled, by the keys of the plan: one list for all records, because an object
   * that grows by so many computed keys takes longer than all its expressions.
   */
  readonly values: (Json | undefined)[]
}

function assembleRecord(assembly: Assembly, row: number, source: Json, custom: JsonObject | undefined): JsonObject {
  const { plan, options, failed } = assembly
  const coercion: Coercion = { warnings: undefined, includeSensitive: options.includeSensitive ?? false }
  if (failed.length > 0) warnOfFailures(assembly, row, coercion)
  const whole = readValues(assembly, row, coercion)
  const record: Record<string, Json> = plan.template === undefined ? {} : { ...plan.template }
  coerceRecord(assembly, record, coercion)
  setIds(plan, record, coercion)
  addCustomFields(plan, record, custom)
  addOtherFields(assembly, whole, record, coercion)
  if (coercion.warnings !== undefined) record._warnings = coercion.warnings as unknown as Json
  if (options.includeRemoteData === true) record.remote_data = source
  return record
}

function warnOfFailures({ plan, columns, failed }: Assembly, row: number, coercion: Coercion): void {
  for (const column of failed) {
    const failure = column.failures.get(row)
    const field = plan.map.leaves[columns.indexOf(column)]?.field ?? 'drop_if'
    if (failure !== undefined) warn(coercion, field, 'expression', failure.publicMessage)
  }
}

/** Reads what the field map gives a record, before it is coerced. @returns the object, where one expression gives all of it */
function readValues({ plan, columns, values }: Assembly, row: number, coercion: Coercion): JsonObject {
  const { tree } = plan.map
  if (tree.kind === 'object') {
    buildEntries(tree, columns, row, values)
    return NOTHING
  }
  const given = buildValue(tree, columns, row)
  const whole = given !== undefined && isJsonObject(given) ? given : NOTHING
  for (const [at, key] of plan.keys.entries()) values[at] = Object.hasOwn(whole, key) ? whole[key] : undefined
  if (given !== undefined && given !== null && given !== whole)
    warn(coercion, '', 'type', 'the fields are not an object')
  return whole
}

function coerceRecord({ plan, values }: Assembly, record: Record<string, Json>, coercion: Coercion): void {
  for (const field of plan.fields) {
    const value = field.at === -1 ? undefined : values[field.at]
    if (field.isSensitive && !coercion.includeSensitive) continue
    if (value === undefined || value === null) {
      if (field.isSensitive && plan.template !== undefined) record[field.key] = null
      continue
    }
    record[field.key] = field.coerce(value, coercion)
    if (field.raw === undefined) continue
    const raw = rawOf(field.raw, value, field.rawAt === -1 ? undefined : values[field.rawAt])
    if (raw !== undefined) record[field.raw.key] = raw
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

/** @param whole the object, where one expression gives all of it */
function addOtherFields(
  { plan, values }: Assembly,
  whole: JsonObject,
  record: Record<string, Json>,
  coercion: Coercion,
): void {
  const add = (key: string, value: Json): void => {
    const isKept = (plan.extraKeys.has(key) || plan.keepsUnknown) && !RESERVED.has(key)
    if (isKept) record[key] = value
    else warn(coercion, key.slice(0, 100), 'unknown_field', 'is not in the schema and is left out')
  }
  for (const at of plan.otherAt) {
    const value = values[at]
    if (value !== undefined) add(plan.keys[at] ?? '', value)
  }
  for (const key in whole) if (!plan.knownKeys.has(key) && Object.hasOwn(whole, key)) add(key, whole[key] ?? null)
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
      lane: column?.sandboxed.includes(row) === true ? 'sandbox' : 'inline',
      ...(value === undefined ? {} : { value }),
      ...(error === undefined ? {} : { error }),
    }
  })
}
