import { findNear, type Violation } from '../../foundation/base/index.ts'
import { sendsRecord } from '../definitions/method-kinds.ts'
import type { IgnoredFilter } from './mapping.ts'
import type { MappingPlan } from './mapping-plan.ts'
import { OPTIONS_ELSEWHERE, UNIFIED_OPTIONS } from './request-query.ts'

const OPTIONS: readonly string[] = [...UNIFIED_OPTIONS, ...OPTIONS_ELSEWHERE]

/** Names of options elsewhere, and how they are called here. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['cursor', 'next_cursor'],
  ['page_cursor', 'next_cursor'],
  ['page_token', 'next_cursor'],
  ['page_size', 'limit'],
  ['per_page', 'limit'],
  ['sort', 'sort_by'],
  ['order_by', 'sort_by'],
  ['remote_data', 'include_remote_data'],
  ['raw', 'include_raw'],
  ['sensitive', 'include_sensitive'],
  ['strict', 'strict_filters'],
])

/**
 * What is wrong with filters and orders that a mapping does not honour. Of a list that is only an unknown name near that of an
 * option; any other method would do its work without what was asked of it.
 */
export function findWrongParameters(
  { method, resource }: Pick<MappingPlan, 'method' | 'resource'>,
  ignored: readonly IgnoredFilter[],
): readonly Violation[] {
  return ignored.flatMap(({ field, op, reason, suggestion }) => {
    if (op === 'sort') {
      const description = `cannot be ${field}: ${method} has no such order`
      return method === 'list' ? [] : [{ field: 'sort_by', description, rule: 'filter' }]
    }
    const near = reason === 'unknown_field' && suggestion === undefined ? optionNear(field) : suggestion
    const isOption = near !== undefined && near !== suggestion
    if (method === 'list' && !isOption) return []
    const isWritten = sendsRecord(method) && resource.node.properties.has(field)
    const hint = isWritten ? '; fields of the record are given in the body' : near && `, did you mean ${near}?`
    return [{ field, description: `is not a parameter of ${method}${hint ?? ''}`, rule: 'unknown_parameter' }]
  })
}

/** The option that a name is near, or that it means. */
function optionNear(name: string): string | undefined {
  return OTHER_NAMES.get(name.toLowerCase()) ?? findNear(name, OPTIONS)
}
