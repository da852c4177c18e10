/** Whether and how a webhook is sent deliveries; `WEBHOOK_TRANSITIONS` says what leads where. */
export type WebhookState = 'active' | 'failing' | 'disabled' | 'paused'

/** Why the service turned a webhook off. */
export type WebhookDisabledReason = 'gone' | 'failing'

/** What changes the state of a webhook. */
type WebhookCause =
  /** An attempt was accepted. */
  | 'attempt_accepted'
  /** `FAILING_AFTER_ATTEMPTS` attempts failed since the last success. */
  | 'attempts_failed'
  /** The receiver answered 410. */
  | 'gone_answered'
  /** Attempts have only failed for `DISABLED_AFTER_DAYS`, and a delivery has used its last one. */
  | 'days_failed'
  /** A caller set `is_active` to false. */
  | 'caller_paused'
  /** A caller set `is_active` to true. */
  | 'caller_enabled'

/** Failed attempts in a row after which a webhook is sent one delivery at a time, until one is accepted. */
export const FAILING_AFTER_ATTEMPTS = 10
/** Days of failed attempts alone after which a webhook is turned off. */
export const DISABLED_AFTER_DAYS = 5
/** Days of failed attempts alone after which `webhook:failing` is recorded. */
export const ANNOUNCED_AFTER_DAYS = DISABLED_AFTER_DAYS / 2

type WebhookTransitionTable = Readonly<Record<WebhookState, Partial<Readonly<Record<WebhookCause, WebhookState>>>>>

/** State machine of webhooks: every transition there is. */
export const WEBHOOK_TRANSITIONS = {
  active: { attempts_failed: 'failing', gone_answered: 'disabled', caller_paused: 'paused' },
  failing: {
    attempt_accepted: 'active',
    gone_answered: 'disabled',
    days_failed: 'disabled',
    caller_paused: 'paused',
    caller_enabled: 'active',
  },
  disabled: { caller_enabled: 'active', caller_paused: 'paused' },
  paused: { caller_enabled: 'active' },
} as const satisfies WebhookTransitionTable

/** The fields that a state is read from. */
export interface StoredWebhookState {
  readonly isActive: boolean
  /** Null unless the service turned it off. */
  readonly disabledReason: WebhookDisabledReason | null
  /** Failed attempts since the last success; 0 without any. */
  readonly failedAttempts: number
}

/** The state of a webhook as stored. */
export function webhookState({ isActive, disabledReason, failedAttempts }: StoredWebhookState): WebhookState {
  if (!isActive) return disabledReason === null ? 'paused' : 'disabled'
  return failedAttempts >= FAILING_AFTER_ATTEMPTS ? 'failing' : 'active'
}
