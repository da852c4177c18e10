import type { JsonObject } from '../base/index.ts'
import type { AccountAccess } from './request.ts'

/** Whoever keeps accounts authorised. Without one, 401 and 403 are outcomes of a call and nothing more. */
export interface CredentialRefresher {
  /**
   * Newer credentials than those that were refused; `undefined` when there are none to be had. Asked at most once per
   * request.
   *
   * @throws Failure TOKEN_REQUEST_FAILED while the token endpoint cannot be asked
   */
  refresh(access: AccountAccess, signal?: AbortSignal): Promise<AccountAccess | undefined>
  /** What the final answer of a call says about the account. Never rejects. */
  report(access: AccountAccess, sign: AccountSignal): Promise<void>
  /** Merges what `update_context` steps of an action computed into the context of the account. */
  updateContext(access: AccountAccess, patch: JsonObject): Promise<void>
}

/**
 * `unauthorized`: refused, also with renewed credentials, or the definition says `needs_reauth`. `forbidden`: the credentials
 * are good, but not for this. `worked`: told only of an account that was said to need to be connected again.
 */
export type AccountSignal =
  | { readonly kind: 'unauthorized'; readonly message: string }
  | { readonly kind: 'forbidden'; readonly resource: string; readonly method: string }
  | { readonly kind: 'worked' }
