import type { Json, JsonObject } from '../base/index.ts'
import type { MappingPlan } from './compile-mapping.ts'
import type { FieldTrace, MappingScope } from './mapping.ts'
import type { UnifiedDependencies } from './request.ts'

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
  /** Per record of the provider, with `trace`. */
  readonly traces: readonly (readonly FieldTrace[])[] | undefined
}

/**
 * Maps records of the provider to unified records: coerced to the schema, with `_warnings` where something did not fit.
 *
 * An expression that fails leaves its field `null` with a warning.
 *
 * @throws Failure EXPRESSION_QUARANTINED, RATE_LIMITED, DEADLINE_EXCEEDED, SHUTTING_DOWN of the sandbox
 */
export function mapRecords(
  _deps: Pick<UnifiedDependencies, 'evaluator'>,
  _plan: MappingPlan,
  _records: readonly Json[],
  _scope: MappingScope,
  _options: MappingOptions = {},
): Promise<MappedRecords> {
  throw new Error('not implemented')
}
