import type { Db } from '../../../foundation/database/index.ts'
import type { AccountRef } from './integrated-account.ts'

/** The terms of service that a customer accepted, by their address. */
export interface AcceptedTerms {
  readonly url: string
  readonly acceptedAt: Date
}

/** Notes what the customer accepted for an account whose row is locked. Uses the primary key. */
export async function storeAcceptedTerms(
  tx: Db,
  { environmentId, id }: AccountRef,
  { url, acceptedAt }: AcceptedTerms,
): Promise<void> {
  await tx('integrated_account')
    .where({ environment_id: environmentId, id })
    .update({ terms_url: url, terms_accepted_at: acceptedAt })
}
