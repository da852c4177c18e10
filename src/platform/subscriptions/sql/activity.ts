import { type Db, execute, query, rowSet, type Tx } from '../../../foundation/database/index.ts'
import { isKeptSql } from '../../accounts/sql/integrated-account.ts'

/** How often the third party calls about an account. */
export interface ActivityRecord {
  readonly lastInboundAt: Date
  readonly inboundCount: number
  /** The longest gap between two requests, decaying with time. */
  readonly usualGapSeconds: number
  /** When the silence was announced that has not ended; null: none was. */
  readonly silentSince: Date | null
}

/** SQL: the columns of an `ActivityRecord`. */
export const ACTIVITY_COLUMNS = `last_inbound_at, inbound_count::float8 as inbound_count,
  usual_gap_seconds, silent_since`

/** Requests about one account, collected for some seconds. */
export interface InboundBatch {
  readonly environmentId: string
  readonly integratedAccountId: string
  readonly firstAt: Date
  readonly lastAt: Date
  readonly count: number
}

/** When an account counts as silent. */
export interface SilenceRule {
  /** Times the usual gap. */
  readonly gapFactor: number
  readonly seconds: number
  /** Requests, and seconds between the first and the last one, before anything counts as usual. */
  readonly countMin: number
  readonly knownSecondsMin: number
  /** After so many seconds a gap counts half. */
  readonly halfLifeSeconds: number
}

const ACCOUNTS = rowSet('environment_id uuid, integrated_account_id uuid')
const BATCHES = rowSet(
  `environment_id uuid, integrated_account_id uuid, first_at timestamptz, last_at timestamptz, count bigint`,
)

/**
 * Adds requests to what is known about their accounts, in one statement; accounts that are gone are skipped. The usual gap is
 * the longest one, decaying by half-lives; a gap that was announced as a silence counts a quarter, so that one outage does not
 * hide the next. Uses primary keys.
 */
export async function addInbound(tx: Db, batches: readonly InboundBatch[], rule: SilenceRule): Promise<void> {
  await execute(
    tx,
    `insert into webhook_activity as known
       (environment_id, integrated_account_id, first_inbound_at, last_inbound_at, inbound_count)
     select v.environment_id, v.integrated_account_id, v.first_at, v.last_at, v.count from ${BATCHES.rows}
     join integrated_account account on account.environment_id = v.environment_id and account.id = v.integrated_account_id
     order by v.environment_id, v.integrated_account_id
     on conflict (environment_id, integrated_account_id) do update set
       last_inbound_at = greatest(known.last_inbound_at, excluded.last_inbound_at),
       inbound_count = known.inbound_count + excluded.inbound_count,
       usual_gap_seconds = greatest(
         known.usual_gap_seconds
           * 0.5 ^ (greatest(0, extract(epoch from excluded.last_inbound_at - known.last_inbound_at)) / :halfLifeSeconds::float8),
         extract(epoch from excluded.first_inbound_at - known.last_inbound_at)
           * case when known.silent_since is null then 1 else 0.25 end
       ),
       silent_since = null`,
    { ...BATCHES.of(batches), halfLifeSeconds: rule.halfLifeSeconds },
  )
  await planSilence(tx, batches, rule)
}

/** Sets when the accounts count as silent. Uses primary keys. */
async function planSilence(tx: Db, batches: readonly InboundBatch[], rule: SilenceRule): Promise<void> {
  await execute(
    tx,
    `update webhook_activity known set silent_at = case
       when inbound_count >= :countMin
         and last_inbound_at - first_inbound_at >= :knownSecondsMin * interval '1 second'
       then last_inbound_at + greatest(usual_gap_seconds * :gapFactor::float8, :seconds::float8) * interval '1 second' end
     from ${ACCOUNTS.rows}
     where known.environment_id = v.environment_id and known.integrated_account_id = v.integrated_account_id`,
    {
      ...ACCOUNTS.of(batches),
      countMin: rule.countMin,
      knownSecondsMin: rule.knownSecondsMin,
      gapFactor: rule.gapFactor,
      seconds: rule.seconds,
    },
  )
}

/** An account whose third party has become silent. */
export interface SilentAccount {
  readonly environmentId: string
  readonly id: string
}

/**
 * Marks accounts as silent, once for each silence; those that are not active are not marked. The caller
 * records the events in it. Workers share the work: rows that another one locks are skipped. Uses webhook_activity_silent.
 */
export async function markSilent(tx: Tx, limit: number): Promise<readonly SilentAccount[]> {
  return await query(
    tx,
    `with due as (
       select environment_id, integrated_account_id from webhook_activity
       where silent_at <= now() order by silent_at limit :limit for update skip locked
     ), marked as (
       update webhook_activity known set silent_at = null, silent_since = now() from due
       where known.environment_id = due.environment_id and known.integrated_account_id = due.integrated_account_id
       returning known.environment_id, known.integrated_account_id
     )
     select account.environment_id, account.id
     from marked join integrated_account account
       on account.environment_id = marked.environment_id and account.id = marked.integrated_account_id
     where account.status = 'active' and ${isKeptSql('marked', 'integrated_account_id')}`,
    { limit },
  )
}
