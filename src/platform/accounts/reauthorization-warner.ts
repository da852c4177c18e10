import { appendAccountEvent } from './account-events.ts'
import type { AccountDependencies } from './dependencies.ts'
import { claimReauthorizationWarnings } from './sql/account-state.ts'

/** Accounts per transaction. */
const BATCH_SIZE = 50

/** What warning takes. */
type WarnerOptions = Pick<AccountDependencies, 'database'> & {
  /** Only accounts of these regions. Absent: all. */
  readonly regions?: readonly string[] | undefined
}

/**
 * Records `integrated_account:reauthorization_due` once for each grant that will end, early enough for the customer to connect
 * the account again. An account that needs that already has its own event.
 *
 * @returns whether more accounts may be due
 */
export async function warnOfReauthorization({ database, regions }: WarnerOptions): Promise<boolean> {
  return await database.transaction(async (tx) => {
    const due = await claimReauthorizationWarnings(tx, { regions, limit: BATCH_SIZE })
    for (const account of due)
      if (account.status !== 'needs_reauth') await appendAccountEvent(tx, account, 'reauthorization_due')
    return due.length === BATCH_SIZE
  })
}
