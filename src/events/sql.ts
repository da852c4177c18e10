import type { JsonObject } from '../base/index.ts'
import { execute, jsonb, type Tx } from '../database/index.ts'

/** A row to be inserted. */
interface EventToInsert {
  readonly id: string
  readonly environmentId: string
  readonly type: string
  readonly subjectId?: string | undefined
  readonly payload: JsonObject
}

/** Inserts the events; the partition follows from the time in each id. */
export async function insertEvents(tx: Tx, events: readonly EventToInsert[]): Promise<void> {
  await execute(
    tx,
    `insert into event (environment_id, id, type, subject_id, payload)
     select * from unnest(:environmentIds::uuid[], :ids::uuid[], :types::text[], :subjectIds::uuid[], :payloads::jsonb[])`,
    {
      environmentIds: events.map(({ environmentId }) => environmentId),
      ids: events.map(({ id }) => id),
      types: events.map(({ type }) => type),
      subjectIds: events.map(({ subjectId }) => subjectId ?? null),
      payloads: events.map(({ payload }) => jsonb(payload)),
    },
  )
}
