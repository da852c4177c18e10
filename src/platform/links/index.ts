/**
 * Link sessions: a customer connects or reconnects one account on the connect page.
 *
 * Lives here: the token, the states and transitions of a session, the choice of integration and method, the form, the redirect
 * to the third party and its callback. Never here: HTML and HTTP (`server/page/`), or what an account is (`platform/accounts/`).
 */

export { createLinkSessionPort } from './activation.ts'
export { handleCallback } from './callback.ts'
export { type CatalogCache, createCatalogCache } from './catalog-entry.ts'
export { createConnectForm, type LinkChoice, listChoices } from './choices.ts'
export { createLinkSession, type LinkSessionInput } from './create-session.ts'
export { callbackUriOf, type FormOptionsCache, type LinkDependencies, type LinkSessionRef } from './dependencies.ts'
export type { LinkError } from './error-codes.ts'
export {
  createFormOptionsCache,
  type FormOptionsRequest,
  type FormOptionsResult,
  loadFormOptions,
} from './form-options.ts'
export { parseLinkToken } from './link-token.ts'
export { type CatalogEntry, listCatalog } from './list-catalog.ts'
export { linkSessionCleaner } from './maintenance.ts'
export { cancelLinkSession, getLinkSession, type LinkSessionHistory, listLinkSessions } from './manage-sessions.ts'
export {
  authenticateLinkToken,
  findLinkOrigins,
  findLinkSession,
  openLinkSession,
  readLinkSummary,
} from './open-session.ts'
export { createHopTicket, findHop, redeemHopTicket } from './popup-ticket.ts'
export {
  checkPostConnectForm,
  getPostConnectForm,
  type PostConnectForm,
  storePostConnectForm,
} from './post-connect-form.ts'
export { SEALED_SESSION_COLUMNS } from './sealed-values.ts'
export type { LinkSession, LinkStepResult, LinkTransition } from './session.ts'
export { findSettingsForm, loadSettingsOptions, submitSettings } from './settings.ts'
export { deleteLinkSessionsOfEnvironment, type LinkSessionFilter } from './sql/link-session.ts'
export { LINK_STATUSES, type LinkPageStep } from './status.ts'
export { cancelByBrowser, chooseIntegration, chooseMethod, confirmIdentityChange, reopenChoice } from './steps.ts'
export { submitForm } from './submit-form.ts'
export { findTermsToAccept } from './terms.ts'
