import { notFound } from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import { type AccountEventName, appendAccountEvent } from './account-events.ts'
import {
  type AccountRef,
  type AccountStatus,
  type StatusTransition,
  transitionAccountStatus,
} from './sql/integrated-account.ts'

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
  | 'unauthorized'
  | 'call_succeeded'

/** The status of an account before it is created. */
const NEW = 'new'

type TransitionTable = Readonly<
  Record<AccountStatus | typeof NEW, Partial<Readonly<Record<StatusCause, AccountStatus>>>>
>

/**
 * State machine of accounts: every transition there is.
 *
 * An account that is reconnected runs its steps again in any status, also while it is connecting, because the steps so far
 * were for other credentials. `token_lost` is a refresh that failed because the response to an earlier one was lost with its
 * process; `unauthorized` is an upstream 401 after a refresh, or without a possible one; `call_succeeded` a
 * successful call of an account that needed reauthorisation.
 */
export const ACCOUNT_TRANSITIONS = {
  new: { created: 'connecting' },
  connecting: {
    reconnected: 'connecting',
    steps_passed: 'active',
    post_install_failed: 'post_install_error',
    validation_failed: 'validation_error',
  },
  active: {
    reconnected: 'connecting',
    refresh_failed: 'needs_reauth',
    token_lost: 'needs_reauth',
    unauthorized: 'needs_reauth',
  },
  post_install_error: { reconnected: 'connecting', steps_repeated: 'connecting' },
  validation_error: { reconnected: 'connecting', steps_repeated: 'connecting' },
  needs_reauth: { reconnected: 'connecting', call_succeeded: 'active' },
} as const satisfies TransitionTable

/** The event that a transition sends. */
const CAUSE_EVENTS: Readonly<Record<StatusCause, Exclude<AccountEventName, 'deleted'>>> = {
  created: 'created',
  reconnected: 'updated',
  steps_repeated: 'updated',
  steps_passed: 'active',
  post_install_failed: 'post_install_error',
  validation_failed: 'validation_error',
  refresh_failed: 'authentication_error',
  token_lost: 'authentication_error',
  unauthorized: 'authentication_error',
  call_succeeded: 'reactivated',
}

const TRANSITIONS: TransitionTable = ACCOUNT_TRANSITIONS
const CAUSES = Object.keys(CAUSE_EVENTS) as StatusCause[]
const STATUSES = Object.keys(ACCOUNT_TRANSITIONS).filter((status): status is AccountStatus => status !== NEW)

/** The status that a cause leads to, `undefined` without a transition. */
export function nextStatus(from: AccountStatus | undefined, cause: StatusCause): AccountStatus | undefined {
  return TRANSITIONS[from ?? NEW][cause]
}

/** The transitions of a cause, one per status that it may start from. */
function transitionsFor(cause: StatusCause): readonly StatusTransition[] {
  return STATUSES.flatMap((from) => {
    const to = nextStatus(from, cause)
    return to === undefined ? [] : [{ from, to }]
  })
}

/** The table of transitions as Markdown, columns aligned. */
export function renderTransitions(): string {
  const transitions = Object.entries(TRANSITIONS).flatMap(([from, causes]) =>
    CAUSES.flatMap((cause) => {
      const to = causes[cause]
      const start = from === NEW ? '(none)' : `\`${from}\``
      return to === undefined ? [] : [[start, `\`${cause}\``, `\`${to}\``, `\`${CAUSE_EVENTS[cause]}\``]]
    }),
  )
  const rows = [['from', 'cause', 'to', 'event'], ...transitions]
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)))
  const line = (cells: readonly string[]) => `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`
  const rule = line(widths.map((width) => '-'.repeat(width)))
  return rows.map((cells, at) => (at === 0 ? `${line(cells)}\n${rule}` : line(cells))).join('\n')
}

/** The outcome of a cause. */
export type StatusChange =
  | { readonly kind: 'changed'; readonly from: AccountStatus; readonly to: AccountStatus }
  /** There is no transition from this status: nothing was changed, and nothing written to the history. */
  | { readonly kind: 'impossible'; readonly from: AccountStatus }

/**
 * Makes the transition of a cause and writes one row of history, in one statement: of two concurrent callers one makes it, and
 * for the other it is impossible from the new status. The event of the cause is recorded with it. `tx` is a transaction.
 *
 * @param lastError what the account shows from now on; empty clears it
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function changeAccountStatus(
  tx: Tx,
  account: AccountRef,
  cause: Exclude<StatusCause, 'created'>,
  lastError = '',
): Promise<StatusChange> {
  const transition = await transitionAccountStatus(tx, account, transitionsFor(cause), { cause, lastError })
  if (transition === undefined) throw notFound('integrated_account', account.id)
  const { from, to } = transition
  if (to === null) return { kind: 'impossible', from }
  await appendAccountEvent(tx, account, CAUSE_EVENTS[cause])
  return { kind: 'changed', from, to }
}
