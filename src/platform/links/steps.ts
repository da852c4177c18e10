import { catchFailure, Failure } from '../../foundation/base/index.ts'
import { runAccountActions } from '../accounts/account-activator.ts'
import { findIntegratedAccount } from '../accounts/sql/integrated-account.ts'
import { causeOfError, changeLinkStatus, commitLinkStatus, linkError, type StatusChangeInput } from './change-status.ts'
import { type ChoiceDependencies, findOffered, type LinkChoice, listChoices } from './choices.ts'
import type { LinkDependencies, LinkSessionRef } from './dependencies.ts'
import { loadForBrowser, type SessionDependencies, toLinkSession } from './load-session.ts'
import type { LinkStepResult } from './session.ts'
import { type LinkGuard, updateLinkSessionRow } from './sql/link-change.ts'
import type { LinkSessionRecord } from './sql/link-session.ts'
import { reloadSession } from './store-account.ts'

/** Chooses the integration; its only method is chosen with it. One that is not offered changes nothing. */
export async function chooseIntegration(
  deps: ChoiceDependencies,
  ref: LinkSessionRef,
  environmentIntegrationId: string,
): Promise<LinkStepResult> {
  return await withSession(deps, ref, async (session) => {
    const offered = await findOffered(deps, toLinkSession(session), environmentIntegrationId)
    if (offered === undefined) return session
    const [method, another] = offered.choice.methods
    const isSame = session.environmentIntegrationId === environmentIntegrationId
    const patch = { environmentIntegrationId, ...(isSame ? {} : { formValues: {} }) }
    if (method !== undefined && another === undefined)
      return await commitLinkStatus(deps, session, 'method_chosen', {
        patch: { ...patch, ...choiceOf(method) },
        guard: unchanged(session),
      })
    return await showMethods(deps, session, { ...patch, ...NO_METHOD })
  })
}

const NO_METHOD = { credential: null, authenticationMethod: null }

/** What a session keeps of the method that is chosen. */
function choiceOf({ credential, authenticationMethod }: LinkChoice['methods'][number]) {
  return { credential, authenticationMethod }
}

/** Leads to the choice of the method, with the integration that is chosen. */
async function showMethods(
  deps: SessionDependencies,
  session: LinkSessionRecord,
  patch: NonNullable<StatusChangeInput['patch']>,
): Promise<LinkSessionRecord | undefined> {
  const { pool } = deps.database
  const guard = unchanged(session)
  return (
    (await updateLinkSessionRow(pool, session, ['opened'], patch, guard)) ??
    (await commitLinkStatus(deps, session, 'choice_reopened', { patch, guard }))
  )
}

/** Chooses how to connect. A method that is not offered changes nothing. */
export async function chooseMethod(
  deps: ChoiceDependencies,
  ref: LinkSessionRef,
  credential: string,
): Promise<LinkStepResult> {
  return await withSession(deps, ref, async (session) => {
    const { environmentIntegrationId } = session
    if (environmentIntegrationId === null) return session
    const offered = await findOffered(deps, toLinkSession(session), environmentIntegrationId)
    const method = offered?.choice.methods.find((each) => each.credential === credential)
    if (method === undefined) return session
    return await commitLinkStatus(deps, session, 'method_chosen', {
      patch: choiceOf(method),
      guard: unchanged(session),
    })
  })
}

/** Goes back to the choice of the integration, or of the method where only one integration is possible. */
export async function reopenChoice(deps: ChoiceDependencies, ref: LinkSessionRef): Promise<LinkStepResult> {
  return await withSession(deps, ref, async (session) => {
    const choices = await listChoices(deps, toLinkSession(session))
    const chosen = choices.length > 1 ? { environmentIntegrationId: null } : {}
    return await showMethods(deps, session, { ...chosen, ...NO_METHOD })
  })
}

/**
 * Accepts that the account has another identity at the third party: its activation runs again, with the credentials that it has.
 * Without that error nothing is changed.
 */
export async function confirmIdentityChange(
  deps: Pick<LinkDependencies, 'database' | 'accounts'>,
  ref: LinkSessionRef,
): Promise<LinkStepResult> {
  return await withSession(deps, ref, async (session) => {
    const { environmentId, integratedAccountId: id, errorCode } = session
    if (errorCode !== 'identity_changed' || id === null) return session
    const confirmed = await catchFailure(() =>
      deps.database.transaction(async (tx) => {
        // The account before the session, as activations lock them.
        await runAccountActions(deps.accounts, tx, { environmentId }, { id, isIdentityChangeConfirmed: true })
        return await changeLinkStatus(tx, session, 'identity_confirmed')
      }),
    )
    return confirmed instanceof Failure ? undefined : confirmed
  })
}

/** Ends the session for the customer. One that has ended, or whose account is being activated, stays as it is. */
export async function cancelByBrowser(deps: SessionDependencies, ref: LinkSessionRef): Promise<LinkStepResult> {
  return await withSession(deps, ref, (session) =>
    commitLinkStatus(deps, session, 'session_cancelled', { error: linkError('cancelled') }),
  )
}

/**
 * Makes the choices that are none: the only integration, its only method, or the method of the account that is reconnected. A
 * session that offers nothing fails.
 */
export async function makeOnlyChoice(deps: LinkDependencies, session: LinkSessionRecord): Promise<LinkSessionRecord> {
  const [choice, another] = await listChoices(deps, toLinkSession(session))
  if (choice === undefined) return (await failWithoutChoice(deps, session)) ?? session
  if (another !== undefined) return session
  const { environmentIntegrationId, methods } = choice
  const present = await presentMethod(deps, session)
  const [method] = methods.length === 1 ? methods : methods.filter((each) => each.credential === present)
  if (method === undefined) return (await showMethods(deps, session, { environmentIntegrationId })) ?? session
  const patch = { environmentIntegrationId, ...choiceOf(method) }
  return (await commitLinkStatus(deps, session, 'method_chosen', { patch, guard: unchanged(session) })) ?? session
}

async function presentMethod(
  { database }: SessionDependencies,
  { environmentId, integratedAccountId }: LinkSessionRecord,
): Promise<string | undefined> {
  if (integratedAccountId === null) return undefined
  return (await findIntegratedAccount(database.pool, environmentId, integratedAccountId))?.credential
}

/** Ends a session whose customer can choose nothing. */
export async function failWithoutChoice(
  deps: SessionDependencies,
  session: LinkSessionRecord,
): Promise<LinkSessionRecord | undefined> {
  const isNamed = session.allowedInstallationIds !== null || session.environmentIntegrationId !== null
  const error = linkError(isNamed ? 'integration_disabled' : 'integration_not_found')
  return await commitLinkStatus(deps, session, causeOfError(error), { error })
}

/**
 * Rejects a step of a browser when the session is no longer as it was loaded: with another integration, method, browser or number
 * of attempts.
 */
export function unchanged({ version }: LinkSessionRecord): LinkGuard {
  return { version }
}

/**
 * Runs a step of the session's browser.
 *
 * @param step returns the session after it; `undefined`: it was not possible in the session's status, which is shown instead
 */
async function withSession(
  deps: SessionDependencies,
  ref: LinkSessionRef,
  step: (session: LinkSessionRecord) => Promise<LinkSessionRecord | undefined>,
): Promise<LinkStepResult> {
  const session = await loadForBrowser(deps, ref)
  if (session === undefined) return { kind: 'unknown' }
  const changed = (await step(session)) ?? (await reloadSession(deps, session))
  return { kind: 'progress', session: toLinkSession(changed) }
}
