import { notFound } from '../../foundation/base/index.ts'
import {
  type Db,
  decodePageToken,
  type ListPage,
  type ListPageRequest,
  listQuery,
  readPageSize,
  toPage,
} from '../../foundation/database/index.ts'
import { QUEUE_POLICY } from '../../foundation/queue/index.ts'
import { DAEMON_QUEUE_GROUP_PREFIX, type Run, WEBHOOK_QUEUE_GROUP } from './run.ts'
import { findRun, listRuns as listRunRecords, type RunFilter, type RunRecord } from './sql/run.ts'
import { findRunWaits, type RunWaitRow } from './sql/run-wait.ts'

/** A run, and what it waits for. @throws Failure RESOURCE_NOT_FOUND */
export async function getRun(tx: Db, environmentId: string, id: string): Promise<RunView<RunRecord>> {
  return await withWaitState(tx, await getRunRecord(tx, environmentId, id))
}

/** The run as it is stored. @throws Failure RESOURCE_NOT_FOUND */
export async function getRunRecord(tx: Db, environmentId: string, id: string): Promise<RunRecord> {
  const run = await findRun(tx, environmentId, id)
  if (run === undefined) throw notFound('sync_job_run', id)
  return run
}

/** A page of runs and what they wait for, newest tick first; filters combine with and. @throws Failure PAGE_TOKEN_INVALID */
export async function listRuns(
  tx: Db,
  environmentId: string,
  filter: RunFilter,
  request: ListPageRequest,
): Promise<ListPage<RunView>> {
  const query = listQuery('sync_job_run', environmentId, filter)
  const size = readPageSize(request)
  const cursor = decodePageToken(query, request.pageToken, ['time', 'uuid'])
  const below = cursor && { scheduledFor: new Date(Number(cursor[0])), id: String(cursor[1]) }
  const found = await listRunRecords(tx, environmentId, filter, below, size + 1)
  const page = toPage(query, found, size, ({ scheduledFor, id }) => [scheduledFor.getTime(), id])
  return { ...page, items: await withWaitStates(tx, page.items) }
}

/**
 * What a run waits for: its next attempt (`retry`), the upstream's rate limit (`rate_limited`), its webhook or the store of its
 * daemon (`destination_unavailable`), another run of its account (`account_busy`), a worker or daemon that takes runs of its
 * region (`no_worker`, `no_daemon`), or capacity of one of those (`capacity`).
 */
type WaitReason =
  | 'retry'
  | 'rate_limited'
  | 'destination_unavailable'
  | 'account_busy'
  | 'no_worker'
  | 'no_daemon'
  | 'capacity'

/** Why a run does not go on at the moment. */
interface WaitState {
  readonly reason: WaitReason
  /** In words, and what to do where something can be done. */
  readonly message: string
  /** Earliest time of the next attempt; absent: as soon as possible. */
  readonly until: Date | undefined
  /** The run it waits for. */
  readonly blockingRunId: string | undefined
}

/** A run with what it waits for. */
export type RunView<Stored extends Run = Run> = Stored & {
  /** Absent: it does not wait. */
  readonly waiting?: WaitState | undefined
}

/** Whether a run in this status waits in the queue. */
export function isQueued({ status }: Pick<Run, 'status'>): boolean {
  return status === 'created' || status === 'rate_limited'
}

/** Whether a run in this status may wait: a running one does while its worker waits for a rate limit. */
export function mayWait(run: Pick<Run, 'status'>): boolean {
  return run.status === 'running' || isQueued(run)
}

/**
 * Adds what each run waits for, in their order. Computed, not stored with the run: one statement for those that may wait, none
 * without any.
 */
export async function withWaitStates<Stored extends Run>(
  tx: Db,
  runs: readonly Stored[],
): Promise<readonly RunView<Stored>[]> {
  const candidates = runs.filter(mayWait)
  if (candidates.length === 0) return runs
  const { queued = [], running = [] } = Object.groupBy(candidates, (run) => (isQueued(run) ? 'queued' : 'running'))
  const found = await findRunWaits(
    tx,
    idsOf(queued),
    idsOf(running),
    WEBHOOK_QUEUE_GROUP,
    DAEMON_QUEUE_GROUP_PREFIX,
    QUEUE_POLICY.leaseMs,
  )
  const waits = new Map(found.map((wait) => [wait.id, wait]))
  return runs.map((run) => {
    const wait = waits.get(run.id)
    if (wait !== undefined) return { ...run, waiting: waitStateOf(run, wait) }
    return 'waiting' in run ? { ...run, waiting: undefined } : run
  })
}

/** One run with what it waits for. */
export async function withWaitState<Stored extends Run>(tx: Db, run: Stored): Promise<RunView<Stored>> {
  const [view = run] = await withWaitStates(tx, [run])
  return view
}

function idsOf(runs: readonly Run[]): readonly string[] {
  return runs.map(({ id }) => id)
}

function waitStateOf(run: Run, wait: RunWaitRow): WaitState {
  const { runningRunId, notBefore } = wait
  if (notBefore !== null) return { ...delayReason(run), until: notBefore, blockingRunId: undefined }
  const now = { until: undefined, blockingRunId: undefined }
  if (runningRunId !== null) {
    const message = `waits for run ${runningRunId}: runs of one account go one at a time`
    return { ...now, reason: 'account_busy', message, blockingRunId: runningRunId }
  }
  return { ...now, ...(wait.hasTaker ? capacityReason(run) : missingTakerReason(run, wait)) }
}

function delayReason({ status, error, destination }: Run): Pick<WaitState, 'reason' | 'message'> {
  const because = error === null ? '' : `: ${error.message}`
  if (status === 'running') return { reason: 'rate_limited', message: 'waits for the rate limit of the third party' }
  if (status === 'created') return { reason: 'retry', message: `waits for its next attempt${because}` }
  if (error === null) return { reason: 'rate_limited', message: 'waits because the third party asked to' }
  const who = destination.kind === 'webhook' ? 'webhook' : 'store'
  return { reason: 'destination_unavailable', message: `waits for its ${who}${because}` }
}

function capacityReason({ destination }: Run): Pick<WaitState, 'reason' | 'message'> {
  const who = destination.kind === 'webhook' ? 'a worker' : `a daemon of the group ${destination.groupKey}`
  return { reason: 'capacity', message: `waits until ${who} has room for it` }
}

function missingTakerReason({ destination }: Run, { region }: RunWaitRow): Pick<WaitState, 'reason' | 'message'> {
  if (destination.kind === 'webhook')
    return { reason: 'no_worker', message: `no worker takes runs of the region ${region}: start one that does` }
  const { groupKey } = destination
  const message = `no daemon of the group ${groupKey} takes runs of the region ${region}: start one that does`
  return { reason: 'no_daemon', message }
}
