import { type Db, query, rowSet } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import type { ErrorHandling, ResourceStats, RunError, RunStatus } from '../run.ts'
import { DESTINATION_EVENTS, type RunEventType } from '../run-payload.ts'

/** A run whose change a webhook asks for, with what the event says of it. */
export interface AskedRun {
  readonly type: RunEventType
  readonly id: string
  readonly environmentId: string
  readonly syncJobId: string
  readonly triggerId: string | null
  readonly integratedAccountId: string
  /** Null when the account is deleted. */
  readonly tenantId: string | null
  /** Null unless webhooks get the records. */
  readonly webhookId: string | null
  readonly status: RunStatus
  readonly skipReason: string | null
  readonly args: JsonObject
  readonly errorHandling: ErrorHandling
  readonly scheduledFor: Date
  readonly attempt: number
  readonly resourceStats: readonly ResourceStats[]
  readonly error: RunError | null
}

/** A change of a run that may be an event. */
export interface RunChange {
  readonly type: RunEventType
  readonly id: string
  readonly scheduledFor: Date
}

/**
 * SQL: whether the webhook `w` is active and asks for one of the events, by name, by a pattern or by asking for all. Statements
 * on the hot path of runs ask it, so that without such a webhook nothing is read or written for events.
 */
export function asksForSql(types: readonly RunEventType[]): string {
  const patterns = [...new Set(types.flatMap(patternsOf))].map((pattern) => `'${pattern}'`)
  return `w.is_active and (w.event_types = '{}' or w.event_types && array[${patterns.join(', ')}])`
}

/** Everything that matches an event: its name, and each beginning of it with `*`. */
function patternsOf(type: RunEventType): string[] {
  return [type, ...Array.from({ length: type.length + 1 }, (_, length) => `${type.slice(0, length)}*`)]
}

const CHANGES = rowSet('type text, id uuid, scheduled_for timestamptz')

/**
 * The runs among those changed whose event a webhook of their environment asks for, as they are now, in the order given. The
 * destination of a run does not count for the events that the run itself sends it. Primary keys, one partition each.
 */
export async function findAskedRuns(tx: Db, changes: readonly RunChange[]): Promise<readonly AskedRun[]> {
  return await query(
    tx,
    `select v.type, r.id, r.environment_id, r.sync_job_id, r.trigger_id, r.integrated_account_id, a.tenant_id,
       r.webhook_id, r.status, r.skip_reason, r.args, r.error_handling, r.scheduled_for, r.attempt,
       coalesce(c.resource_stats, r.resource_stats) as resource_stats, r.error
     from ${CHANGES.unnest} with ordinality as v (${CHANGES.columns}, position)
       join sync_job_run r on r.id = v.id and r.scheduled_for = v.scheduled_for
       left join run_checkpoint c on c.run_id = r.id
       left join integrated_account a on a.environment_id = r.environment_id and a.id = r.integrated_account_id
     where exists (
       select from webhook w where w.environment_id = r.environment_id and w.is_active
         and (w.id is distinct from r.webhook_id or v.type <> all(:destinationEvents::text[]))
         and (w.event_types = '{}' or exists (
           select from unnest(w.event_types) p
           where p = v.type or (right(p, 1) = '*' and starts_with(v.type, left(p, -1)))))
     )
     order by v.position`,
    { ...CHANGES.of(changes), destinationEvents: DESTINATION_EVENTS },
  )
}
