import type { JsonObject } from '../base/index.ts'
import type { LinkDependencies, LinkSessionRef } from './dependencies.ts'
import type { FormOptionsRequest, FormOptionsResult } from './form-options.ts'
import type { PostConnectForm } from './post-connect-form.ts'
import type { LinkSession, LinkStepResult } from './session.ts'

/**
 * The form of a session in `post_connect_form`, with the present values; `undefined` in any other status.
 *
 * A field with `remote` has no options here: `loadSettingsOptions` reads them.
 */
export async function findSettingsForm(
  _deps: LinkDependencies,
  _session: LinkSession,
): Promise<PostConnectForm | undefined> {
  return await Promise.reject(new Error('not yet'))
}

/**
 * A page of options for the form of a session.
 *
 * @returns `unknown` when there is no such session for that browser, or it is not in `post_connect_form`
 * @throws Failure INVALID_FIELD, PAGE_TOKEN_INVALID
 */
export async function loadSettingsOptions(
  _deps: LinkDependencies,
  _ref: LinkSessionRef,
  _request: FormOptionsRequest,
): Promise<FormOptionsResult | { readonly kind: 'unknown' }> {
  return await Promise.reject(new Error('not yet'))
}

/**
 * Submits the form of a session in `post_connect_form`: its values become part of the account's context, and the session is
 * completed, in one transaction. In any other status nothing is changed, so that a repeated submit is harmless.
 *
 * @param values by field name; of a field with `remote` the id, or `{value, label}` so that the label is stored beside it, of a
 * multi_select a list of these
 */
export async function submitSettings(
  _deps: LinkDependencies,
  _ref: LinkSessionRef,
  _values: JsonObject,
): Promise<LinkStepResult> {
  return await Promise.reject(new Error('not yet'))
}
