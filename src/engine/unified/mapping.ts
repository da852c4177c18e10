import type { Json, JsonObject } from '../../foundation/json/index.ts'
import type { FilterOperator } from './mapping-schema.ts'

/** Where a leaf of a mapping comes from, lowest layer first. */
export type MappingLayer = 'shipped' | 'base' | 'environment' | 'account'

/** Layers merged: the config, and by path of a leaf (`response.fields.name`) the layer that it comes from. */
export interface MergedMapping {
  readonly config: JsonObject
  readonly layers: ReadonlyMap<string, MappingLayer>
}

/** What expressions of a mapping read beside their root; absent values are `{}`, an absent id is `null`. */
export interface MappingScope {
  /** When the call began, RFC 3339 in UTC (`$called_at`): one value for all expressions of a call. */
  readonly calledAt: string
  /** Context of the account (`$ctx`). */
  readonly context: JsonObject
  /** Query parameters that the caller passes on (`$query`). */
  readonly query?: JsonObject | undefined
  /** Values by field and operator (`$filters`). */
  readonly filters?: JsonObject | undefined
  /** Field and direction of the order (`$sort`), where it is honoured. Only the maps of the request have it: elsewhere `$sort` is the function. */
  readonly sort?: JsonObject | undefined
  readonly id?: string | undefined
  /** The unified body of a write (`$body`). */
  readonly body?: JsonObject | undefined
  /** Results of the steps before and after the call, by name (`$before`, `$after`). */
  readonly before?: JsonObject | undefined
  readonly after?: JsonObject | undefined
  /** The record of a parent resource, in a sync (`$parent`). */
  readonly parent?: JsonObject | undefined
  /** Share of the sandbox: an environment id. */
  readonly owner?: string | undefined
}

/** Something that was not as the schema or the mapping says. */
export interface MappingWarning {
  /** Dotted unified field. */
  readonly field: string
  /** `type`, `enum`, `format`, `required`, `unknown_field`, `expression`, `not_mapped`, `expand`. */
  readonly rule: string
  readonly message: string
}

/** How one field of one record came about. */
export interface FieldTrace {
  /** Dotted path in the field map. */
  readonly field: string
  readonly expression: string
  readonly layer: MappingLayer | undefined
  /** Evaluated in this process or in the sandbox. */
  readonly lane: 'inline' | 'sandbox'
  /** What the expression returned; absent: nothing. */
  readonly value?: Json | undefined
  /** Why it failed. */
  readonly error?: string | undefined
}

/** A filter of a unified list. */
export interface UnifiedFilter {
  /** Unified field. */
  readonly field: string
  readonly op: FilterOperator
  /** A text, or a list for `in` and `nin`. */
  readonly value: Json
}

/** A filter or order that the provider was not asked for. */
export interface IgnoredFilter {
  readonly field: string
  readonly op: FilterOperator | 'sort'
  readonly reason: 'unknown_field' | 'not_supported' | 'operator_not_supported'
  /** A name that is near an unknown one, and that the provider can be asked for. */
  readonly suggestion?: string
}
