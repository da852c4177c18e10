import type { TransitionTable } from '../../foundation/base/index.ts'

/** How far a link session has come; `LINK_TRANSITIONS` says what leads where. */
export const LINK_STATUSES = [
  'created',
  'opened',
  'form',
  'redirected',
  'pending',
  'exchanging',
  'post_install',
  'validating',
  'post_connect_form',
  'completed',
  'failed',
  'expired',
  'cancelled',
] as const

export type LinkStatus = (typeof LINK_STATUSES)[number]

/** What changes the status of a link session; the names in its history. */
export type LinkCause =
  | 'token_created'
  | 'token_opened'
  | 'method_chosen'
  | 'choice_reopened'
  | 'form_submitted'
  | 'consent_requested'
  | 'callback_received'
  | 'approval_pending'
  | 'account_connected'
  | 'identity_confirmed'
  | 'post_install_passed'
  | 'settings_required'
  | 'account_active'
  | 'settings_submitted'
  | 'choice_submitted'
  | 'attempt_failed'
  | 'connection_failed'
  | 'time_expired'
  | 'session_cancelled'

/** From every status in which the customer has to act. */
const WAITING = {
  connection_failed: 'failed',
  time_expired: 'expired',
  session_cancelled: 'cancelled',
} as const satisfies Partial<Record<LinkCause, LinkStatus>>

/**
 * While an account is activated: an attempt that fails leads back to the form. Neither an end of time nor a cancellation has an
 * effect: the account is stored, and the session ends as its activation does.
 */
const ACTIVATING = {
  settings_required: 'post_connect_form',
  account_active: 'completed',
  attempt_failed: 'form',
  connection_failed: 'failed',
} as const satisfies Partial<Record<LinkCause, LinkStatus>>

/**
 * State machine of link sessions: every transition there is.
 *
 * `attempt_failed` is an attempt that the customer can repeat, with its error code; after `connection_failed` nothing can be
 * repeated. `opened` from `opened` and `form` is another browser, as long as nothing was submitted.
 */
export const LINK_TRANSITIONS = {
  new: { token_created: 'created' },
  created: { token_opened: 'opened', ...WAITING },
  opened: { token_opened: 'opened', method_chosen: 'form', attempt_failed: 'opened', ...WAITING },
  form: {
    token_opened: 'opened',
    choice_reopened: 'opened',
    method_chosen: 'form',
    form_submitted: 'exchanging',
    consent_requested: 'redirected',
    identity_confirmed: 'post_install',
    attempt_failed: 'form',
    ...WAITING,
  },
  redirected: {
    callback_received: 'exchanging',
    form_submitted: 'exchanging',
    consent_requested: 'redirected',
    method_chosen: 'form',
    choice_reopened: 'opened',
    attempt_failed: 'form',
    ...WAITING,
  },
  pending: {
    callback_received: 'exchanging',
    form_submitted: 'exchanging',
    consent_requested: 'redirected',
    method_chosen: 'form',
    choice_reopened: 'opened',
    ...WAITING,
  },
  exchanging: {
    approval_pending: 'pending',
    account_connected: 'post_install',
    session_cancelled: 'cancelled',
    ...ACTIVATING,
  },
  post_install: { post_install_passed: 'validating', ...ACTIVATING },
  validating: ACTIVATING,
  post_connect_form: {
    settings_submitted: 'completed',
    choice_submitted: 'validating',
    attempt_failed: 'post_connect_form',
    ...WAITING,
  },
  completed: {},
  failed: {},
  expired: {},
  cancelled: {},
} as const satisfies TransitionTable<LinkStatus, LinkCause>

/** What the connect page shows in a status. */
export type LinkPageStep = 'integration' | 'method' | 'form' | 'consent' | 'progress' | 'settings' | 'done'

/** The step of a session. @param hasIntegration whether the customer has chosen an integration */
export function pageStepOf(status: LinkStatus, hasIntegration: boolean): LinkPageStep {
  switch (status) {
    case 'created':
    case 'opened':
      return hasIntegration ? 'method' : 'integration'
    case 'form':
      return 'form'
    case 'redirected':
    case 'pending':
      return 'consent'
    case 'exchanging':
    case 'post_install':
    case 'validating':
      return 'progress'
    case 'post_connect_form':
      return 'settings'
    case 'completed':
    case 'failed':
    case 'expired':
    case 'cancelled':
      return 'done'
  }
}

/** Whether a status is final. */
export function hasEnded(status: LinkStatus): boolean {
  return pageStepOf(status, false) === 'done'
}
