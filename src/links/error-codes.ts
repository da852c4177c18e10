/**
 * Error codes of connecting an account, for the connect page, the browser client and `error_code` of the contract. Stable.
 *
 * `textKey` names the texts of the page; `advice` is for the developer; `isRepeatable`: the customer may try again in the same
 * session.
 */
export const LINK_ERRORS = {
  invalid_token: {
    textKey: 'error.invalid_token',
    isRepeatable: false,
    advice: 'The link is unknown or was changed: make a new one.',
  },
  expired_token: {
    textKey: 'error.expired_token',
    isRepeatable: false,
    advice: 'The link has expired: make a new one.',
  },
  used_token: {
    textKey: 'error.used_token',
    isRepeatable: false,
    advice: 'The link was used, in this or another browser: make a new one.',
  },
  integration_not_found: {
    textKey: 'error.integration_not_found',
    isRepeatable: false,
    advice: 'The link offers no integration: install and enable one, or name others.',
  },
  integration_disabled: {
    textKey: 'error.integration_disabled',
    isRepeatable: false,
    advice:
      'The installation is disabled, or the client of its consent is not set up: see is_enabled and environment_variables.',
  },
  popup_blocked: {
    textKey: 'error.popup_blocked',
    isRepeatable: true,
    advice: 'Call connect() in the handler of a click, or use the mode redirect.',
  },
  consent_denied: {
    textKey: 'error.consent_denied',
    isRepeatable: true,
    advice: 'The customer did not consent at the third party.',
  },
  state_mismatch: {
    textKey: 'error.state_mismatch',
    isRepeatable: true,
    advice: 'The third party sent another browser back, or the same one too late: begin again in one browser.',
  },
  issuer_mismatch: {
    textKey: 'error.issuer_mismatch',
    isRepeatable: true,
    advice: 'The response names another issuer (RFC 9207): check auth.issuer of the definition.',
  },
  provider_error: {
    textKey: 'error.provider_error',
    isRepeatable: true,
    advice: 'The third party reported an error: its text is in the message.',
  },
  token_exchange_failed: {
    textKey: 'error.token_exchange_failed',
    isRepeatable: true,
    advice: 'The code was not exchanged for a token: check client id, secret and token address of the definition.',
  },
  scope_missing: {
    textKey: 'error.scope_missing',
    isRepeatable: true,
    advice: 'Scopes without which the integration does not work were not granted.',
  },
  credentials_rejected: {
    textKey: 'error.credentials_rejected',
    isRepeatable: true,
    advice: 'The third party rejected what the customer entered.',
  },
  provider_unreachable: {
    textKey: 'error.provider_unreachable',
    isRepeatable: true,
    advice: 'The third party did not answer.',
  },
  post_install_error: {
    textKey: 'error.post_install_error',
    isRepeatable: true,
    advice: 'The action post_install failed: last_action_result of the account names the step.',
  },
  validation_error: {
    textKey: 'error.validation_error',
    isRepeatable: true,
    advice: 'The action validation failed: last_action_result of the account names the step.',
  },
  form_source_error: {
    textKey: 'error.form_source_error',
    isRepeatable: true,
    advice: 'The options of a field of post_connect_user_form could not be read.',
  },
  identity_changed: {
    textKey: 'error.identity_changed',
    isRepeatable: true,
    advice: 'The account was reconnected with another identity at the third party; the customer may confirm it.',
  },
  cancelled: { textKey: 'error.cancelled', isRepeatable: false, advice: 'The customer or the application ended it.' },
} as const satisfies Record<
  string,
  { readonly textKey: string; readonly isRepeatable: boolean; readonly advice: string }
>

export type LinkErrorCode = keyof typeof LINK_ERRORS

/** An error of a session. */
export interface LinkError {
  readonly code: LinkErrorCode
  /** For people, in English; may quote the third party. Secrets are redacted. */
  readonly message: string
}
