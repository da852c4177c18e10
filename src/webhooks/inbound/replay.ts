import { Failure, isUuid, notFound } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import type { TaskKind, TaskRecord } from '../../foundation/queue/index.ts'
import { INBOUND_STATES, type InboundState } from './inbound-event.ts'
import { findReplayable, type ReplayFilter, requeueEvents } from './sql/replay.ts'

/** What asking for a replay did: it waits now, or did already. */
export type ReplayRequest = { readonly kind: 'queued' } | { readonly kind: 'waiting' }

/** States of events that can be processed again: those that were authenticated. */
const REPLAYABLE: readonly InboundState[] = ['received', 'processed', 'failed', 'unrouted']

/**
 * Puts a received webhook into the queue again, to be processed with the definition, the accounts and their contexts as they
 * are then. It leads to new events, marked `replay: true`; what it led to before stays. Needs a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND; RUN_STATE_CONFLICT for one that was rejected, was a handshake, or whose content was deleted
 */
export async function replayInboundEvent(tx: Db, environmentId: string, id: string): Promise<ReplayRequest> {
  const [found] = isUuid(id) ? await requeueEvents(tx, environmentId, [id], REPLAYABLE) : []
  if (found === undefined) throw notFound('inbound_event', id)
  if (found.isQueued) return { kind: 'queued' }
  if (found.isWaiting) return { kind: 'waiting' }
  const why = found.hasContent ? `it is a ${found.state} request` : 'its content was deleted'
  throw new Failure('RUN_STATE_CONFLICT', `the webhook ${id} cannot be processed again: ${why}`, {
    metadata: { state: found.state },
    resource: { type: 'inbound_event', id },
  })
}

/** Events per step of the task: far below a second. */
const STEP_EVENTS = 500

/**
 * The task that replays every webhook of an environment that a filter names, oldest first. Parameters in the names of the
 * contract: `{source_id?, integrated_account_id?, state?, lookup_value?, after?, before?}`; times in RFC 3339. Counts `queued`
 * and `skipped`: those that wait already, or whose content was deleted.
 */
export const INBOUND_REPLAY_TASK: TaskKind = {
  kind: 'replay_inbound_events',
  async step(tx, task) {
    const { environmentId } = task
    const ids = await findReplayable(tx, environmentId, readFilter(task), {
      after: typeof task.cursor === 'string' ? task.cursor : null,
      limit: STEP_EVENTS,
    })
    const results = ids.length === 0 ? [] : await requeueEvents(tx, environmentId, ids, REPLAYABLE)
    const queued = results.filter(({ isQueued }) => isQueued).length
    const cursor = ids.length < STEP_EVENTS ? null : (ids.at(-1) ?? null)
    return { done: ids.length, cursor, counts: { queued, skipped: ids.length - queued } }
  },
}

function readFilter({ params, createdAt }: TaskRecord): ReplayFilter {
  const text = (name: string) => (typeof params[name] === 'string' ? params[name] : null)
  const time = (name: string) => {
    const value = text(name)
    return value === null ? null : new Date(value)
  }
  const state = INBOUND_STATES.find((each) => each === text('state'))
  const before = time('before')
  return {
    sourceId: text('source_id'),
    integratedAccountId: text('integrated_account_id'),
    states: state === undefined ? REPLAYABLE.filter((each) => each !== 'received') : [state],
    lookupValue: text('lookup_value'),
    after: time('after'),
    // What was received later is not meant.
    before: before === null || before > createdAt ? createdAt : before,
  }
}
