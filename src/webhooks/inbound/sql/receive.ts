import { type Db, execute, query, rowSet, type SqlParameters } from '../../../foundation/database/index.ts'
import { insertWaitingSql } from '../../../foundation/queue/index.ts'
import type { DedupeKey } from '../dedupe-key.ts'
import type { InboundContent, InboundEventRecord } from '../inbound-event.ts'
import { INBOUND_QUEUE, INBOUND_QUEUE_GROUPS } from './queue.ts'

/** A request to be stored. */
export interface NewInboundEvent
  extends Omit<InboundEventRecord, 'dedupeKey' | 'duplicates' | 'receivedAt' | 'processedAt' | 'error'>,
    InboundContent {
  /** Absent: no duplicates of it are recognised. */
  readonly dedupe: DedupeKey | undefined
}

/** What became of a request. */
export interface StoredEvent {
  readonly id: string
  /** The event that has its dedupe key: itself, or an earlier one, in which case nothing was stored. */
  readonly eventId: string
}

const REQUESTS =
  rowSet(`environment_id uuid, id uuid, source_kind text, source_id uuid, environment_integration_id uuid,
  integrated_account_id uuid, method text, path text, query text, remote_address text, body_bytes integer, state text,
  signature text, dedupe_key text, window_seconds integer, provider_time timestamptz, trace jsonb, headers jsonb,
  payload jsonb, body_start integer, body_length integer`)

const GIVEN = `given as materialized (
  select v.*, substring(:bodies::bytea from v.body_start for v.body_length) as body from ${REQUESTS.rows}
)`

/** Claims the keys, in one order, so that two batches with the same keys never deadlock. An expired claim is taken over. */
const CLAIMED = `claimed as (
  insert into inbound_dedupe as held (source_id, key, environment_id, event_id, expires_at)
  select source_id, dedupe_key, environment_id, id, now() + make_interval(secs => window_seconds)
  from given where dedupe_key is not null order by source_id, dedupe_key
  on conflict (source_id, key) do update set
    event_id = case when held.expires_at <= now() then excluded.event_id else held.event_id end,
    expires_at = case when held.expires_at <= now() then excluded.expires_at else held.expires_at end
  returning source_id, key, event_id
),
held as materialized (
  select g.id, c.event_id
  from given g join claimed c on c.source_id = g.source_id and c.key = g.dedupe_key where c.event_id <> g.id
),
fresh as materialized (select * from given g where not exists (select from held h where h.id = g.id))`

const STORED = `events as (
  insert into inbound_event (environment_id, id, source_kind, source_id, environment_integration_id, integrated_account_id,
    method, path, query, remote_address, body_bytes, state, signature, dedupe_key, provider_time, trace)
  select environment_id, id, source_kind, source_id, environment_integration_id, integrated_account_id, method, path, query,
    remote_address, body_bytes, state, signature, dedupe_key, provider_time, trace from fresh
),
contents as (
  insert into inbound_content (environment_id, id, headers, body, payload)
  select environment_id, id, headers, body, payload from fresh
),
short_lived as (
  insert into inbound_short_lived (source_id, event_id, environment_id)
  select source_id, id, environment_id from fresh where state <> 'received'
),
queued as (
  select id as event_id, source_id, environment_id, '${INBOUND_QUEUE_GROUPS.received}' as queue_group, source_kind,
    false as is_replay, null::timestamptz as available_at, 0 as attempt
  from fresh where state = 'received'
),
waiting as (${insertWaitingSql(INBOUND_QUEUE, 'queued')})`

/**
 * Stores requests with their contents, and those to be processed in the queue, unless an earlier request has their dedupe
 * key: in one statement, so that a request is stored once, however many processes receive it at the same moment. Who comes second
 * waits for the first to commit.
 *
 * Rides on the primary key of inbound_dedupe.
 *
 * @param events no two of which have one dedupe key
 */
export async function insertInboundEvents(tx: Db, events: readonly NewInboundEvent[]): Promise<readonly StoredEvent[]> {
  return await query(
    tx,
    `with ${GIVEN}, ${CLAIMED}, ${STORED}
     select g.id, coalesce(h.event_id, g.id) as event_id from given g left join held h on h.id = g.id`,
    parametersOf(events),
  )
}

function parametersOf(events: readonly NewInboundEvent[]): SqlParameters {
  let end = 1
  const requests = events.map((event) => {
    const bodyStart = end
    end += event.body.byteLength
    const { key: dedupeKey = null, windowSeconds = 0 } = event.dedupe ?? {}
    return { ...event, dedupeKey, windowSeconds, bodyStart, bodyLength: event.body.byteLength }
  })
  // One binary parameter for all bodies: an array of them would be sent in hexadecimal.
  const bodies = Buffer.concat(events.map(({ body }) => body))
  return { ...REQUESTS.of(requests), bodies }
}

const DUPLICATES = rowSet('environment_id uuid, event_id uuid')

/** Counts further requests of events. Uses the primary keys. */
export async function countDuplicates(
  tx: Db,
  duplicates: readonly { readonly environmentId: string; readonly eventId: string }[],
): Promise<void> {
  await execute(
    tx,
    `update inbound_event e set duplicates = e.duplicates + v.count
     from (
       select environment_id, event_id, count(*)::integer as count
       from ${DUPLICATES.rows}
       group by environment_id, event_id order by event_id
     ) v
     where e.environment_id = v.environment_id and e.id = v.event_id`,
    DUPLICATES.of(duplicates),
  )
}
