import { detachFromRequest, MicroBatcher } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import { insertToolCalls, type NewToolCall } from './sql/tool-call.ts'

/** Longest name that is recorded, in characters: a client may send any. */
const NAME_LENGTH_MAX = 128
const BATCHES_MAX = 2
const CALLS_PER_BATCH_MAX = 200

/** Writes the record of calls. */
export interface CallRecorder {
  /** Resolves once the call is stored, or could not be: that is reported, and is no error of the call. */
  record(call: NewToolCall): Promise<void>
  /** Lets a write finish that no request waits for. */
  track(write: Promise<void>): void
  /** Resolves when no write is under way. */
  settled(): Promise<void>
}

/** Creates the recorder of one process; concurrent calls share statements. */
export function createCallRecorder({
  database,
  onWriteError,
}: {
  readonly database: Pick<Database, 'pool'>
  readonly onWriteError: (error: unknown) => void
}): CallRecorder {
  const pending = new Set<Promise<void>>()
  const batcher = new MicroBatcher<NewToolCall, void>({
    concurrencyMax: BATCHES_MAX,
    batchMax: CALLS_PER_BATCH_MAX,
    async process(calls) {
      await insertToolCalls(database.pool, calls)
      return calls.map(() => undefined)
    },
  })
  function track(write: Promise<void>): Promise<void> {
    const tracked: Promise<void> = write.catch(onWriteError).finally(() => pending.delete(tracked))
    pending.add(tracked)
    return tracked
  }
  return {
    record(call) {
      const row = { ...call, tool: storableName(call.tool) }
      // Also a call whose client went away has happened.
      return track(detachFromRequest(() => batcher.run(row)))
    },
    track: (write) => void track(write),
    async settled() {
      await Promise.all(pending)
    },
  }
}

/** PostgreSQL stores no NUL, and half of a pair of surrogates is no character. */
function storableName(name: string): string {
  return name.slice(0, NAME_LENGTH_MAX).replaceAll('\0', '').toWellFormed()
}
