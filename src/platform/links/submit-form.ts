import { collectFields } from '../../engine/formats/index.ts'
import { newId } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { type AuthorizationTarget, beginAuthorization } from '../accounts/authorization.ts'
import { causeOfError, commitLinkStatus, linkError } from './change-status.ts'
import { type ConnectTarget, findConnectTarget, suppliedValues } from './choices.ts'
import { callbackUriOf, type LinkDependencies, type LinkSessionRef } from './dependencies.ts'
import { FORM_PATH, withoutFormPath } from './form-findings.ts'
import { hashSecret, randomSecret } from './link-token.ts'
import { loadForBrowser, toLinkSession } from './load-session.ts'
import { sealValues } from './sealed-values.ts'
import type { LinkStepResult } from './session.ts'
import type { LinkSessionRecord } from './sql/link-session.ts'
import { failWithoutChoice, unchanged } from './steps.ts'
import { reloadSession, storeAccount } from './store-account.ts'
import { findTermsToAccept } from './terms.ts'

/** Forms that may be submitted in one session, so that it is no way of trying out passwords. */
const ATTEMPTS_MAX = 30
/** How long the customer may take at the third party. */
const STATE_TTL_MS = 10 * 60_000

/**
 * Submits the form: the customer is sent to the third party, or the account is connected with the values. From the consent, too:
 * the authorisation so far ends.
 *
 * @param values by field name, as texts of a form or of the fields' types
 * @param acceptedTerms address of the terms of service that the customer accepts with it; needed where `findTermsToAccept` has some
 */
export async function submitForm(
  deps: LinkDependencies,
  ref: LinkSessionRef,
  values: JsonObject,
  acceptedTerms?: string,
): Promise<LinkStepResult> {
  const session = await loadForBrowser(deps, ref)
  if (session === undefined) return { kind: 'unknown' }
  if (!['form', 'redirected', 'pending'].includes(session.status)) return progress(session)
  const target = await findConnectTarget(deps, toLinkSession(session))
  if (target === undefined) return progress((await failWithoutChoice(deps, session)) ?? session)
  if (session.attempts >= ATTEMPTS_MAX) return progress(await endAttempts(deps, session))
  const collected = collectFields(target.connect.fields, values, FORM_PATH, {
    sentInHeaders: target.connect.sentInHeaders,
    supplied: suppliedValues(target.connect, session),
    isFromCustomer: true,
  })
  const terms = await findTermsToAccept(deps, session)
  const needsTerms = terms !== undefined && terms !== acceptedTerms
  if (collected.kind === 'invalid' || needsTerms) {
    const violations = collected.kind === 'invalid' ? collected.violations.map(withoutFormPath) : []
    return { kind: 'invalid', session: toLinkSession(session), violations, needsTerms }
  }
  const submitted = { target, visible: collected.visible, secrets: collected.secrets, acceptedTerms: terms }
  return target.method.hasConsent
    ? await requestConsent(deps, session, submitted)
    : progress(await connectDirectly(deps, session, submitted))
}

function progress(session: LinkSessionRecord): LinkStepResult {
  return { kind: 'progress', session: toLinkSession(session) }
}

async function endAttempts(deps: LinkDependencies, session: LinkSessionRecord): Promise<LinkSessionRecord> {
  const error = linkError('too_many_attempts')
  return (await commitLinkStatus(deps, session, causeOfError(error), { error })) ?? session
}

/** The valid values of a form. */
interface SubmittedForm {
  readonly target: ConnectTarget
  readonly visible: JsonObject
  readonly secrets: JsonObject
  /** Of the terms of service, where there were some to accept. */
  readonly acceptedTerms: string | undefined
}

/** Connects the account with what was entered. Of several submits at once one does. */
async function connectDirectly(
  deps: LinkDependencies,
  session: LinkSessionRecord,
  { target, visible, secrets, acceptedTerms }: SubmittedForm,
): Promise<LinkSessionRecord> {
  const exchangeId = newId()
  const patch = { exchangeId, attempts: 1, formValues: visible, acceptedTerms }
  const exchanging = await commitLinkStatus(deps, session, 'form_submitted', { patch, guard: unchanged(session) })
  if (exchanging === undefined) return await reloadSession(deps, session)
  return await storeAccount(deps, exchanging, exchangeId, { target, fields: { ...visible, ...secrets } })
}

/** Stores a state and what the callback needs, and sends the customer to the third party. */
async function requestConsent(
  deps: LinkDependencies,
  session: LinkSessionRecord,
  { target, visible, secrets, acceptedTerms }: SubmittedForm,
): Promise<LinkStepResult> {
  const state = randomSecret()
  const redirectUri = callbackUriOf(deps)
  const authorization = authorizationTarget(session, target, { ...visible, ...secrets })
  const begun = await beginAuthorization(deps.accounts, authorization, { redirectUri, state, scopes: session.scopes })
  const attempt = { attempts: 1, formValues: visible, acceptedTerms }
  if (begun.kind === 'failed') {
    const error = linkError(begun.code, begun.message)
    const failed = await commitLinkStatus(deps, session, causeOfError(error), {
      patch: attempt,
      guard: unchanged(session),
      error,
    })
    return progress(failed ?? (await reloadSession(deps, session)))
  }
  const { installationVersion } = target.definition
  const values = { fields: secrets, authorization: begun.secrets, installation_version: installationVersion }
  const redirected = await commitLinkStatus(deps, session, 'consent_requested', {
    guard: unchanged(session),
    patch: {
      ...attempt,
      stateHash: hashSecret(state),
      stateTtlMs: STATE_TTL_MS,
      callbackUri: redirectUri,
      sealedValues: await sealValues(deps, deps.database.pool, session, 'sealed_values', values),
      isPopup: false,
    },
  })
  if (redirected === undefined) return progress(await reloadSession(deps, session))
  return { kind: 'redirect', session: toLinkSession(redirected), url: begun.url }
}

/** The account that is being connected, for its authorisation. @param fields secret ones too */
export function authorizationTarget(
  { environmentId, id: linkSessionId, context }: LinkSessionRecord,
  { definition, connect }: ConnectTarget,
  fields: JsonObject,
): AuthorizationTarget {
  const { plan, environmentVariables } = definition
  return { plan, credential: connect.key, environmentId, linkSessionId, environmentVariables, fields, context }
}
