import { notFound } from '../base/index.ts'
import { type AccountStatus, type Tx, transitionAccountStatus } from '../storage/index.ts'
import { type StatusCause, transitionsFor } from './status.ts'

/** What came of a cause. */
export type StatusChange =
  | { readonly kind: 'changed'; readonly from: AccountStatus; readonly to: AccountStatus }
  /** The table has no such step from this status: nothing was changed and nothing written to the history. */
  | { readonly kind: 'impossible'; readonly from: AccountStatus }

/**
 * Lets something that happened change an account's status, with one row of history, in one statement: of two that report the
 * same at once one changes it, and the other is told that it is impossible from there.
 *
 * @param lastError what the account shows from now on; empty clears it
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function changeAccountStatus(
  tx: Tx,
  account: { readonly environmentId: string; readonly id: string },
  cause: Exclude<StatusCause, 'created'>,
  lastError = '',
): Promise<StatusChange> {
  const transition = await transitionAccountStatus(tx, account, transitionsFor(cause), { cause, lastError })
  if (transition === undefined) throw notFound('integrated_account', account.id)
  const { from, to } = transition
  return to === null ? { kind: 'impossible', from } : { kind: 'changed', from, to }
}
