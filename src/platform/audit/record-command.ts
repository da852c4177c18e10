import { newId, runInRequest } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import { PendingEntry } from './pending-entry.ts'
import type { AuditEntryInput } from './sql/entry.ts'

/** A command as the audit log has it. */
export type RecordedCommand = Pick<AuditEntryInput, 'ownerId' | 'teamId' | 'isImpersonation' | 'method' | 'targetType'>

/**
 * Runs a command on the machine of the installation, and stores its entry in the transaction of what it changes. One that fails
 * has none.
 *
 * @param targetIdOf the id of what it has changed, by its result; called without one while it is not known
 */
export async function recordCommand<Result>(
  database: Database,
  command: RecordedCommand,
  targetIdOf: (result: Result | undefined) => string | undefined,
  work: (note: (result: Result) => Result) => Promise<Result>,
): Promise<Result> {
  const id = newId()
  const entry = new PendingEntry((result) => ({
    ...command,
    id,
    actorKind: 'command',
    actorId: null,
    targetId: targetIdOf(result as Result | undefined) ?? null,
    requestId: id,
    changes: {},
    clientAddress: null,
    userAgent: null,
  }))
  const note = (result: Result) => {
    entry.noteAnswer(result)
    return result
  }
  const scope = { slot: undefined, interruption: undefined, holdAnswer: () => () => {}, companion: entry }
  const result = note(await runInRequest(scope, () => work(note)))
  await entry.storeAlone(database)
  return result
}
