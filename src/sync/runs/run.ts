import type { JsonObject } from '../../foundation/json/index.ts'
import type { DecidedEnding, WorkError, WorkOutcome } from '../../foundation/queue/index.ts'

/** What made a run: a tick of a trigger, or a call. */
type RunKind = 'cron' | 'manual'

/**
 * `created` waits for a worker or daemon, `running` is leased, `rate_limited` waits for the third party and resumes
 * itself. `completed` has read everything, `partially_completed` has passed over something; both are final. `failed` and
 * `stopped` are final until a retry, `skipped` was never executed.
 */
export type RunStatus =
  | 'created'
  | 'running'
  | 'rate_limited'
  | 'completed'
  | 'partially_completed'
  | 'failed'
  | 'stopped'
  | 'skipped'

const FINAL_STATUSES: ReadonlySet<RunStatus> = new Set([
  'completed',
  'partially_completed',
  'failed',
  'stopped',
  'skipped',
])

/** Whether a run in this status has ended, if it is not retried. */
export function isFinalStatus(status: RunStatus): boolean {
  return FINAL_STATUSES.has(status)
}

/** Where the records of a run go: to one of the two, never to both. */
export type RunDestination =
  | { readonly kind: 'daemon'; readonly groupKey: string }
  | { readonly kind: 'webhook'; readonly webhookId: string }

/** What an error on a record does: fail the run, be reported and counted, or be delivered with the page. */
export type ErrorHandling = 'fail_fast' | 'ignore' | 'batch'

/** Why a run or one of its listings failed, and at which place of the run. */
export type RunError = WorkError &
  ListingPlace & {
    /** The request that failed as `GET /contacts/7`, secrets removed; of one that could not be built, with its placeholders. */
    readonly request?: string
    /** The entry of that request in the request log; absent where nothing was sent. */
    readonly logId?: string
  }

/** The listing that an error concerns; empty where it concerns the run. */
type ListingPlace = {
  readonly resource?: string
  readonly method?: string
  /** The record that it was read for; absent without `depends_on`. */
  readonly parent?: ParentRef
  /** The element of the argument that `loop_on` names, as text; absent without. */
  readonly element?: string
}

/** Names a record that others depend on. */
export type ParentRef = {
  readonly resource: string
  /** Absent when the record has none. */
  readonly id?: string
  /** With the records above it, outermost first: `organisations/7/repositories/42`. */
  readonly path: string
}

/** What is to be corrected although nothing failed, such as records without an identifier. */
export type RunWarning = Pick<RunError, 'reason' | 'message'>

/** How a run ends: decided and stored before it is reported to the destination, so that another holder reports the same. */
export type RunEnding = DecidedEnding<RunError>

/** Progress of one node of a run. */
export type ResourceStats = {
  readonly resource: string
  readonly method: string
  readonly pages: number
  readonly fetched: number
  readonly delivered: number
  readonly failed: number
  /** Why the node's paging last ended; absent while it has not. */
  readonly stopReason?: string
  /** It has ended by itself, not by a limit, and with as many records as were claimed. */
  readonly complete: boolean
  /** Records in all, as the third party claims; absent where it does not. */
  readonly claimedTotal?: number
  /** Records with different identifiers, and the others. Absent while none was fetched. */
  readonly distinct?: number
  readonly duplicates?: number
  /** `distinct` and `duplicates` are lower bounds. Absent: they are exact. */
  readonly isEstimate?: boolean
  /** The first listings that failed, in order. Absent: none did. */
  readonly errors?: readonly RunError[]
  /** Further ones, which are only counted. Absent: there are none. */
  readonly errorsOmitted?: number
  /** Absent: there are none. */
  readonly warnings?: readonly RunWarning[]
}

/** A run as it is stored. */
export interface Run {
  readonly id: string
  readonly environmentId: string
  readonly syncJobId: string
  readonly integratedAccountId: string
  /** `null` on a run that was created directly. */
  readonly triggerId: string | null
  readonly kind: RunKind
  readonly status: RunStatus
  /** Why it was skipped, such as `overlap` or `account_needs_reauth`; `null` unless skipped. */
  readonly skipReason: string | null
  readonly args: JsonObject
  readonly resources: readonly JsonObject[]
  readonly destination: RunDestination
  readonly errorHandling: ErrorHandling
  readonly ignorePreviousRun: boolean
  /** Its tick; of a manual run, the moment of the call. */
  readonly scheduledFor: Date
  readonly startedAt: Date | null
  readonly finishedAt: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly resourceStats: readonly ResourceStats[]
  readonly error: RunError | null
  /** How many times it was claimed; waits for rate limits and releases do not count. */
  readonly attempt: number
  /** Counts writes, progress included. */
  readonly version: number
}

/** For how long runs go on trying where their job does not say. */
export const GIVE_UP_AFTER_SECONDS_DEFAULT = 86_400

/** A run as its queue hands it out, with everything that its execution needs. */
export interface QueuedRun {
  readonly id: string
  readonly environmentId: string
  readonly syncJobId: string
  readonly integratedAccountId: string
  readonly triggerId: string | null
  readonly kind: RunKind
  readonly args: JsonObject
  readonly resources: readonly JsonObject[]
  readonly destination: RunDestination
  readonly errorHandling: ErrorHandling
  /**
   * `{{previous_run_date}}` of each entry of `resources`; `null` for one that is to be read whole: it never was, or a full
   * sync was asked for.
   */
  readonly previousRunDates: readonly (Date | null)[]
  readonly scheduledFor: Date
  /** Start of the first attempt. */
  readonly startedAt: Date
  /** What the last attempt saved; `null` when there is nothing to resume. */
  readonly checkpoint: JsonObject | null
  readonly resourceStats: readonly ResourceStats[]
  /** Set when the run has ended but for the report to its destination and the settlement. */
  readonly ending: RunEnding | null
  /** Of the job: for how long a run goes on trying while the third party, or where its records go, is unavailable. */
  readonly giveUpAfterSeconds: number
  /** The first tick after that of the run, fired or not: its run takes over. Null: none is scheduled. */
  readonly nextTickAt: Date | null
  /** From 1. Greater than that of a holder that lost the run; one that released it may have had the same. */
  readonly attempt: number
  /** The attempt after which the run fails instead of being tried again. Grows when progress is saved. */
  readonly attemptsMax: number
  /**
   * All attempts lost their lease. Nothing is executed any more: this claim reports the failure to the destination, and
   * settles the run as failed with LEASE_EXPIRED.
   */
  readonly attemptsExhausted: boolean
  readonly leaseExpiresAt: Date
}

/** Runs whose records go to webhooks; any worker may claim them. */
export const WEBHOOK_QUEUE_GROUP = 'webhook'

/** Runs of one group and environment that may wait; a further tick is skipped, a further call rejected. */
export const QUEUE_DEPTH_MAX = 10_000

/** Prefix of the queue groups of daemon groups, before environment and key. */
export const DAEMON_QUEUE_GROUP_PREFIX = 'daemon:'

/** The queue group of a run, which names who may claim it: the workers, or the daemons of one group of one environment. */
export function queueGroupOf(environmentId: string, destination: RunDestination): string {
  return destination.kind === 'webhook' ? WEBHOOK_QUEUE_GROUP : daemonQueueGroup(environmentId, destination.groupKey)
}

/** The queue group of the daemons of an environment that registered under a group key. */
export function daemonQueueGroup(environmentId: string, groupKey: string): string {
  return `${DAEMON_QUEUE_GROUP_PREFIX}${environmentId}:${groupKey}`
}

/** How the execution of a claimed run ended. */
export type RunOutcome = WorkOutcome<RunError>

/** How an execution reports what it has done. */
export interface RunProgress {
  /**
   * Stores the checkpoint and the counters and renews the lease, in one statement.
   *
   * @param ending how the run ends, before that is reported to its destination; absent while that is not decided
   * @returns `stop` when the run should end here: it was asked to, or its worker drains
   * @throws Failure LEASE_LOST when another holder took over: nothing was stored, the execution must end
   */
  save(checkpoint: JsonObject, stats: readonly ResourceStats[], ending?: RunEnding): Promise<'continue' | 'stop'>
  /**
   * Shows on the run that it waits for the rate limit of the third party for the next `ms`, in the background. Nothing depends
   * on it: a failure is logged.
   */
  showWait(ms: number): void
}
