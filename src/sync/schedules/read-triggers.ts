import { invalidFields } from '../../foundation/base/index.ts'
import {
  type Db,
  decodePageToken,
  type ListPage,
  type ListPageRequest,
  readPageSize,
  toPage,
} from '../../foundation/database/index.ts'
import { listTickLedger, type TickLedgerEntry } from '../runs/sql/tick.ts'
import { checkCronExpression } from './check-cron-expression.ts'
import { nextTicks } from './cron-expression.ts'
import {
  findTrigger,
  listTriggers as listTriggerRecords,
  type TriggerFilter,
  type TriggerRecord,
} from './sql/trigger.ts'
import type { TriggerDeps } from './trigger-schedule.ts'
import { triggerNotFound } from './trigger-schedule.ts'

/** Ticks that a preview has by default, and at most. */
const PREVIEW_DEFAULT = 5
const PREVIEW_MAX = 100

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getTrigger(tx: Db, environmentId: string, id: string): Promise<TriggerRecord> {
  const trigger = await findTrigger(tx, environmentId, id)
  if (trigger === undefined) throw triggerNotFound(id)
  return trigger
}

/** At most `limit` triggers below the id `before`, newest first; filters combine with and. */
export async function listTriggers(
  tx: Db,
  environmentId: string,
  filter: TriggerFilter,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly TriggerRecord[]> {
  return await listTriggerRecords(tx, environmentId, filter, page.before, page.limit)
}

/**
 * A page of the tick ledger, latest tick first: every tick that came due is in it, as a run, as skipped with the reason, or
 * within a range of missed ticks.
 *
 * @throws Failure RESOURCE_NOT_FOUND, PAGE_TOKEN_INVALID
 */
export async function listTicks(
  tx: Db,
  environmentId: string,
  id: string,
  request: ListPageRequest,
): Promise<ListPage<TickLedgerEntry>> {
  const query = { list: 'tick', environment_id: environmentId, trigger_id: id }
  const size = readPageSize(request)
  const cursor = decodePageToken(query, request.pageToken, ['time'])
  await getTrigger(tx, environmentId, id)
  const entries = await listTickLedger(tx, id, cursor && new Date(Number(cursor[0])), size + 1)
  return toPage(query, entries, size, ({ scheduledFor }) => [scheduledFor.getTime()])
}

/**
 * The next ticks of an expression; fewer than asked for when there are no more within twenty years.
 *
 * @throws Failure CRON_EXPRESSION_INVALID
 */
export function previewTicks(
  deps: Pick<TriggerDeps, 'minTickGapSeconds' | 'clock'>,
  expression: string,
  options: { readonly count?: number | undefined; readonly after?: Date | undefined },
): readonly Date[] {
  const { count = PREVIEW_DEFAULT, after: from = deps.clock.now() } = options
  const { minTickGapSeconds } = deps
  const violations = checkCronExpression(expression, { minTickGapSeconds, from, field: 'cron_expression' })
  if (violations.length > 0) throw invalidFields(violations, 'CRON_EXPRESSION_INVALID')
  return nextTicks(expression, from, Math.min(count, PREVIEW_MAX))
}
