import type { Clock, JsonObject } from '../../base/index.ts'
import type { ConnectPlan } from '../../definition/index.ts'
import { importedToken } from '../../formats/index.ts'
import { type IntegratedAccountRecord, resetToken, type SecretStore, type Tx } from '../../storage/index.ts'
import { accountSecretRef } from '../secret-ref.ts'
import { tokenSecret, tokenTimes } from './stored-token.ts'

/** What storing a token that was granted elsewhere needs. */
export interface ImportTokenDeps {
  readonly secrets: Pick<SecretStore, 'put'>
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
}

/** Stores a token that was granted elsewhere in the place of whatever token the account has. `tx` is a transaction. */
export async function importToken(
  { secrets, clock, random }: ImportTokenDeps,
  tx: Tx,
  account: Pick<IntegratedAccountRecord, 'id' | 'environmentId' | 'region'>,
  { token: rules }: Pick<ConnectPlan, 'token'>,
  values: JsonObject,
): Promise<void> {
  const obtainedAt = clock.now()
  const token = importedToken(values, obtainedAt)
  const times = tokenTimes({ obtainedAt, expiresAt: token.expiresAt }, rules?.canRequestToken(token) === true, random)
  const version = await resetToken(tx, account, times)
  await secrets.put(tx, accountSecretRef(account), tokenSecret({ ...token, version, obtainedAt }))
}
