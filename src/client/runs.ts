import { createClient } from '@connectrpc/connect'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import type { ResourceStats, SyncJobRun } from '../../gen/patchbay/v1/sync_job_run_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { newId } from '../base/index.ts'
import { clientErrorFrom } from './errors.ts'
import { connectTransport, type ServerAddress } from './transport.ts'

/** Where a run is; a server newer than this program may know others. */
type FollowedRunStatus =
  | 'created'
  | 'running'
  | 'rate_limited'
  | 'completed'
  | 'partially_completed'
  | 'failed'
  | 'stopped'
  | 'skipped'
  | (string & {})

/** A run as far as somebody who follows it looks. */
export interface FollowedRun {
  readonly id: string
  readonly status: FollowedRunStatus
  /** From 1 once it was taken up. */
  readonly attempt: number
  readonly startedAt: Date | undefined
  readonly finishedAt: Date | undefined
  readonly error: { readonly reason: string; readonly message: string } | undefined
  readonly skipReason: string | undefined
  /** Why it is not running yet, in words; absent: it does not wait. */
  readonly waiting: string | undefined
  /** In the order in which the job names them; empty before it starts. */
  readonly resources: readonly ResourceProgress[]
}

/** What was read of one resource so far. */
export interface ResourceProgress {
  /** `issues`, and its method when that is not the usual one: `issues.search`. */
  readonly name: string
  readonly pages: number
  readonly fetched: number
  readonly delivered: number
  readonly failed: number
  /** Records in all, as the third party claims; absent where it does not. */
  readonly reportedTotal: number | undefined
  readonly stopReason: string | undefined
  /** Whether all there was has been read; settled when the run ends. */
  readonly isComplete: boolean
}

const FINISHED_STATUSES: ReadonlySet<FollowedRunStatus> = new Set([
  'completed',
  'partially_completed',
  'failed',
  'stopped',
  'skipped',
])

/** Tells whether nothing more comes of the run unless somebody retries it. */
export function isFinished({ status }: Pick<FollowedRun, 'status'>): boolean {
  return FINISHED_STATUSES.has(status)
}

/** Parses the contract's form. */
function followedRunFromProto(run: SyncJobRun): FollowedRun {
  const { id, status, attempt, error, skipReason, waiting } = run
  return {
    id,
    status,
    attempt,
    skipReason,
    waiting: waiting && waitingText(waiting.message, dateFromProto(waiting.until)),
    error: error && { reason: error.reason, message: error.message },
    startedAt: dateFromProto(run.startedAt),
    finishedAt: dateFromProto(run.finishedAt),
    resources: run.resourceStats.map(progressFromProto),
  }
}

function waitingText(message: string, until: Date | undefined): string {
  return until === undefined ? message : `${message} (until ${until.toISOString()})`
}

function progressFromProto(stats: ResourceStats): ResourceProgress {
  const { resource, method, pages, fetched, delivered, failed, claimedTotal, stopReason, complete } = stats
  const name = method === 'list' ? resource : `${resource}.${method}`
  return { name, pages, fetched, delivered, failed, reportedTotal: claimedTotal, stopReason, isComplete: complete }
}

function dateFromProto(timestamp: SyncJobRun['startedAt']): Date | undefined {
  return timestamp && new Date(Number(timestamp.seconds) * 1_000 + timestamp.nanos / 1e6)
}

/** What can be done with runs. Everything fails with a `Failure` of the server's reason, or with `ServerUnavailable`. */
export interface RunsClient {
  /** Makes a run of the trigger, now. */
  start(triggerId: string): Promise<FollowedRun>
  /** The run at once and after every change, until it is over; `undefined` is a sign of life in between. */
  watch(id: string, signal: AbortSignal): AsyncIterable<FollowedRun | undefined>
}

const START_TIMEOUT_MS = 30_000

/** A client of the server at that address. */
export function createRunsClient(address: ServerAddress): RunsClient {
  const transport = connectTransport(address)
  const triggers = createClient(SyncJobCronTriggerService, transport)
  const runs = createClient(SyncJobRunService, transport)
  return {
    async start(id) {
      const request = { id, requestId: newId() }
      const started = triggers.runSyncJobCronTrigger(request, { timeoutMs: START_TIMEOUT_MS })
      return followedRunFromProto(await started.catch(throwClientError))
    },
    async *watch(id, signal) {
      try {
        for await (const { syncJobRun } of runs.watchSyncJobRun({ id }, { signal }))
          yield syncJobRun && followedRunFromProto(syncJobRun)
      } catch (error) {
        throwClientError(error)
      }
    },
  }
}

function throwClientError(error: unknown): never {
  throw clientErrorFrom(error)
}
