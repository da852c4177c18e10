/**
 * Error codes of connecting an account, for the connect page, the browser client and `error_code` of the contract. Stable.
 *
 * `advice` is for the developer; `isRepeatable`: the customer may try again in the same session, after any other error it has
 * failed. The page's texts are `error.<code>.title` and `error.<code>.advice`.
 */
export const LINK_ERRORS = {
  invalid_token: {
    isRepeatable: false,
    advice: 'The link is unknown or was changed: make a new one.',
  },
  expired_token: {
    isRepeatable: false,
    advice: 'The link has expired: make a new one.',
  },
  used_token: {
    isRepeatable: false,
    advice: 'The link was used, in this or another browser: make a new one.',
  },
  integration_not_found: {
    isRepeatable: false,
    advice: 'The link offers no integration: install and enable one, or name others.',
  },
  integration_disabled: {
    isRepeatable: false,
    advice:
      'The installation is disabled, or the client of its consent is not set up: see is_enabled and environment_variables.',
  },
  consent_denied: {
    isRepeatable: true,
    advice: 'The customer did not consent at the third party.',
  },
  state_mismatch: {
    isRepeatable: true,
    advice: 'The third party sent another browser back, or the same one too late: begin again in one browser.',
  },
  issuer_mismatch: {
    isRepeatable: true,
    advice: 'The response names another issuer (RFC 9207): check auth.issuer of the definition.',
  },
  provider_error: {
    isRepeatable: true,
    advice: 'The third party reported an error: its text is in the message.',
  },
  token_exchange_failed: {
    isRepeatable: true,
    advice: 'The code was not exchanged for a token: check client id, secret and token address of the definition.',
  },
  scope_missing: {
    isRepeatable: true,
    advice: 'Scopes without which the integration does not work were not granted.',
  },
  credentials_rejected: {
    isRepeatable: true,
    advice: 'The third party rejected what the customer entered.',
  },
  too_many_attempts: {
    isRepeatable: false,
    advice: 'The form was submitted too often in this session: make a new link.',
  },
  provider_unreachable: {
    isRepeatable: true,
    advice: 'The third party did not answer.',
  },
  post_install_error: {
    isRepeatable: true,
    advice: 'The action post_install failed: last_action_result of the account names the step.',
  },
  validation_error: {
    isRepeatable: true,
    advice: 'The action validation failed: last_action_result of the account names the step.',
  },
  form_source_error: {
    isRepeatable: true,
    advice: 'The options of a field of post_connect_user_form could not be read.',
  },
  identity_changed: {
    isRepeatable: true,
    advice: 'The account was reconnected with another identity at the third party; the customer may confirm it.',
  },
  cancelled: { isRepeatable: false, advice: 'The customer or the application ended it.' },
} as const satisfies Record<string, { readonly isRepeatable: boolean; readonly advice: string }>

export type LinkErrorCode = keyof typeof LINK_ERRORS

/** An error of a session. */
export interface LinkError {
  readonly code: LinkErrorCode
  /** For people, in English; may quote the third party. Secrets are redacted. */
  readonly message: string
}
