import { Failure, invalidFields } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { getIntegratedAccount } from '../accounts/account.ts'
import { causeOfError, changeLinkStatus, commitLinkStatus, linkError } from './change-status.ts'
import type { LinkDependencies, LinkSessionRef } from './dependencies.ts'
import { FORM_PATH, withoutFormPath } from './form-findings.ts'
import { type FormOptionsRequest, type FormOptionsResult, loadFormOptions } from './form-options.ts'
import { loadForBrowser, toLinkSession } from './load-session.ts'
import {
  checkPostConnectForm,
  type FormAccountRef,
  getPostConnectForm,
  type PostConnectForm,
  storePostConnectForm,
} from './post-connect-form.ts'
import type { LinkSession, LinkStepResult } from './session.ts'
import type { LinkSessionRecord } from './sql/link-session.ts'
import { reloadSession } from './store-account.ts'

/**
 * The form of a session in `post_connect_form`, with the present values; `undefined` in any other status. A session whose form
 * asks for nothing, because no condition of its steps holds, is completed.
 *
 * A field with `remote` has no options here: `loadSettingsOptions` reads them.
 *
 * @throws Failure DEFINITION_INVALID, SECRET_UNREADABLE, EXPRESSION_FAILED
 */
export async function findSettingsForm(
  deps: LinkDependencies,
  session: LinkSession,
): Promise<PostConnectForm | undefined> {
  const account = accountOf(session)
  if (account === undefined) return undefined
  const form = await getPostConnectForm(deps.accounts, account, session.context)
  if (form.fields.some(({ isHidden }) => !isHidden)) return form
  await storeSettings(deps, session, account, {})
  return undefined
}

/** The account whose settings are asked for. */
function accountOf({
  environmentId,
  integratedAccountId: id,
  status,
}: Pick<LinkSession, 'environmentId' | 'integratedAccountId' | 'status'>): FormAccountRef | undefined {
  return status === 'post_connect_form' && id !== null ? { environmentId, id } : undefined
}

/**
 * A page of options for the form of a session.
 *
 * @returns `unknown` when there is no such session for that browser, or it is not in `post_connect_form`
 * @throws Failure INVALID_FIELD, PAGE_TOKEN_INVALID
 */
export async function loadSettingsOptions(
  deps: LinkDependencies,
  ref: LinkSessionRef,
  request: FormOptionsRequest,
): Promise<FormOptionsResult | { readonly kind: 'unknown' }> {
  const session = await loadForBrowser(deps, ref)
  const account = session && accountOf(session)
  if (session === undefined || account === undefined) return { kind: 'unknown' }
  return await loadFormOptions(deps, account, { ...request, values: { ...request.values, ...session.context } })
}

/**
 * Submits the form of a session in `post_connect_form`: its values become part of the account's context, and the session is
 * completed, or waits for an account that waited for a choice, in one transaction. In any other status nothing is changed, so that a repeated submit is harmless.
 *
 * @param values by field name; of a field with `remote` the id, or `{value, label}` so that the label is stored beside it, of a
 * multi_select a list of these
 */
export async function submitSettings(
  deps: LinkDependencies,
  ref: LinkSessionRef,
  values: JsonObject,
): Promise<LinkStepResult> {
  const session = await loadForBrowser(deps, ref)
  if (session === undefined) return { kind: 'unknown' }
  const account = accountOf(session)
  if (account === undefined) return { kind: 'progress', session: toLinkSession(session) }
  try {
    const completed = await storeSettings(deps, session, account, values)
    return { kind: 'progress', session: toLinkSession(completed ?? (await reloadSession(deps, session))) }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return await rejectedSettings(deps, session, error)
  }
}

/**
 * @returns the session after it; `undefined` when it is no longer in `post_connect_form`
 * @throws Failure INVALID_FIELD with findings about `fields`; those of storing
 */
async function storeSettings(
  deps: LinkDependencies,
  session: Pick<LinkSession, 'environmentId' | 'id' | 'context'>,
  account: FormAccountRef,
  values: JsonObject,
): Promise<LinkSessionRecord | undefined> {
  const source = { path: FORM_PATH, supplied: session.context, isFromCustomer: true }
  const checked = await checkPostConnectForm(deps.accounts, account, values, source)
  if (checked.kind === 'invalid') throw invalidFields(checked.violations)
  return await deps.database.transaction(async (tx) => {
    const { status } = await getIntegratedAccount(deps.accounts, tx, account, account.id)
    const cause = status === 'connecting' ? 'choice_submitted' : 'settings_submitted'
    const changed = await changeLinkStatus(tx, session, cause)
    if (changed !== undefined) await storePostConnectForm(deps.accounts, tx, account, { context: checked.context })
    return changed
  })
}

/** Values that do not fit change nothing; after any other failure the customer may submit again. */
async function rejectedSettings(
  deps: LinkDependencies,
  session: LinkSessionRecord,
  failure: Failure,
): Promise<LinkStepResult> {
  if (failure.violations.length > 0)
    return {
      kind: 'invalid',
      session: toLinkSession(session),
      violations: failure.violations.map(withoutFormPath),
      needsTerms: false,
    }
  // The session was deleted with its account.
  if (failure.reason === 'RESOURCE_NOT_FOUND') return { kind: 'unknown' }
  const error = linkError('form_source_error', failure.publicMessage)
  const failed = await commitLinkStatus(deps, session, causeOfError(error), { error })
  return { kind: 'progress', session: toLinkSession(failed ?? (await reloadSession(deps, session))) }
}
