import type { Json, Violation } from '../base/index.ts'
import type { Plan } from '../definitions/index.ts'
import type { UnifiedResource } from './model.ts'

/**
 * The problems of one layer of a mapping by itself: unknown settings, types, syntax of expressions.
 *
 * @param prefix of the fields: `config`
 */
export function checkMappingLayer(_config: Json, _prefix: string): Violation[] {
  throw new Error('not implemented')
}

/**
 * The problems of the merged mapping of a unified method: those of the schema, required settings, target methods that the
 * definition lacks, fields that the resource lacks.
 *
 * @param prefix of the fields: `config`
 */
export function checkMapping(
  _config: Json,
  _context: { readonly resource: UnifiedResource; readonly method: string; readonly plan?: Plan | undefined },
  _prefix: string,
): Violation[] {
  throw new Error('not implemented')
}
