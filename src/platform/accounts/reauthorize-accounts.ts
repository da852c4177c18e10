import type { Tx } from '../../foundation/database/index.ts'
import type { TaskKind } from '../../foundation/queue/index.ts'
import { REAUTHORIZATION_KIND } from '../integrations/override-difference.ts'
import type { AccountDependencies } from './dependencies.ts'
import { storeReauthorization } from './sql/account-state.ts'
import { resetToken } from './sql/account-token.ts'
import { listMovedAccounts, lockAccountCredentials, type MovedAccount } from './sql/integrated-account.ts'
import { changeAccountStatus } from './status.ts'
import { accountSecretRef } from './stored-credentials.ts'

/** Accounts of a step, some 7 statements each: about a quarter of a second. */
const ACCOUNTS_PER_STEP = 50
const LAST_ERROR = 'the integration sends requests to other hosts now: the account has to be connected again'

/**
 * Puts the accounts of an installation whose hosts have moved to `needs_reauth`, and removes their credentials. Those that were
 * connected again meanwhile stay as they are.
 */
export function reauthorizationTask(deps: Pick<AccountDependencies, 'secrets' | 'logger'>): TaskKind {
  return {
    kind: REAUTHORIZATION_KIND,
    async step(tx, { environmentId, params, cursor }) {
      const installation = {
        environmentId,
        environmentIntegrationId: String(params.environment_integration_id),
        version: Number(params.version),
      }
      const before = typeof cursor === 'string' ? cursor : undefined
      const accounts = await listMovedAccounts(tx, installation, { before, limit: ACCOUNTS_PER_STEP })
      for (const account of accounts) await reauthorize(deps, tx, account, installation.version)
      const last = accounts.length < ACCOUNTS_PER_STEP ? undefined : accounts.at(-1)
      return {
        done: accounts.length,
        cursor: last?.id ?? null,
        counts: { integrated_accounts: accounts.length },
      }
    },
  }
}

/** A token request or activation step that is under way stores nothing more. */
async function reauthorize(
  { secrets, logger }: Pick<AccountDependencies, 'secrets' | 'logger'>,
  tx: Tx,
  account: MovedAccount,
  version: number,
): Promise<void> {
  const enteredVersion = await lockAccountCredentials(tx, account)
  if (enteredVersion === undefined || enteredVersion >= version) return
  await resetToken(tx, account, { expiresAt: null, dueAt: null })
  await storeReauthorization(tx, account, { dueAt: null, warningAt: null })
  await secrets.remove(tx, accountSecretRef(account))
  await changeAccountStatus(tx, account, 'hosts_moved', LAST_ERROR, logger)
}
