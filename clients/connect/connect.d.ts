/** How the page is shown. `popup` is the default; `redirect` works everywhere. */
export type ConnectMode = 'popup' | 'iframe' | 'redirect'

export interface ConnectOptions {
  /** The link token that your server created with `POST /link-token`. It is single use: request one per attempt. */
  readonly token: string
  /**
   * Public address of Patchbay, for example `https://patchbay.example.com`. Default: where this module was loaded from, when
   * that is `/connect/client.js` of the server; required when the module comes from a package.
   */
  readonly baseUrl?: string
  /** Default: `popup`. */
  readonly mode?: ConnectMode
  /** Called with every event. An error it throws is reported to the window and changes nothing. */
  readonly onEvent?: (event: ConnectEvent) => void
  /** Aborting removes the page and rejects with `cancelled`. The session itself stays usable until it expires. */
  readonly signal?: AbortSignal
  /** Language of the page, for example `de`. Default: that of the link token, then that of the browser. */
  readonly locale?: string
  /** Default: the colour scheme of the browser. */
  readonly theme?: 'light' | 'dark' | 'auto'
  /** Mode `iframe`: where the frame is placed. Default: a modal dialog over the page. */
  readonly container?: HTMLElement
  /** Pixels of the popup (default 520) or the widest that the dialog becomes (default 480). */
  readonly width?: number
  /** Pixels of the popup (default 720), or of the frame before the page reports its height (default 640). */
  readonly height?: number
  /** Mode `popup`, when the browser blocks it: reject with `popup_blocked` (default), or continue in this tab. */
  readonly onBlocked?: 'reject' | 'redirect'
}

export interface ConnectResult {
  readonly status: 'completed'
  readonly integrated_account_id: string
  /** Name of the integration, for example `github`. */
  readonly integration: string
}

/** Codes of the server first, then those of this client. New ones may be added. */
export type ConnectErrorCode =
  | 'invalid_token'
  | 'expired_token'
  | 'used_token'
  | 'integration_not_found'
  | 'integration_disabled'
  | 'consent_denied'
  | 'state_mismatch'
  | 'issuer_mismatch'
  | 'provider_error'
  | 'token_exchange_failed'
  | 'scope_missing'
  | 'credentials_rejected'
  | 'too_many_attempts'
  | 'provider_unreachable'
  | 'post_install_error'
  | 'validation_error'
  | 'form_source_error'
  | 'identity_changed'
  | 'origin_not_allowed'
  /** The customer cancelled, closed the dialog or came back early, or `signal` was aborted (then with `cause`). */
  | 'cancelled'
  /** The browser blocked the popup: show a link to `fallbackUrl`, or call `redirect()`. */
  | 'popup_blocked'
  /** The page did not load in the frame: the link token must list the origin of your page in `origins`. */
  | 'frame_unavailable'
  | 'invalid_options'

/** What the promise of `connect` and `resume` rejects with. */
export class ConnectError extends Error {
  readonly code: ConnectErrorCode | (string & {})
  /** With `popup_blocked`: address of the page for a link. It carries the token, which the page removes at once. */
  readonly fallbackUrl?: string
  /** With `popup_blocked`: continues in this tab, without the token in an address. */
  readonly redirect?: () => void
}

export type ConnectEvent =
  /** The page was opened (popup, iframe) or is about to replace this one (redirect). */
  | { readonly type: 'opened'; readonly mode: ConnectMode }
  /**
   * The status of the session changed: `created`, `opened`, `form`, `redirected`, `pending`, `exchanging`, `post_install`,
   * `validating`, `post_connect_form`. `code` and `message` tell what failed when the customer is asked to repeat a step.
   */
  | { readonly type: 'step'; readonly step: string; readonly code?: string; readonly message?: string }
  | ({ readonly type: 'completed' } & ConnectResult)
  | { readonly type: 'failed'; readonly code: ConnectErrorCode | (string & {}); readonly message: string }
  /**
   * `certain: true`: the attempt is over and the page is gone. `certain: false`: the popup seems closed, which third
   * parties also cause while the customer is signing in there. Show "still waiting", never an end: the attempt continues.
   */
  | { readonly type: 'closed'; readonly certain: boolean }

/**
 * Shows the connect page and waits until the account is connected. Call it synchronously in a click: browsers block a popup
 * that is opened later, so request the token first. A second call with a token in use focuses the page and returns the same
 * promise. In mode `redirect` the promise stays pending: the browser leaves this page, and `resume()` continues on return.
 *
 * @throws {ConnectError} as a rejection
 */
export function connect(options: ConnectOptions): Promise<ConnectResult>

/**
 * Continues after mode `redirect` (or a blocked popup): call it when the page at the `redirect_uri` of the link token loads.
 * Removes the result parameters from the address and asks the server for the outcome; the parameters themselves decide nothing.
 * `connect` has stored token and address for this tab; pass them where `sessionStorage` is not available.
 *
 * @returns undefined when the address has no result, or none of an attempt of this tab
 * @throws {ConnectError} as a rejection
 */
export function resume(options?: Partial<ConnectOptions>): Promise<ConnectResult | undefined>
