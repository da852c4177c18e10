import { Failure, type PollLoopSpec } from '../../foundation/base/index.ts'
import { type Database, type Db, isDatabaseUnavailable, type Tx } from '../../foundation/database/index.ts'
import { describeError, type Logger } from '../../foundation/telemetry/index.ts'
import {
  type DueHint,
  deleteHint,
  postponeHint,
  type SyncHint,
  takeDueHint,
  updateItemDetails,
} from './sql/sync-hint.ts'

/** A resource of an account, as syncs name it. */
type HintedTarget = Pick<SyncHint, 'environmentId' | 'integratedAccountId' | 'resource'>

/** The triggers of syncs, which belong to a module beside this one. */
export interface HintedSyncs {
  /** Ids of the triggers that a hint would start. */
  findTriggers(tx: Db, hint: HintedTarget): Promise<readonly string[]>
  /**
   * Starts a run of each of them, unless one waits that has read nothing yet.
   *
   * @returns what became of each
   * @throws Failure GROUP_FULL and other errors that pass
   */
  startRuns(tx: Tx, hint: HintedTarget): Promise<readonly StartedSync[]>
}

/** What became of one trigger. */
type StartedSync = { readonly triggerId: string } & (
  | { readonly kind: 'started'; readonly runId: string }
  | { readonly kind: 'waiting' }
  | { readonly kind: 'failed'; readonly error: Failure }
)

/** What starting the syncs of hints takes. */
export interface SyncHintDeps {
  readonly database: Database
  readonly syncs: HintedSyncs
  readonly logger: Pick<Logger, 'warn' | 'error'>
}

/** Debounce: hints about one resource of one account start one sync, so long after the first of them. */
export const HINT_DELAY_MS = 10_000
const POLL_MS = 1_000
const POSTPONE_MS = 30_000
/** Two hours: a queue that is full for longer has a person's attention. */
const ATTEMPTS_MAX = 240

/**
 * Starts the syncs that hints ask for. The hint is deleted in the transaction that creates the runs, so that it starts each of
 * them once; a hint that comes while a run is created starts another one after the delay.
 */
export function syncHintStarter(deps: SyncHintDeps): PollLoopSpec {
  return { name: 'sync-hints', intervalMs: POLL_MS, runOnce: () => startNext(deps) }
}

/** @returns whether a hint was due */
async function startNext(deps: SyncHintDeps): Promise<boolean> {
  let hint: DueHint | undefined
  try {
    return await deps.database.transaction(async (tx) => {
      hint = await takeDueHint(tx)
      if (hint === undefined) return false
      const syncs = await deps.syncs.startRuns(tx, hint)
      await updateItemDetails(tx, hint.environmentId, hint.items, describeSyncs(syncs))
      return true
    })
  } catch (error) {
    if (hint === undefined || isDatabaseUnavailable(error)) throw error
    await recordFailure(deps, hint, error)
    return true
  }
}

async function recordFailure({ database, logger }: SyncHintDeps, hint: DueHint, error: unknown): Promise<void> {
  const { environmentId, integratedAccountId, resource, items } = hint
  const fields = { integrated_account_id: integratedAccountId, resource, ...describeError(error) }
  const isRepeated = hint.attempts + 1 < ATTEMPTS_MAX
  if (isRepeated && error instanceof Failure) logger.warn(fields, 'the syncs of a hint could not be started yet')
  else logger.error(fields, 'the syncs of a hint could not be started')
  if (isRepeated) return await postponeHint(database.pool, hint, POSTPONE_MS)
  await database.transaction(async (tx) => {
    await deleteHint(tx, hint)
    await updateItemDetails(tx, environmentId, items, 'no sync was started: the queue was full for too long')
  })
}

/** What items say of the syncs that their hint has started. */
function describeSyncs(syncs: readonly StartedSync[]): string {
  if (syncs.length === 0) return 'no sync was started: no active trigger of the account reads the resource any more'
  return syncs.map(describeSync).join('; ')
}

function describeSync(sync: StartedSync): string {
  switch (sync.kind) {
    case 'started':
      return `started run ${sync.runId} of trigger ${sync.triggerId}`
    case 'waiting':
      return `a run of trigger ${sync.triggerId} waits already`
    case 'failed':
      return `trigger ${sync.triggerId} cannot run: ${sync.error.reason}`
  }
}
