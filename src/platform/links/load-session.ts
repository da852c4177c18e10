import { isUuid } from '../../foundation/base/index.ts'
import { causeOfError, commitLinkStatus, linkError } from './change-status.ts'
import type { LinkDependencies, LinkSessionRef } from './dependencies.ts'
import { hasHash } from './link-token.ts'
import type { LinkSession, LinkSummary } from './session.ts'
import { findLinkSessionById, type LinkSessionRecord } from './sql/link-session.ts'
import { pageStepOf } from './status.ts'

/** What looking at a session takes. */
export type SessionDependencies = Pick<LinkDependencies, 'database'>

/** The session as other modules see it: without hashes and secrets. */
export function toLinkSession(record: LinkSessionRecord): LinkSession {
  const { tokenHash, browserKeyHash, callbackUri, sealedValues, ...rest } = record
  const { errorCode, errorMessage, isPopup, isOverdue, isStateExpired, isExchangeLost, ...session } = rest
  return {
    ...session,
    step: pageStepOf(record.status, record.environmentIntegrationId !== null),
    error: errorCode === null ? null : { code: errorCode, message: errorMessage },
  }
}

/** What the page that embeds or opens the connect page may know. */
export function toLinkSummary(record: LinkSessionRecord): LinkSummary {
  return {
    status: record.status,
    error_code: record.errorCode,
    integrated_account_id: record.integratedAccountId,
    integration: record.integrationName,
  }
}

/**
 * The session of a browser, with a status that is true at the moment; `undefined` when there is none with that id, or another
 * browser has opened it.
 */
export async function loadForBrowser(
  deps: SessionDependencies,
  { id, browserKey }: LinkSessionRef,
): Promise<LinkSessionRecord | undefined> {
  const record = isUuid(id) ? await findLinkSessionById(deps.database.pool, id) : undefined
  if (record === undefined || !hasHash(browserKey, record.browserKeyHash)) return undefined
  return await settleSession(deps, record)
}

const EXCHANGE_LOST = linkError(
  'token_exchange_failed',
  'The connection was interrupted before the account was stored: nothing was connected, try again.',
)

/** Ends what time has ended: the session, or an exchange whose process died. @returns the session after it */
export async function settleSession(deps: SessionDependencies, record: LinkSessionRecord): Promise<LinkSessionRecord> {
  if (!record.isOverdue && !record.isExchangeLost) return record
  const changed = record.isOverdue
    ? await commitLinkStatus(deps, record, 'time_expired', {
        guard: { isOverdue: true },
        error: linkError('expired_token'),
      })
    : await commitLinkStatus(deps, record, causeOfError(EXCHANGE_LOST), {
        guard: { isExchangeLost: true },
        error: EXCHANGE_LOST,
      })
  return changed ?? (await findLinkSessionById(deps.database.pool, record.id)) ?? record
}
