import type { JsonObject } from '../../foundation/json/index.ts'
import type { LinkSession } from '../../platform/links/index.ts'
import { linkUrl } from './html.ts'
import type { PageVisit } from './page-request.ts'
import type { Destination } from './views/end.ts'

/** Facts about the end of a session that the application may know: what the script posts to it. No secret. */
export function outcomeOf({ status, integratedAccountId, integrationName, error }: LinkSession): JsonObject {
  return status === 'completed'
    ? { type: 'completed', status, integrated_account_id: integratedAccountId, integration: integrationName }
    : { type: 'failed', status, code: error?.code ?? (status === 'expired' ? 'expired_token' : 'cancelled') }
}

/** Where the customer goes in the end: the application's address with the result in its query, or nowhere. */
export function destinationOf({ session, mode }: Pick<PageVisit, 'session' | 'mode'>): Destination {
  const address = mode === 'popup' || mode === 'iframe' ? undefined : linkUrl(session.redirectUri)
  const url = address === undefined ? null : URL.parse(address)
  if (url === null) return { url: undefined, isAutomatic: false }
  const { status, integrated_account_id: accountId, integration, code } = outcomeOf(session)
  const result = { status, integrated_account_id: accountId, integration, error_code: code }
  for (const [name, value] of Object.entries(result)) if (typeof value === 'string') url.searchParams.set(name, value)
  // The customer reads an error before leaving the page; what they cancelled themselves needs no explanation.
  return { url: url.href, isAutomatic: session.status === 'completed' || session.status === 'cancelled' }
}
