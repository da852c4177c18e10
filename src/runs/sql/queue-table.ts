/** Values a kind of work takes through its queue beside what all kinds have. */
export type CarriedValues = { readonly [Field in string]: string | Date | null }

/** One of them: its column, its field in records, and its type in SQL. */
interface CarriedColumn<Carried extends CarriedValues> {
  readonly column: string
  readonly field: keyof Carried & string
  readonly type: string
}

/**
 * Where one kind of work queues: what waits and what is held. The records that tell what became of the work are somewhere
 * else; whoever owns them writes them.
 */
export interface QueueTable<Carried extends CarriedValues> {
  /** One row per waiting item. */
  readonly waiting: string
  /** One row per held item. */
  readonly lease: string
  /** The column of both that names the item. */
  readonly item: string
  /**
   * The column of both that names the flow between which claims are fair, such as the account. A unique index on it in the
   * lease table makes the flow exclusive: one lease at a time.
   */
  readonly flow: string
  readonly carried: readonly CarriedColumn<Carried>[]
}

/** The statements of one queue. Their parameters are listed with the functions that run them, in queue-statements.ts. */
export interface QueueSql<Carried extends CarriedValues> {
  readonly carried: readonly CarriedColumn<Carried>[]
  readonly enqueue: string
  /** Enqueues the rows of a CTE in the statement that makes them. */
  readonly enqueueFrom: (source: string) => EnqueueSql
  readonly claim: string
  readonly heartbeat: string
  readonly settle: string
  readonly attemptBases: string
  readonly expired: string
  readonly count: string
}

/**
 * How the rows of a CTE are put into a queue. They have the columns of an item, `available_at` (null: now) and `attempt`.
 */
interface EnqueueSql {
  /** CTEs the insert reads. */
  readonly ctes: string
  readonly insert: string
}

/** What every item brings, whatever its kind. */
const COMMON = ['environment_id', 'region', 'queue_group'] as const

/** Milliseconds of the fair clock that one waiting item puts its flow behind the others. */
const FLOW_WEIGHT_MS = 1_000
/** Behind so many waiting items of a flow, order no longer matters. */
const FLOW_BACKLOG_MAX = 1_000

/**
 * Items one claim takes at most. Written out, because a limit that is a parameter is planned as a tenth of the table, for
 * which the planner would read and sort all of it.
 */
const CLAIM_MAX = 1_000

/**
 * Derives the statements of a queue.
 *
 * All run in READ COMMITTED, one round trip each. Wherever a statement may wait for more than one row, it takes them in one
 * order (items, or flows), so that two of them never wait for each other. All commit synchronously: a lease that its holder
 * knows of survives a crash of the database, so that the item has no second holder and no attempt number is given twice.
 *
 * Leases are looked up with `= any`, not by a join: a plan made while the table is empty stays for a while, and a join would
 * then read all of it once per item. Measured with 50 of 5 000 leases: 15 ms instead of 170 ms, and 0.4 ms either way with a
 * plan for the table as it is.
 *
 * What waits ahead is joined by a full join. Each of its flows is one of the items', so that a left join would give the
 * same; but that may be planned as a nested loop, because few rows are expected of an empty queue, and then compares 500
 * items with 500 flows: 25 µs an item more.
 */
export function queueSql<Carried extends CarriedValues>(table: QueueTable<Carried>): QueueSql<Carried> {
  const { waiting, lease, item, flow, carried } = table
  const travelling = [item, flow, ...COMMON, ...carried.map(({ column }) => column)]
  const columns = travelling.join(', ')
  const fields = (alias: string) => carried.map(({ column, field }) => `${alias}.${column} as "${field}"`).join(', ')
  const of = (alias: string) => travelling.map((name) => `${alias}.${name}`).join(', ')
  const types = ['uuid', 'uuid', 'uuid', 'text', 'text', ...carried.map(({ type }) => type)]
  const rank = (at: string) => `(extract(epoch from ${at}) * 1000)::bigint`
  // What waits of all flows at once: one look at the index is several times cheaper than one per item.
  const ahead = (source: string, more = '') => `ahead as materialized (
        select q.${flow}, least(count(*), ${FLOW_BACKLOG_MAX}) as items${more} from ${waiting} q
        where q.${flow} = any(array(select ${flow} from ${source})) group by q.${flow}
      )`
  const joinAhead = (alias: string) => `full join ahead on ahead.${flow} = ${alias}.${flow}`
  const behind = `${FLOW_WEIGHT_MS} * coalesce(ahead.items, 0)`
  const enqueueFrom = (source: string): EnqueueSql => ({
    ctes: ahead(source),
    insert: `insert into ${waiting} (${columns}, available_at, attempt, attempt_base, fair_rank)
      select ${of('v')}, coalesce(v.available_at, now()), v.attempt, v.attempt,
        ${rank(`coalesce(v.available_at, now())`)} + ${behind}
          + ${FLOW_WEIGHT_MS} * row_number() over (partition by v.${flow} order by v.${item})
      from ${source} v ${joinAhead('v')}`,
  })
  const enqueueGiven = enqueueFrom('given')
  return {
    carried,

    enqueue: `with given as materialized (
        select * from unnest(${types.map((type) => `?::${type}[]`).join(', ')}, ?::timestamptz[], ?::integer[]) as v (${columns}, available_at, attempt)
      ),
      ${enqueueGiven.ctes}
      ${enqueueGiven.insert}`,

    enqueueFrom,

    claim: `with candidate as materialized (
        select c.* from (
          select q.* from ${waiting} q
          where q.queue_group = ? and q.available_at <= (select now()) and (?::text[] is null or q.region = any(?))
            and not exists (select from ${lease} l where l.${flow} = q.${flow})
          order by q.fair_rank, q.${item}
          limit ${CLAIM_MAX}
          for update of q skip locked
        ) c
        limit least(?::bigint, case when ?::bigint is not null
          then greatest(0, ?::bigint - (select count(*) from ${lease} l where l.queue_group = ?)) end)
      ),
      numbered as (select c.*, row_number() over (order by c.fair_rank, c.${item}) as place from candidate c),
      leased as (
        insert into ${lease} (${columns}, lease_id, holder, attempt, attempt_base, claimed_at, expires_at)
        select ${of('c')}, (?::uuid[])[c.place], ?, c.attempt + 1, c.attempt_base, now(), now() + make_interval(secs => ?)
        from numbered c order by c.${flow}, c.place
        on conflict do nothing
        returning *
      ),
      taken as (delete from ${waiting} q where q.${item} = any(array(select h.${item} from leased h)))
      select h.${item} as id, h.environment_id as "environmentId", h.${flow} as "flowId", h.lease_id as "leaseId",
        h.attempt, h.attempt_base as "attemptBase", h.expires_at as "expiresAt", ${fields('h')}
      from leased h`,

    heartbeat: `with held as (
        select l.${item} from ${lease} l where l.${item} = any(?::uuid[]) and l.lease_id = any(?::uuid[])
        order by l.${item} for update of l
      )
      update ${lease} l set expires_at = now() + make_interval(secs => ?)
      where l.${item} = any(array(select h.${item} from held h))
      returning l.${item} as id, l.lease_id as "leaseId", l.expires_at as "expiresAt", l.stop_requested_at is not null as "isStopRequested"`,

    settle: `with v as materialized (
        select * from unnest(?::uuid[], ?::uuid[], ?::text[], ?::jsonb[], ?::integer[], ?::double precision[])
          as v (item, lease_id, status, error, attempt, delay_ms)
      ),
      held as materialized (
        select l.* from ${lease} l
        where l.${item} = any(array(select v.item from v)) and l.lease_id = any(array(select v.lease_id from v))
        order by l.${item} for update of l
      ),
      h as materialized (
        select ${of('l')}, l.lease_id, v.error, v.attempt, l.attempt_base,
          case when l.stop_requested_at is not null and v.delay_ms is not null then 'stopped' else v.status end as status,
          case when l.stop_requested_at is null then now() + make_interval(secs => v.delay_ms / 1000.0) end as available_at
        from held l join v on l.${item} = v.item and l.lease_id = v.lease_id
      ),
      gone as (delete from ${lease} l where l.${item} = any(array(select h.${item} from h))),
      waits as (select * from h where h.available_at is not null),
      ${ahead('waits', ', max(q.fair_rank) as last_rank')},
      again as (
        insert into ${waiting} (${columns}, available_at, attempt, attempt_base, fair_rank)
        select ${of('h')}, h.available_at, h.attempt, h.attempt_base,
          greatest(${rank('h.available_at')} + ${behind},
            case when h.available_at > now() then ahead.last_rank + ${FLOW_WEIGHT_MS} end)
        from waits h ${joinAhead('h')}
      )
      select h.${item} as id, h.lease_id as "leaseId", h.environment_id as "environmentId", h.${flow} as "flowId", h.status,
        h.error, h.attempt, h.available_at is null as "isOver", ${fields('h')}
      from h`,

    attemptBases: `select l.${item} as id, l.attempt_base as "attemptBase"
      from ${lease} l where l.${item} = any(?::uuid[])`,

    expired: `select l.${item} as id, l.lease_id as "leaseId", l.attempt, l.attempt_base as "attemptBase",
        l.stop_requested_at is not null as "isStopRequested"
      from ${lease} l
      where l.expires_at <= now() or l.stop_requested_at <= now() - make_interval(secs => ?)
      order by l.${item} limit ? for update skip locked`,

    count: `select v.environment_id as "environmentId", v.queue_group as "group", (
        select count(*) from (
          select from ${waiting} q where q.environment_id = v.environment_id and q.queue_group = v.queue_group limit ?
        ) waiting) as waiting
      from unnest(?::uuid[], ?::text[]) as v (environment_id, queue_group)`,
  }
}
