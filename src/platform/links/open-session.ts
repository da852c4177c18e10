import { isUuid } from '../../foundation/base/index.ts'
import type { Principal } from '../tenancy/authenticate.ts'
import { findEnvironment } from '../tenancy/sql/environments.ts'
import { changeLinkStatus } from './change-status.ts'
import type { LinkDependencies, LinkSessionRef } from './dependencies.ts'
import { hasHash, hashSecret, parseLinkToken, randomSecret } from './link-token.ts'
import {
  loadForBrowser,
  type SessionDependencies,
  settleSession,
  toLinkSession,
  toLinkSummary,
} from './load-session.ts'
import type { LinkSession, LinkSummary } from './session.ts'
import { findLinkSessionById, type LinkSessionRecord } from './sql/link-session.ts'
import { hasEnded } from './status.ts'
import { makeOnlyChoice } from './steps.ts'

/** A session opened in a browser, or why it is not. */
export type OpenResult =
  | {
      readonly kind: 'opened'
      readonly session: LinkSession
      /** Secret of this browser: 43 characters of base64url. In a cookie of the top window, in the memory of a frame. */
      readonly browserKey: string
    }
  | { readonly kind: 'rejected'; readonly code: 'invalid_token' | 'expired_token' | 'used_token' | 'cancelled' }

/**
 * Opens a session with its link token. The browser that has opened it may open it again, also to see how it ended; another one
 * takes it over as long as nothing was submitted, so that a program which looks at links does not use them up.
 *
 * @param browserKey of the browser, where it has one for the session
 */
export async function openLinkSession(deps: LinkDependencies, token: string, browserKey?: string): Promise<OpenResult> {
  const record = await loadByToken(deps, token)
  if (record === undefined) return { kind: 'rejected', code: 'invalid_token' }
  if (browserKey !== undefined && hasHash(browserKey, record.browserKeyHash))
    return { kind: 'opened', session: toLinkSession(record), browserKey }
  if (record.status === 'expired') return { kind: 'rejected', code: 'expired_token' }
  if (record.status === 'cancelled') return { kind: 'rejected', code: 'cancelled' }
  return (await openInBrowser(deps, record)) ?? { kind: 'rejected', code: 'used_token' }
}

/** Binds the session to a browser that it was not opened in before, with nothing that another one has chosen. */
async function openInBrowser(
  deps: LinkDependencies,
  { environmentId, id, isReconnect }: LinkSessionRecord,
): Promise<OpenResult | undefined> {
  const browserKey = randomSecret()
  const chosen = isReconnect ? {} : { environmentIntegrationId: null, credential: null, authenticationMethod: null }
  const opened = await deps.database.transaction((tx) =>
    changeLinkStatus(tx, { environmentId, id }, 'token_opened', {
      guard: { isUntouched: true },
      patch: { browserKeyHash: hashSecret(browserKey), ...chosen, formValues: {} },
    }),
  )
  return opened && { kind: 'opened', session: toLinkSession(await makeOnlyChoice(deps, opened)), browserKey }
}

/** The session as it is at the moment. */
async function loadByToken(deps: SessionDependencies, token: string): Promise<LinkSessionRecord | undefined> {
  const parsed = parseLinkToken(token)
  const record = parsed && (await findLinkSessionById(deps.database.pool, parsed.id))
  if (record === undefined || !hasHash(token, record.tokenHash)) return undefined
  return await settleSession(deps, record)
}

/** The session of a browser as it is now; `undefined` when there is none with that id for that browser. */
export async function findLinkSession(
  deps: SessionDependencies,
  ref: LinkSessionRef,
): Promise<LinkSession | undefined> {
  const record = await loadForBrowser(deps, ref)
  return record && toLinkSession(record)
}

/** What the page that has the link token may know of its session, and the origins that may read it. */
export interface LinkSummaryResult {
  readonly summary: LinkSummary
  readonly origins: readonly string[]
}

/** Reads how far a session has come, by its link token; `undefined` for an invalid one. Opens nothing. */
export async function readLinkSummary(
  deps: SessionDependencies,
  token: string,
): Promise<LinkSummaryResult | undefined> {
  const record = await loadByToken(deps, token)
  return record && { summary: toLinkSummary(record), origins: record.origins }
}

/** Origins that may embed the session's page or open it; empty for an unknown id. Needs no secret. */
export async function findLinkOrigins(deps: SessionDependencies, id: string): Promise<readonly string[]> {
  return isUuid(id) ? ((await findLinkSessionById(deps.database.pool, id))?.origins ?? []) : []
}

/** The caller that has a link token, for the operations that accept one; `undefined` when it is invalid or the link has ended. */
export async function authenticateLinkToken(deps: SessionDependencies, token: string): Promise<Principal | undefined> {
  const record = await loadByToken(deps, token)
  if (record === undefined || hasEnded(record.status)) return undefined
  const { environmentId, id: tokenId } = record
  const environment = await findEnvironment(deps.database.pool, environmentId)
  return (
    environment && {
      kind: 'link',
      tokenId,
      teamId: environment.teamId,
      environmentId,
      isOperator: false,
      scopes: undefined,
    }
  )
}
