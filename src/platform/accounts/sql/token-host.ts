import { type Db, execute, queryOne } from '../../../foundation/database/index.ts'

/** A host as the third party of one environment. */
export interface TokenHost {
  readonly environmentId: string
  /** Host and port, lower case. */
  readonly host: string
}

/** The rate of a host: one request per `intervalMs`, and up to `burstMs` of them ahead of it. */
export interface HostRate {
  readonly intervalMs: number
  readonly burstMs: number
}

/**
 * Reserves the next request to a host, if its turn comes within `waitMaxMs` (generic cell rate algorithm). Returns how long it
 * has to wait; `isReserved` says whether it may be sent then. One statement: concurrent callers get turns one after the other,
 * by the row lock of the upsert. Uses the primary key.
 */
export async function reserveHostTurn(
  tx: Db,
  { environmentId, host }: TokenHost,
  { intervalMs, burstMs }: HostRate,
  waitMaxMs: number,
): Promise<{ readonly isReserved: boolean; readonly waitMs: number }> {
  const found = await queryOne<{ readonly isReserved: boolean; readonly waitMs: string }>(
    tx,
    `with reserved as (
       insert into token_host as known (environment_id, host, next_at)
       values (:environmentId, :host, now() + :intervalMs * interval '1 millisecond')
       on conflict (environment_id, host) do update set next_at = greatest(known.next_at, now()) + :intervalMs * interval '1 millisecond'
         where greatest(known.next_at - :burstMs * interval '1 millisecond', known.blocked_until)
           <= now() + :waitMaxMs * interval '1 millisecond'
       returning next_at - :intervalMs * interval '1 millisecond' as turn_at, blocked_until
     )
     select reserved.turn_at is not null as is_reserved, extract(epoch from greatest(
         coalesce(reserved.turn_at, known.next_at) - :burstMs * interval '1 millisecond',
         coalesce(reserved.blocked_until, known.blocked_until)) - now()) * 1000 as wait_ms
     from (values (1)) one left join reserved on true
     left join token_host known on known.environment_id = :environmentId and known.host = :host`,
    { environmentId, host, intervalMs, burstMs, waitMaxMs },
  )
  return { isReserved: found?.isReserved === true, waitMs: Math.max(0, Number(found?.waitMs ?? 0)) }
}

/** No request is sent to the host for so long; a longer block stays. Uses the primary key. */
export async function blockHost(tx: Db, { environmentId, host }: TokenHost, blockMs: number): Promise<void> {
  await execute(
    tx,
    `update token_host set blocked_until = greatest(blocked_until, now() + :blockMs * interval '1 millisecond')
     where environment_id = :environmentId and host = :host`,
    { environmentId, host, blockMs },
  )
}

/** Deletes hosts without a request for an hour, at most `limit`; returns how many. */
export async function deleteIdleHosts(tx: Db, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from token_host where (environment_id, host) in (
       select environment_id, host from token_host where greatest(next_at, blocked_until) < now() - interval '1 hour' limit :limit)`,
    { limit },
  )
}
