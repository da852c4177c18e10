import type { JsonObject } from '../../foundation/json/index.ts'
import type { CallTarget } from '../proxy/request.ts'
import type { FieldCoercion } from './coerce.ts'
import type { CustomFieldsPlan } from './custom-fields.ts'
import type { CompiledEnums } from './enums.ts'
import type { FieldMapPlan } from './field-map.ts'
import type { MappingLayer, MergedMapping } from './mapping.ts'
import type { MappingExpression } from './mapping-expression.ts'
import type { ExpansionConfig, FilterConfig, MappingConfig } from './mapping-schema.ts'
import type { UnifiedResource } from './model.ts'
import type { ExpandedValuePlan } from './references.ts'

/** The mapping of one unified method, ready to run. */
export interface MappingPlan {
  readonly resource: UnifiedResource
  /** Unified method. */
  readonly method: string
  readonly config: MappingConfig
  readonly layers: MergedMapping['layers']
  /** Filters that are honoured, with their operators. */
  readonly filters: ReadonlyMap<string, readonly string[]>
  /** Fields that can be sorted by. */
  readonly sorts: ReadonlySet<string>
  /** Fields that can be expanded. */
  readonly expandable: ReadonlySet<string>
  readonly request: UnifiedRequestPlan
  readonly records: RecordPlan
  /** The records that a result holds; absent: the result. */
  readonly items: MappingExpression | undefined
  readonly error: MappingExpression | undefined
  readonly expansions: ExpansionPlans
  /** Resources, as `<model>/<resource>`, whose rules its expanded references take. */
  readonly references: readonly string[]
}

/** How a provider's record becomes a unified one. */
export interface RecordPlan {
  readonly map: FieldMapPlan
  /** The keys whose values the map gives: its own, or those of the schema where the whole record is one expression. */
  readonly keys: readonly string[]
  /** Layer of each expression of the map. */
  readonly leafLayers: readonly (MappingLayer | undefined)[]
  readonly dropIf: MappingExpression | undefined
  readonly fields: readonly RecordField[]
  /** Keys of the schema, with those of raw values. */
  readonly knownKeys: ReadonlySet<string>
  /** Places of the values that the map gives for keys beyond the schema. */
  readonly otherAt: readonly number[]
  /** Keys beyond the schema that an environment or account adds. */
  readonly extraKeys: ReadonlySet<string>
  /** The whole record is one expression of an environment or account: all its keys are kept. */
  readonly keepsUnknown: boolean
  /** The record before it has values, `null` in every field; absent: fields without value are left out. */
  readonly template: JsonObject | undefined
  readonly customFields: CustomFieldsPlan | undefined
}

/** How a unified request becomes a call of the proxy. */
export interface UnifiedRequestPlan {
  /** Resource of the definition; `_`: an action. */
  readonly resource: string
  readonly method: string | { readonly expression: MappingExpression; readonly allowed: ReadonlySet<string> }
  readonly id: MappingExpression | undefined
  readonly query: FieldMapPlan | undefined
  readonly body: FieldMapPlan | undefined
  readonly headers: ReadonlyMap<string, MappingExpression>
  readonly args: FieldMapPlan | undefined
  readonly filters: ReadonlyMap<string, FilterPlan>
  readonly sorts: ReadonlyMap<string, SortPlan>
  /** Fields of the body that the integration requires. */
  readonly required: readonly string[]
  /** Number of parts of composite ids: of the call (`id`), and of references by field. */
  readonly idParts: ReadonlyMap<string, number>
  /** By dotted unified field. */
  readonly enums: CompiledEnums
  readonly before: readonly MappingStep[]
  readonly after: readonly MappingStep[]
  /** Fields of the body that expressions read; `undefined`: any. */
  readonly readFields: ReadonlySet<string> | undefined
}

/** A filter that is honoured. */
export interface FilterPlan {
  readonly operators: ReadonlySet<string>
  readonly to: FilterConfig['to']
  readonly value: MappingExpression | undefined
  readonly format: FilterConfig['format']
  /** A request without it is rejected. */
  readonly isRequired: boolean
}

/** A compiled step before or after a call. */
export interface MappingStep {
  readonly name: string
  readonly runIf: MappingExpression | undefined
  /** Its value replaces the answer of the provider. */
  readonly isResult: boolean
  readonly work:
    | {
        readonly type: 'request'
        readonly target: CallTarget
        readonly id: MappingExpression | undefined
        readonly query: FieldMapPlan | undefined
        readonly body: FieldMapPlan | undefined
      }
    | { readonly type: 'transform'; readonly expression: MappingExpression }
}

/** Compiled expansions by unified field. */
export type ExpansionPlans = ReadonlyMap<string, ExpansionPlan>

export interface ExpansionPlan {
  readonly config: ExpansionConfig
  readonly ids: MappingExpression
  readonly fields: FieldMapPlan
  readonly value: ExpandedValuePlan
  readonly batch: BatchPlan | undefined
}

/** A field of the record, with the places of its value and its raw value among those that the map gives; -1: not there. */
interface RecordField extends FieldCoercion {
  readonly at: number
  readonly rawAt: number
}

/** Query parameters of an order, by direction. */
interface SortPlan {
  readonly asc: FieldMapPlan | undefined
  readonly desc: FieldMapPlan | undefined
}

export interface BatchPlan {
  readonly size: number
  readonly query: FieldMapPlan | undefined
  readonly body: FieldMapPlan | undefined
  readonly key: MappingExpression
}
