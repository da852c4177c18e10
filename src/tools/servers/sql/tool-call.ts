import { lowestIdAt } from '../../../foundation/base/index.ts'
import {
  type DayTable,
  type Db,
  deleteBatchOfEnvironment,
  execute,
  queryForValues,
} from '../../../foundation/database/index.ts'
import type { ToolErrorType } from '../tool.ts'

/** A call of a tool as stored. */
export interface ToolCallRecord {
  /** UUIDv7 of the time at which it began. */
  readonly id: string
  readonly environmentId: string
  readonly toolServerId: string
  readonly tool: string
  /** Null for a call that did not get that far. */
  readonly integratedAccountId: string | null
  readonly tokenHint: string
  /** Empty: the call succeeded. */
  readonly errorType: ToolErrorType | ''
  readonly durationMs: number
  readonly resultBytes: number
  readonly isDryRun: boolean
  readonly createdAt: Date
}

/** A call to be recorded. */
export type NewToolCall = Omit<ToolCallRecord, 'createdAt'>

/** The table, partitioned by the day in the id, a UUIDv7. */
export const TOOL_CALL_DAYS: DayTable = { name: 'tool_server_call', column: 'id', lowest: lowestIdAt }

/**
 * Inserts calls in one statement; the partition follows from the time in each id. The answer to a client waits for it, so its
 * commit does not wait for the disk: 0.4 ms instead of 2. A crash of PostgreSQL loses the calls of the last moment, one of this
 * process none.
 */
export async function insertToolCalls(tx: Db, calls: readonly NewToolCall[]): Promise<void> {
  await execute(
    tx,
    `with relaxed as materialized (select set_config('synchronous_commit', 'off', true))
     insert into tool_server_call (environment_id, id, tool_server_id, tool, integrated_account_id, token_hint, error_type,
       duration_ms, result_bytes, is_dry_run)
     select given.* from relaxed, unnest(:environmentIds::uuid[], :ids::uuid[], :serverIds::uuid[], :tools::text[],
       :accountIds::uuid[], :hints::text[], :errorTypes::text[], :durations::int[], :bytes::int[], :dryRuns::boolean[]) given`,
    {
      environmentIds: calls.map(({ environmentId }) => environmentId),
      ids: calls.map(({ id }) => id),
      serverIds: calls.map(({ toolServerId }) => toolServerId),
      tools: calls.map(({ tool }) => tool),
      accountIds: calls.map(({ integratedAccountId }) => integratedAccountId),
      hints: calls.map(({ tokenHint }) => tokenHint),
      errorTypes: calls.map(({ errorType }) => errorType),
      durations: calls.map(({ durationMs }) => durationMs),
      bytes: calls.map(({ resultBytes }) => resultBytes),
      dryRuns: calls.map(({ isDryRun }) => isDryRun),
    },
  )
}

/** SQL: the condition of each outcome, and of its index. */
const OUTCOMES = { ok: `error_type = ''`, error: `error_type <> ''` } as const

/**
 * At most `limit` calls of a tool server below the id `before`, newest first: of one outcome, or the newest of both. Uses
 * tool_server_call_ok and _error.
 */
export async function listToolCalls(
  tx: Db,
  { environmentId, toolServerId }: Pick<ToolCallRecord, 'environmentId' | 'toolServerId'>,
  outcome: keyof typeof OUTCOMES | undefined,
  { before, limit }: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly ToolCallRecord[]> {
  const newest = (condition: string) => `(select * from tool_server_call
     where environment_id = :environmentId and tool_server_id = :toolServerId and ${condition}
       ${before === undefined ? '' : 'and id < :before::uuid'} order by id desc limit :limit)`
  const conditions = outcome === undefined ? Object.values(OUTCOMES) : [OUTCOMES[outcome]]
  return await queryForValues(
    tx,
    `select id, environment_id, tool_server_id, tool,
       integrated_account_id, token_hint, error_type, duration_ms, result_bytes, is_dry_run, created_at
     from (${conditions.map(newest).join(' union all ')}) calls order by id desc limit :limit`,
    { environmentId, toolServerId, before: before ?? null, limit },
  )
}

/** Deletes calls and tool servers of an environment, a batch; returns whether there are no more. Scans the primary keys of all days. */
export async function deleteToolServersOfEnvironment(tx: Db, environmentId: string): Promise<boolean> {
  return await deleteBatchOfEnvironment(tx, ['tool_server_call', 'tool_server'], environmentId)
}
