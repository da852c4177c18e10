import { checkUnifiedQuery, type UnifiedQuery } from '../../../engine/unified/index.ts'
import { invalidFields } from '../../../foundation/base/index.ts'
import type { Finding } from '../operation.ts'
import { ACCOUNT_PARAMETER, accountIdFrom, DRY_RUN_PARAMETER, flagFrom, separateParameters } from './proxy-query.ts'

/** The query of a call of a unified resource. */
interface UnifiedCallQuery extends UnifiedQuery {
  readonly accountId: string
  readonly cursor: string | undefined
  readonly isDryRun: boolean
  readonly includeRaw: boolean
}

/** The parameters of this service in the query of a call of a unified resource. */
export const UNIFIED_PARAMETERS = [ACCOUNT_PARAMETER, 'next_cursor', DRY_RUN_PARAMETER, 'include_raw'] as const

/**
 * Parses the query string of a call of a unified resource: `status=open&updated_at[gt]=2026-01-01&sort_by=-updated_at`.
 *
 * @throws Failure INVALID_FIELD with everything that is wrong
 */
export function parseUnifiedQuery(text: string): UnifiedCallQuery {
  const findings: Finding[] = []
  const { own, query } = separateParameters(text, UNIFIED_PARAMETERS, findings)
  const accountId = accountIdFrom(own.get(ACCOUNT_PARAMETER), findings)
  const { query: read, violations } = checkUnifiedQuery(query)
  const cursor = own.get('next_cursor') || undefined
  const isDryRun = flagFrom(own, DRY_RUN_PARAMETER, findings)
  const includeRaw = flagFrom(own, 'include_raw', findings)
  const all = [...findings, ...violations]
  if (all.length > 0) throw invalidFields(all)
  return { ...read, accountId, cursor, isDryRun, includeRaw }
}
