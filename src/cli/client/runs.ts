import { createClient } from '@connectrpc/connect'
import { SyncJobCronTriggerService } from '../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import type { ResourceStats, SyncJobRun, SyncJobRunError } from '../../../gen/patchbay/v1/sync_job_run_pb.ts'
import { SyncJobRunService } from '../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { newId } from '../../foundation/base/index.ts'
import { callErrorFrom } from './errors.ts'
import { connectTransport, type ServerAddress } from './transport.ts'

/** Status of a run; a newer server may send others. */
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

/** A run with its progress, as followed from a client. */
export interface FollowedRun {
  readonly id: string
  readonly status: FollowedRunStatus
  /** From 1 once it was claimed. */
  readonly attempt: number
  readonly startedAt: Date | undefined
  readonly finishedAt: Date | undefined
  readonly error: FollowedError | undefined
  readonly skipReason: string | undefined
  /** Why it waits, in words; absent when it does not. */
  readonly waiting: string | undefined
  /** In the order of the job; empty before the run starts. */
  readonly resources: readonly ResourceProgress[]
}

/** Why a run or one of its listings failed. */
export interface FollowedError {
  readonly reason: string
  readonly message: string
  /** Path of the record that was read for, such as `orders/13`; absent without. */
  readonly parent: string | undefined
  /** Such as `GET /orders/13/lines`; absent when none could be named. */
  readonly request: string | undefined
  /** Of that request in the request log; absent when nothing was sent. */
  readonly logId: string | undefined
}

/** Progress of one resource. */
export interface ResourceProgress {
  /** `issues`, with the method unless it is `list`: `issues.search`. */
  readonly name: string
  readonly pages: number
  readonly fetched: number
  readonly delivered: number
  readonly failed: number
  /** Total that the upstream reports; absent when it reports none. */
  readonly reportedTotal: number | undefined
  readonly stopReason: string | undefined
  /** Whether everything has been read; final when the run is finished. */
  readonly isComplete: boolean
  /** Of the first listings that failed, in order. */
  readonly errors: readonly FollowedError[]
  /** What to correct although nothing failed, in words. */
  readonly warnings: readonly string[]
}

const FINISHED_STATUSES: ReadonlySet<FollowedRunStatus> = new Set([
  'completed',
  'partially_completed',
  'failed',
  'stopped',
  'skipped',
])

/** Tells whether the run has ended: nothing more happens unless it is retried. */
export function isFinished({ status }: Pick<FollowedRun, 'status'>): boolean {
  return FINISHED_STATUSES.has(status)
}

/** Converts from the contract's message. */
function followedRunFromProto(run: SyncJobRun): FollowedRun {
  const { id, status, attempt, error, skipReason, waiting } = run
  return {
    id,
    status,
    attempt,
    skipReason,
    waiting: waiting && waitingText(waiting.message, dateFromProto(waiting.until)),
    error: error && errorFromProto(error),
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
  const counts = { pages, fetched, delivered, failed, reportedTotal: claimedTotal, stopReason }
  return {
    name,
    ...counts,
    isComplete: complete,
    errors: stats.errors.map(errorFromProto),
    warnings: stats.warnings.map(({ message }) => message),
  }
}

function errorFromProto({ reason, message, parent, element, request, logId }: SyncJobRunError): FollowedError {
  const place = [parent?.path, element].filter((text) => text !== undefined)
  return { reason, message, parent: place.length === 0 ? undefined : place.join(', '), request, logId }
}

function dateFromProto(timestamp: SyncJobRun['startedAt']): Date | undefined {
  return timestamp && new Date(Number(timestamp.seconds) * 1_000 + timestamp.nanos / 1e6)
}

/** Client for runs. Every method throws a `Failure` with the server's reason, or `ServerUnavailable`. */
export interface RunsClient {
  /** Starts a run of the trigger now. @param isFull it reads everything, not only what has changed */
  start(triggerId: string, isFull: boolean): Promise<FollowedRun>
  /** The run at once and after every change, until it is finished; `undefined` is a keep-alive in between. */
  watch(id: string, signal: AbortSignal): AsyncIterable<FollowedRun | undefined>
}

const START_TIMEOUT_MS = 30_000

/** Creates a client of the server at that address. */
export function createRunsClient(address: ServerAddress): RunsClient {
  const transport = connectTransport(address)
  const triggers = createClient(SyncJobCronTriggerService, transport)
  const runs = createClient(SyncJobRunService, transport)
  return {
    async start(id, ignorePreviousRun) {
      const request = { id, requestId: newId(), ignorePreviousRun }
      const started = triggers.runSyncJobCronTrigger(request, { timeoutMs: START_TIMEOUT_MS })
      return followedRunFromProto(await started.catch(throwCallError))
    },
    async *watch(id, signal) {
      try {
        for await (const { syncJobRun } of runs.watchSyncJobRun({ id }, { signal }))
          yield syncJobRun && followedRunFromProto(syncJobRun)
      } catch (error) {
        throwCallError(error)
      }
    },
  }
}

function throwCallError(error: unknown): never {
  throw callErrorFrom(error)
}
