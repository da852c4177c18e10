import { findIntegratedAccount } from '../accounts/sql/integrated-account.ts'
import { findTermsOfEnvironment } from '../tenancy/sql/teams.ts'
import type { SessionDependencies } from './load-session.ts'
import type { LinkSession } from './session.ts'

/**
 * Address of the terms of service that the customer has yet to accept before an account is connected; `undefined` when there are
 * none, or these were accepted: in this session, or when the account to reconnect was connected.
 *
 * They are those of the team to which the environment belongs: it is the one whose customers connect, also by an integration
 * that another team owns.
 */
export async function findTermsToAccept(
  { database }: SessionDependencies,
  session: Pick<LinkSession, 'environmentId' | 'integratedAccountId' | 'termsUrl'>,
): Promise<string | undefined> {
  const { environmentId, integratedAccountId, termsUrl } = session
  const terms = await findTermsOfEnvironment(database.pool, environmentId)
  if (terms === '' || terms === termsUrl) return undefined
  if (integratedAccountId === null) return terms
  const account = await findIntegratedAccount(database.pool, environmentId, integratedAccountId)
  return account?.termsUrl === terms ? undefined : terms
}
