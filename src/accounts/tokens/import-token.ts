import type { Clock, JsonObject } from '../../base/index.ts'
import type { ConnectPlan } from '../../definition/index.ts'
import { importedToken } from '../../formats/index.ts'
import { type IntegratedAccountRecord, resetToken, type Secrets, type Tx } from '../../storage/index.ts'
import { accountSecrets } from '../secret-ref.ts'
import { timesOf, writeToken } from './stored-token.ts'

/** What storing a token that was granted elsewhere needs. */
export interface ImportDeps {
  readonly secrets: Pick<Secrets, 'put'>
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
}

/** Stores a token that was granted elsewhere in the place of whatever token the account has. `tx` is a transaction. */
export async function importToken(
  { secrets, clock, random }: ImportDeps,
  tx: Tx,
  account: Pick<IntegratedAccountRecord, 'id' | 'environmentId' | 'region'>,
  { token: rules }: Pick<ConnectPlan, 'token'>,
  values: JsonObject,
): Promise<void> {
  const obtainedAt = clock.now()
  const token = importedToken(values, obtainedAt)
  const times = timesOf({ obtainedAt, expiresAt: token.expiresAt }, rules?.canObtain(token) === true, random)
  const version = await resetToken(tx, account, times)
  await secrets.put(tx, accountSecrets(account), writeToken({ ...token, version, obtainedAt }))
}
