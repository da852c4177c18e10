import type { JsonObject } from '../base/index.ts'
import type { AuthenticationMethod } from '../formats/index.ts'
import type { LinkDependencies, LinkSessionRef } from './dependencies.ts'
import type { LinkStepResult } from './session.ts'

/** Chooses the integration; its only method is chosen with it. One that is not offered changes nothing. */
export async function chooseIntegration(
  _deps: LinkDependencies,
  _ref: LinkSessionRef,
  _environmentIntegrationId: string,
): Promise<LinkStepResult> {
  return await Promise.reject(new Error('not yet'))
}

/** Chooses how to connect. A method that is not offered changes nothing. */
export async function chooseMethod(
  _deps: LinkDependencies,
  _ref: LinkSessionRef,
  _authenticationMethod: AuthenticationMethod,
): Promise<LinkStepResult> {
  return await Promise.reject(new Error('not yet'))
}

/** Goes back to the choice of the integration, or of the method where only one integration is possible. */
export async function reopenChoice(_deps: LinkDependencies, _ref: LinkSessionRef): Promise<LinkStepResult> {
  return await Promise.reject(new Error('not yet'))
}

/** Goes back to the form from the consent; the authorisation under way ends. */
export async function reopenForm(_deps: LinkDependencies, _ref: LinkSessionRef): Promise<LinkStepResult> {
  return await Promise.reject(new Error('not yet'))
}

/**
 * Submits the form: the customer is sent to the third party, or the account is connected with the values.
 *
 * @param values by field name, of the fields of `createConnectForm` alone
 */
export async function submitForm(
  _deps: LinkDependencies,
  _ref: LinkSessionRef,
  _values: JsonObject,
): Promise<LinkStepResult> {
  return await Promise.reject(new Error('not yet'))
}

/** Accepts that the account has another identity at the third party; the form can then be submitted again. */
export async function confirmIdentityChange(_deps: LinkDependencies, _ref: LinkSessionRef): Promise<LinkStepResult> {
  return await Promise.reject(new Error('not yet'))
}

/** Ends the session for the customer. One that has ended stays as it is. */
export async function cancelByBrowser(_deps: LinkDependencies, _ref: LinkSessionRef): Promise<LinkStepResult> {
  return await Promise.reject(new Error('not yet'))
}
