import { type AuthorizationResult, readRedirectError } from '../../engine/formats/index.ts'
import { newId } from '../../foundation/base/index.ts'
import { isJsonObject } from '../../foundation/json/index.ts'
import { completeAuthorization } from '../accounts/authorization.ts'
import { causeOfError, commitLinkStatus, linkError } from './change-status.ts'
import { type ConnectTarget, findConnectTarget } from './choices.ts'
import type { LinkDependencies } from './dependencies.ts'
import type { LinkErrorCode } from './error-codes.ts'
import { hasHash, hashSecret } from './link-token.ts'
import { loadForBrowser, settleSession, toLinkSession } from './load-session.ts'
import { unsealValues } from './sealed-values.ts'
import { findLinkSessionByState, type LinkSessionRecord } from './sql/link-session.ts'
import type { LinkStatus } from './status.ts'
import { unchanged } from './steps.ts'
import { endExchange, storeAccount } from './store-account.ts'
import { authorizationTarget } from './submit-form.ts'

/** What became of a callback; the page shows the session's step in all cases of `session`. */
export type CallbackResult =
  /** @property isPopup it came back in a popup, which may close itself */
  | { readonly kind: 'session'; readonly id: string; readonly isPopup: boolean }
  /** A POST from another site carries no cookie: answer with a page that posts the same fields again. */
  | { readonly kind: 'needs_repost' }
  /** No authorisation has this state, or another browser has begun it. */
  | { readonly kind: 'rejected'; readonly code: Extract<LinkErrorCode, 'state_mismatch'> }
  /** It began at the third party, for example in its marketplace, and not with a link of an application. */
  | { readonly kind: 'begun_elsewhere' }

/** A request to the callback address. */
export interface CallbackInput {
  /** Of the query, or of the form of a POST. */
  readonly params: Readonly<Record<string, string>>
  /** The browser's key for a session, from its cookie; absent where it sent none. */
  readonly browserKeyOf: (sessionId: string) => string | undefined
  /** The sessions that the browser has opened, the newest first. */
  readonly sessionIds: readonly string[]
  /** Whether the request is a POST that was not posted again by a page of this service. */
  readonly canRepost: boolean
}

/** Longest state that is looked up; ours has 43 characters. */
const STATE_LENGTH_MAX = 128

/**
 * Handles the browser's return from the third party. Of any number of requests with one state, in any number of processes,
 * exactly one exchanges the code; the others show the session, at once.
 *
 * A browser that has not begun the authorisation changes nothing (login CSRF). One that comes back without the state of an
 * authorisation is shown the session that it has open: another tab began anew, or the third party denies without a state.
 */
export async function handleCallback(deps: LinkDependencies, input: CallbackInput): Promise<CallbackResult> {
  const { state = findRenamedState(input.params) } = input.params
  const isPossible = state !== '' && state.length <= STATE_LENGTH_MAX
  const stateHash = hashSecret(state)
  const found = isPossible ? await findLinkSessionByState(deps.database.pool, stateHash) : undefined
  if (found === undefined) return await returnWithoutState(deps, input, state !== '')
  const browserKey = input.browserKeyOf(found.id)
  if (browserKey === undefined && input.canRepost) return { kind: 'needs_repost' }
  if (browserKey === undefined || !hasHash(browserKey, found.browserKeyHash))
    return { kind: 'rejected', code: 'state_mismatch' }
  const session = await settleSession(deps, found)
  const result = { kind: 'session', id: session.id, isPopup: session.isPopup } as const
  if (session.status !== 'redirected' && session.status !== 'pending') return result
  if (session.isStateExpired) await expireState(deps, session, stateHash)
  else await exchange(deps, session, stateHash, input.params)
  return result
}

/** Statuses in which a session waits for its customer. */
const OPEN: ReadonlySet<LinkStatus> = new Set(['opened', 'form', 'redirected', 'pending', 'post_connect_form'])

/**
 * A return by whose state no authorisation is found. Its code is not looked at. An error ends the attempt under way: the most that
 * a link of another site does with it is that the customer has to try again.
 */
async function returnWithoutState(
  deps: LinkDependencies,
  { params, sessionIds, browserKeyOf, canRepost }: CallbackInput,
  hasState: boolean,
): Promise<CallbackResult> {
  if (canRepost && sessionIds.length === 0) return { kind: 'needs_repost' }
  const session = await findOpenSession(deps, sessionIds, browserKeyOf)
  if (session === undefined)
    return hasState ? { kind: 'rejected', code: 'state_mismatch' } : { kind: 'begun_elsewhere' }
  const failure = hasState ? undefined : readRedirectError(params)
  if (failure !== undefined && session.status === 'redirected') {
    const error = linkError(failure.code, failure.message)
    await commitLinkStatus(deps, session, causeOfError(error), { guard: unchanged(session), error })
  }
  return { kind: 'session', id: session.id, isPopup: session.isPopup }
}

async function findOpenSession(
  deps: LinkDependencies,
  ids: readonly string[],
  browserKeyOf: CallbackInput['browserKeyOf'],
): Promise<LinkSessionRecord | undefined> {
  for (const id of ids) {
    const session = await loadForBrowser(deps, { id, browserKey: browserKeyOf(id) ?? '' })
    if (session !== undefined && OPEN.has(session.status)) return session
  }
  return undefined
}

/** A state as this service makes them. */
const STATE = /^[\w-]{43}$/

/** The state where a definition renames it (`authorize.parameter_names`): the integration is not known before its session. */
function findRenamedState(params: CallbackInput['params']): string {
  return Object.entries(params).find(([name, value]) => name !== 'code' && STATE.test(value))?.[1] ?? ''
}

async function expireState(deps: LinkDependencies, session: LinkSessionRecord, stateHash: Uint8Array): Promise<void> {
  const error = linkError('state_mismatch', 'The authorisation took longer than ten minutes: begin again.')
  await commitLinkStatus(deps, session, causeOfError(error), { guard: { stateHash }, error })
}

/** Exchanges the code, if no other request does. The code is sent once, also when the exchange fails. */
async function exchange(
  deps: LinkDependencies,
  session: LinkSessionRecord,
  stateHash: Uint8Array,
  params: CallbackInput['params'],
): Promise<void> {
  const exchangeId = newId()
  const guard = { stateHash }
  const exchanging = await commitLinkStatus(deps, session, 'callback_received', { guard, patch: { exchangeId } })
  if (exchanging === undefined) return
  const target = await findConnectTarget(deps, toLinkSession(exchanging))
  if (target === undefined) {
    await endExchange(deps, exchanging, exchangeId, linkError('integration_disabled'))
    return
  }
  await completeExchange(deps, { session: exchanging, exchangeId, target }, params)
}

/** An exchange that this process has begun. */
interface OngoingExchange {
  readonly session: LinkSessionRecord
  readonly exchangeId: string
  readonly target: ConnectTarget
}

async function completeExchange(
  deps: LinkDependencies,
  { session, exchangeId, target }: OngoingExchange,
  params: CallbackInput['params'],
): Promise<void> {
  const sealed = await unsealValues(deps, deps.database.pool, session, 'sealed_values', session.sealedValues)
  if (Number(sealed.installation_version ?? 0) < target.definition.reauthorizationVersion) {
    const message = 'The integration was changed meanwhile: begin again.'
    await endExchange(deps, session, exchangeId, linkError('state_mismatch', message))
    return
  }
  const secretFields = isJsonObject(sealed.fields) ? sealed.fields : {}
  const fields = { ...session.formValues, ...secretFields }
  const secrets = isJsonObject(sealed.authorization) ? sealed.authorization : {}
  const result = await completeAuthorization(deps.accounts, authorizationTarget(session, target, fields), {
    params,
    redirectUri: session.callbackUri,
    secrets,
  })
  await recordResult(deps, { session, exchangeId, target }, fields, result)
}

async function recordResult(
  deps: LinkDependencies,
  { session, exchangeId, target }: OngoingExchange,
  fields: ConnectTarget['definition']['config'],
  result: AuthorizationResult,
): Promise<void> {
  switch (result.kind) {
    case 'granted': {
      const { token, context, grantedScopes, missingScopes } = result
      const grant = { token, context }
      await storeAccount(deps, session, exchangeId, { target, fields, grant, grantedScopes, missingScopes })
      return
    }
    case 'pending':
      await commitLinkStatus(deps, session, 'approval_pending', { guard: { exchangeId }, patch: { exchangeId: null } })
      return
    case 'failed':
      await endExchange(deps, session, exchangeId, { code: result.code, message: result.message })
  }
}
