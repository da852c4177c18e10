import { notFound, type TransitionTable, transitionsOf } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import type { Logger } from '../../foundation/telemetry/index.ts'
import { type AccountEventName, appendAccountEvent } from './account-events.ts'
import { type AccountState, transitionAccountStatus } from './sql/account-history.ts'
import type { AccountRef, AccountStatus } from './sql/integrated-account.ts'

/** What changes an account's status; the names in its history. */
export type StatusCause =
  | 'created'
  | 'reconnected'
  | 'steps_repeated'
  | 'steps_passed'
  | 'post_install_failed'
  | 'validation_failed'
  | 'refresh_failed'
  | 'token_lost'
  | 'token_granted'
  | 'unauthorized'
  | 'call_succeeded'
  | 'hosts_moved'

type AccountTransitions = TransitionTable<AccountState, StatusCause>

/**
 * State machine of accounts: every transition there is.
 *
 * An account that is reconnected runs its steps again in any status, also while it is connecting, because the steps so far
 * were for other credentials. `token_lost` is a refresh that failed because the response to an earlier one was lost with its
 * process, `token_granted` a refresh that succeeds after one that failed for good. `unauthorized` is an upstream 401 after a
 * refresh, or without a possible one: the account is shown as `needs_reauth`, and a successful call proves it wrong
 * (`call_succeeded`). It proves nothing about a grant that was refused: the token of the call is of the time before. `hosts_moved`:
 * requests go to other hosts than those for which the credentials were entered, and these were removed.
 */
export const ACCOUNT_TRANSITIONS = {
  new: { created: 'connecting' },
  connecting: {
    reconnected: 'connecting',
    steps_passed: 'active',
    post_install_failed: 'post_install_error',
    validation_failed: 'validation_error',
    hosts_moved: 'needs_reauth',
  },
  active: {
    reconnected: 'connecting',
    refresh_failed: 'needs_reauth',
    token_lost: 'needs_reauth',
    unauthorized: 'unauthorized',
    hosts_moved: 'needs_reauth',
  },
  post_install_error: { reconnected: 'connecting', steps_repeated: 'connecting', hosts_moved: 'needs_reauth' },
  validation_error: { reconnected: 'connecting', steps_repeated: 'connecting', hosts_moved: 'needs_reauth' },
  unauthorized: {
    reconnected: 'connecting',
    refresh_failed: 'needs_reauth',
    token_lost: 'needs_reauth',
    call_succeeded: 'active',
    hosts_moved: 'needs_reauth',
  },
  needs_reauth: { reconnected: 'connecting', token_granted: 'active' },
} as const satisfies AccountTransitions

/** The event that a transition sends. */
export const CAUSE_EVENTS: Readonly<Record<StatusCause, Exclude<AccountEventName, 'deleted'>>> = {
  created: 'created',
  reconnected: 'updated',
  steps_repeated: 'updated',
  steps_passed: 'active',
  post_install_failed: 'post_install_error',
  validation_failed: 'validation_error',
  refresh_failed: 'authentication_error',
  token_lost: 'authentication_error',
  token_granted: 'reactivated',
  unauthorized: 'authentication_error',
  call_succeeded: 'reactivated',
  hosts_moved: 'authentication_error',
}

const TRANSITIONS: AccountTransitions = ACCOUNT_TRANSITIONS

/** The state that a cause leads to, `undefined` without a transition. */
export function nextStatus(from: AccountState | undefined, cause: StatusCause): AccountState | undefined {
  return TRANSITIONS[from ?? 'new'][cause]
}

/** The outcome of a cause. */
export type StatusChange =
  | { readonly kind: 'changed'; readonly from: AccountStatus; readonly to: AccountStatus }
  /** There is no transition from this status: nothing was changed, and nothing written to the history. */
  | { readonly kind: 'impossible'; readonly from: AccountStatus }

/**
 * Makes the transition of a cause and writes one row of history, in one statement: of two concurrent callers one makes it, and
 * for the other it is impossible from the new status. The event of the cause is recorded with it.
 *
 * @param lastError what the account shows from now on; empty clears it
 * @param logger gets a line about the change, when it is made by no request that is logged itself
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function changeAccountStatus(
  tx: Tx,
  account: AccountRef,
  cause: Exclude<StatusCause, 'created'>,
  lastError = '',
  logger?: Pick<Logger, 'info' | 'warn'>,
): Promise<StatusChange> {
  const transition = await transitionAccountStatus(tx, account, transitionsOf(TRANSITIONS, cause), { cause, lastError })
  if (transition === undefined) throw notFound('integrated_account', account.id)
  const { from, to } = transition
  if (to === null) return { kind: 'impossible', from }
  await appendAccountEvent(tx, account, CAUSE_EVENTS[cause])
  const fields = { environment_id: account.environmentId, integrated_account_id: account.id, from, to, cause }
  if (lastError === '') logger?.info(fields, 'the status of an account has changed')
  else logger?.warn({ ...fields, error: lastError }, 'the status of an account has changed')
  return { kind: 'changed', from, to }
}
