/** One metric. */
export interface MetricSpec {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly labels: readonly string[]
  readonly help: string
  /** Upper bounds of a histogram's buckets. */
  readonly buckets?: readonly number[]
}

/**
 * The table of metrics; that of `foundation/README.md` is printed from it. Values of labels are from small sets of the code: never an id, a name
 * that a customer chose, or text of a request.
 */
export const METRICS = {
  healthProblem: {
    name: 'patchbay_health_problem',
    type: 'gauge',
    labels: ['reason'],
    help: '1 while this process is not healthy, by the reason that `/healthz` gives: a condition of the database, `CLOCK_WRONG` or `TOO_MANY_OPEN_FILES`. Absent while it is.',
  },
  databaseFigures: {
    name: 'patchbay_database_figures',
    type: 'gauge',
    labels: [],
    help: '1 when this answer has the figures that are read from the database; 0 when some are absent, because it did not answer within 500 ms.',
  },
  databaseErrors: {
    name: 'patchbay_database_errors_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Statements and connections of this process that failed under a condition of the database, such as `DATABASE_DISK_FULL`.',
  },
  clockOffset: {
    name: 'patchbay_clock_offset_seconds',
    type: 'gauge',
    labels: [],
    help: "By how much the clock of this process is ahead of the database's; negative: behind.",
  },
  logLinesDropped: {
    name: 'patchbay_log_lines_dropped_total',
    type: 'counter',
    labels: [],
    help: 'Log lines of this process that standard error did not take: a full disk, a closed pipe, or one that is not read.',
  },
  oldestDueAge: {
    name: 'patchbay_oldest_due_age_seconds',
    type: 'gauge',
    labels: [],
    help: 'How long ago the oldest tick that has not fired came due, of the whole installation; 0 when none is due. Grows while the database is unavailable.',
  },
  tickLateness: {
    name: 'patchbay_tick_lateness_seconds',
    type: 'histogram',
    labels: [],
    help: 'From the moment a tick was due until its run, or its skip, was committed.',
    buckets: [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 3600],
  },
  ticks: {
    name: 'patchbay_ticks_total',
    type: 'counter',
    labels: ['outcome', 'reason'],
    help: 'Ticks of this worker: `fired`, `skipped` with the reason, `missed`; `suspended` counts triggers whose expression could not be evaluated.',
  },
  tickPasses: {
    name: 'patchbay_tick_passes_total',
    type: 'counter',
    labels: ['outcome'],
    help: 'Passes of this worker over the schedules: `done`, `failed`.',
  },
  queueDepth: {
    name: 'patchbay_queue_depth',
    type: 'gauge',
    labels: ['group', 'state'],
    help: 'Runs of the whole installation for `webhook` or `daemon` groups: `ready` to be claimed, `later` (a retry or a rate limit), `held` under a lease. Counted every 10 s at most.',
  },
  unservedWork: {
    name: 'patchbay_unserved_work',
    type: 'gauge',
    labels: ['region', 'work'],
    help: 'What has waited for over a minute in a region that no worker serves, of the whole installation: `activation`, `token` (a refresh), `subscription`, `removal` (of a deleted account at its third party), `tick`, `run`. Absent while every region with work is served. Counted every 10 s at most.',
  },
  runsHeld: {
    name: 'patchbay_runs_held',
    type: 'gauge',
    labels: [],
    help: 'Runs this worker executes at the moment.',
  },
  runsSettled: {
    name: 'patchbay_runs_settled_total',
    type: 'counter',
    labels: ['outcome'],
    help: 'Attempts this worker ended, by the status of the run: `completed`, `partially_completed`, `failed`, `stopped`, `created` (queued again), `rate_limited`.',
  },
  leasesLost: {
    name: 'patchbay_leases_lost_total',
    type: 'counter',
    labels: [],
    help: 'Leases lost while this worker still executed their runs.',
  },
  leasesExpired: {
    name: 'patchbay_leases_expired_total',
    type: 'counter',
    labels: [],
    help: 'Expired leases that this worker ended, because their holder had died or did not stop.',
  },
  pagesDelivered: {
    name: 'patchbay_pages_delivered_total',
    type: 'counter',
    labels: [],
    help: 'Pages this worker delivered.',
  },
  recordsDelivered: {
    name: 'patchbay_records_delivered_total',
    type: 'counter',
    labels: [],
    help: 'Records this worker delivered.',
  },
  deliveryBacklog: {
    name: 'patchbay_delivery_backlog',
    type: 'gauge',
    labels: ['group', 'state'],
    help: 'Webhook deliveries of the whole installation, `first` attempts or `retry` (later attempts and recoveries): `ready` to be sent, `later`, `held` while being sent. Counted every 10 s at most.',
  },
  deliveriesInFlight: {
    name: 'patchbay_deliveries_in_flight',
    type: 'gauge',
    labels: [],
    help: 'Webhook deliveries this worker sends at the moment.',
  },
  deliveryAttempts: {
    name: 'patchbay_delivery_attempts_total',
    type: 'counter',
    labels: ['outcome'],
    help: 'Webhook deliveries this worker settled, by their state afterwards: `delivered`, `pending` (to be sent again), `failed` (no attempt is left), `discarded`.',
  },
  eventsDispatched: {
    name: 'patchbay_events_dispatched_total',
    type: 'counter',
    labels: [],
    help: 'Events for which this worker created the deliveries, if any webhook asked for them.',
  },
  requests: {
    name: 'patchbay_requests_total',
    type: 'counter',
    labels: ['operation', 'code'],
    help: 'Requests this server answered, by operation and status code.',
  },
  callLogDropped: {
    name: 'patchbay_call_log_dropped_total',
    type: 'counter',
    labels: [],
    help: 'Entries of the request log that this process did not store: an environment had too many waiting, or the database failed.',
  },
  outboundCalls: {
    name: 'patchbay_outbound_calls_total',
    type: 'counter',
    labels: ['integration', 'class'],
    help: 'Requests of this process to third parties for accounts, by name of the integration and class: `ok`, `rate_limited`, `error` (an error, or an answer that cannot be read), `unreachable` (no connection, or no answer in time), `blocked` (by the address policy), `cancelled`. After 200 names a process counts further ones as `other`.',
  },
  accounts: {
    name: 'patchbay_accounts',
    type: 'gauge',
    labels: ['status'],
    help: 'Accounts of the whole installation by status. Counted every 60 s at most.',
  },
  inboundEvents: {
    name: 'patchbay_inbound_events_total',
    type: 'counter',
    labels: ['state'],
    help: 'Received webhooks of this process: `received`, `rejected` and `handshake` when they arrive (a server), `processed`, `unrouted` and `failed` when they have been processed (a worker).',
  },
  toolCalls: {
    name: 'patchbay_tool_calls_total',
    type: 'counter',
    labels: ['outcome'],
    help: 'Calls of tools that this server answered: `ok`, or the type of the error, such as `validation`, `upstream`, `needs_reauth`.',
  },
  requestDuration: {
    name: 'patchbay_request_duration_seconds',
    type: 'histogram',
    labels: ['operation'],
    help: 'Duration of requests, of streams until their end.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  },
} as const satisfies Readonly<Record<string, MetricSpec>>
