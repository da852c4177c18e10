import { type Db, queryOne } from '../../../foundation/database/index.ts'
import type { QueueTable } from '../../../foundation/queue/index.ts'
import type { SourceKind } from '../inbound-event.ts'

/** Events of one address that are processed at once. */
const LEASES_PER_SOURCE = 64

/** The queue of accepted events; the address they came to is the concurrency key, with several leases at once. */
export const INBOUND_QUEUE: QueueTable = {
  waiting: 'inbound_queue',
  lease: 'inbound_lease',
  id: 'event_id',
  key: 'source_id',
  payload: 'source_kind, is_replay',
  leasesPerKey: LEASES_PER_SOURCE,
}

/** The payload of an event in its queue. */
export interface InboundQueuePayload {
  readonly sourceKind: SourceKind
  /** It was asked to be processed again. */
  readonly isReplay: boolean
}

/** The groups of the queue, for any worker: what was just received, and what is processed again, which has at least a quarter of each claim. */
export const INBOUND_QUEUE_GROUPS = { received: 'received', replay: 'replay' } as const

/** Whether anything waits that is due. Reads the queue up to the first such row: it holds few that are not. */
export async function hasWaitingEvents(tx: Db): Promise<boolean> {
  return (await queryOne(tx, 'select from inbound_queue where available_at <= now() limit 1', {})) !== undefined
}
