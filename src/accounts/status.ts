import { notFound } from '../base/index.ts'
import type { Tx } from '../database/index.ts'
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
 * were for other credentials. `unauthorized` is an upstream 401 after a refresh, or without a possible one; `call_succeeded` a
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
  active: { reconnected: 'connecting', refresh_failed: 'needs_reauth', unauthorized: 'needs_reauth' },
  post_install_error: { reconnected: 'connecting', steps_repeated: 'connecting' },
  validation_error: { reconnected: 'connecting', steps_repeated: 'connecting' },
  needs_reauth: { reconnected: 'connecting', call_succeeded: 'active' },
} as const satisfies TransitionTable

const TRANSITIONS: TransitionTable = ACCOUNT_TRANSITIONS
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
    Object.entries(causes).map(([cause, to]) => [from === NEW ? '(none)' : `\`${from}\``, `\`${cause}\``, `\`${to}\``]),
  )
  const rows = [['from', 'cause', 'to'], ...transitions]
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)))
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
 * for the other it is impossible from the new status.
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
  return to === null ? { kind: 'impossible', from } : { kind: 'changed', from, to }
}
