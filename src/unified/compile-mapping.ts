import type { MergedMapping } from './mapping.ts'
import type { UnifiedResource } from './model.ts'

/** The mapping of one unified method, ready to run. */
export interface MappingPlan {
  readonly resource: UnifiedResource
  /** Unified method. */
  readonly method: string
  /** Filters that are honoured, with their operators. */
  readonly filters: ReadonlyMap<string, readonly string[]>
  /** Fields that can be sorted by. */
  readonly sorts: ReadonlySet<string>
  /** Fields that can be expanded. */
  readonly expandable: ReadonlySet<string>
}

/**
 * Compiles the merged mapping of a unified method.
 *
 * @throws Failure DEFINITION_INVALID when it is not a whole mapping; `checkMapping` tells why
 */
export function compileMapping(_merged: MergedMapping, _resource: UnifiedResource, _method: string): MappingPlan {
  throw new Error('not implemented')
}
