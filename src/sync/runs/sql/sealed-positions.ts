import { type Db, queryOne } from '../../../foundation/database/index.ts'

/**
 * How many runs that wait or are leased have a checkpoint with a sealed position (`{sealed}`, the state of a streamed list that a
 * daemon got and stores) that begins with a prefix. Reads the checkpoints of all unfinished runs.
 */
export async function countSealedPositions(tx: Db, prefix: string): Promise<number> {
  const row = await queryOne<{ count: number }>(
    tx,
    `select count(*) from (select run_id from run_queue union select run_id from run_lease) unfinished
     join run_checkpoint using (run_id)
     where exists (
       select from jsonb_path_query(checkpoint, '$.**.sealed') as found (value)
       where jsonb_typeof(value) = 'string' and starts_with(value #>> '{}', :prefix))`,
    { prefix },
  )
  return row?.count ?? 0
}
