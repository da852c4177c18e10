import { Failure } from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { AcceptedTerms } from '../accounts/sql/accepted-terms.ts'
import { findIntegratedAccount } from '../accounts/sql/integrated-account.ts'
import {
  type ConnectionGrant,
  storeConnectedAccount,
  storeReconnectedAccount,
} from '../accounts/store-connected-account.ts'
import { causeOfActive } from './activation.ts'
import { causeOfError, changeLinkStatus, commitLinkStatus, linkError } from './change-status.ts'
import type { ConnectTarget } from './choices.ts'
import type { LinkDependencies } from './dependencies.ts'
import type { LinkError } from './error-codes.ts'
import { findLinkSessionRecord, type LinkSessionRecord } from './sql/link-session.ts'

/** What an account is connected with. */
export interface ConnectionInput {
  readonly target: ConnectTarget
  /** Values by field name, secret ones too. */
  readonly fields: JsonObject
  readonly grant?: ConnectionGrant | undefined
  readonly grantedScopes?: readonly string[]
  readonly missingScopes?: readonly string[]
}

/**
 * Connects or reconnects the account of a session that is `exchanging`, in one transaction with the session's change. An
 * exchange that has ended meanwhile stores nothing.
 *
 * @param exchangeId of the exchange that this process began
 * @returns the session after it, with the error of a failed attempt
 */
export async function storeAccount(
  deps: LinkDependencies,
  session: LinkSessionRecord,
  exchangeId: string,
  connection: ConnectionInput,
): Promise<LinkSessionRecord> {
  try {
    return await deps.database.transaction((tx) => storeInTransaction(deps, tx, session, exchangeId, connection))
  } catch (error) {
    if (!(error instanceof Failure || error instanceof ExchangeEnded)) throw error
    return error instanceof Failure
      ? await endExchange(deps, session, exchangeId, errorOf(error))
      : await reloadSession(deps, session)
  }
}

/** Ends an exchange that failed. @returns the session after it */
export async function endExchange(
  deps: Pick<LinkDependencies, 'database'>,
  session: LinkSessionRecord,
  exchangeId: string,
  error: LinkError,
): Promise<LinkSessionRecord> {
  const guard = { exchangeId }
  const changed = await commitLinkStatus(deps, session, causeOfError(error), {
    guard,
    patch: { exchangeId: null },
    error,
  })
  return changed ?? (await reloadSession(deps, session))
}

/** The session as it is stored; the given one when it was deleted. */
export async function reloadSession(
  { database }: Pick<LinkDependencies, 'database'>,
  session: LinkSessionRecord,
): Promise<LinkSessionRecord> {
  return (await findLinkSessionRecord(database.pool, session)) ?? session
}

/** Rolls the account back when the exchange was ended: by time, by the customer or by the application. */
class ExchangeEnded extends Error {}

async function storeInTransaction(
  deps: LinkDependencies,
  tx: Tx,
  session: LinkSessionRecord,
  exchangeId: string,
  connection: ConnectionInput,
): Promise<LinkSessionRecord> {
  // The account before the session, as activations lock them.
  const account = await writeAccount(deps, tx, session, connection)
  const cause =
    account.status === 'active' ? causeOfActive(session, connection.target.definition.plan) : 'account_connected'
  const { grantedScopes = [], missingScopes = [] } = connection
  const changed = await changeLinkStatus(tx, session, cause, {
    guard: { exchangeId },
    patch: { integratedAccountId: account.id, exchangeId: null, grantedScopes, missingScopes },
  })
  if (changed === undefined) throw new ExchangeEnded('the exchange of a link session has ended')
  return changed
}

async function writeAccount(
  { accounts }: LinkDependencies,
  tx: Tx,
  session: LinkSessionRecord,
  { target, fields, grant }: ConnectionInput,
) {
  const { environmentId, integratedAccountId: id } = session
  const { credential } = target.method
  const terms = acceptedTermsOf(session)
  const enteredVersion = target.definition.installationVersion
  if (id === null) {
    const { tenantId, context, region, isSandbox, objectStoreContextFields } = session
    const { environmentIntegrationId } = target.choice
    const input = { environmentIntegrationId, tenantId, region, isSandbox, objectStoreContextFields }
    return await storeConnectedAccount(
      accounts,
      tx,
      { environmentId },
      { ...input, credential, fields, grant, context, terms, enteredVersion },
    )
  }
  const context = await contextForReconnect(tx, session, id, fields)
  const input = { id, credential, fields, grant, context, terms, enteredVersion }
  return await storeReconnectedAccount(accounts, tx, { environmentId }, input)
}

function acceptedTermsOf({ termsUrl, termsAcceptedAt }: LinkSessionRecord): AcceptedTerms | undefined {
  return termsAcceptedAt === null ? undefined : { url: termsUrl, acceptedAt: termsAcceptedAt }
}

/** The session's context; where `persist_previous_context` is false the account's other keys are removed. */
async function contextForReconnect(
  tx: Db,
  { environmentId, isReconnect, context, persistPreviousContext }: LinkSessionRecord,
  id: string,
  fields: JsonObject,
): Promise<JsonObject> {
  if (!isReconnect || persistPreviousContext) return context
  const account = await findIntegratedAccount(tx, environmentId, id)
  const removed = Object.keys(account?.context ?? {}).filter((key) => !Object.hasOwn(fields, key))
  return { ...Object.fromEntries(removed.map((key) => [key, null])), ...context }
}

/** Why no account was stored, by the reason of a Failure. */
function errorOf({ reason, publicMessage }: Failure): LinkError {
  switch (reason) {
    case 'RESOURCE_NOT_FOUND':
      return linkError('integration_not_found')
    case 'INTEGRATION_DISABLED':
      return linkError('integration_disabled')
    case 'CREDENTIALS_INVALID':
    case 'SECRET_MASKED':
      return linkError('credentials_rejected', publicMessage)
    default:
      return linkError('validation_error', publicMessage)
  }
}
