import type { ApiProxy } from '../../engine/proxy/index.ts'
import { DAY_MS, type PollLoopSpec } from '../../foundation/base/index.ts'
import { type DueWorkDeps, parallelLoops } from '../../foundation/queue/index.ts'
import { AccountActivator } from './account-activator.ts'
import { AccountRemover, type RemovalFailure } from './account-remover.ts'
import type { AccountDependencies } from './dependencies.ts'
import { warnOfReauthorization } from './reauthorization-warner.ts'
import { deleteSupersededHistory } from './sql/account-history.ts'
import { deleteIdleHosts } from './sql/token-host.ts'
import { refreshDueTokens } from './token-refresher.ts'

/** How long a new account waits for its activation to begin while one of the loops is free. */
const ACTIVATE_INTERVAL_MS = 1_000
const ACTIVATED_AT_ONCE = 4
/** Far below the refresh margin of all tokens but those that live for seconds. */
const REFRESH_INTERVAL_MS = 5_000
const REFRESH_LOOPS = 2
const REMOVE_INTERVAL_MS = 5_000
const WARN_INTERVAL_MS = 60_000
const CLEAN_INTERVAL_MS = 10 * 60_000
const CLEAN_BATCH = 1_000

/** What the work of accounts takes. */
export interface AccountWorkOptions extends AccountDependencies, Pick<DueWorkDeps, 'regions'> {
  /** With credential refresh, for the steps of activations. */
  readonly proxy: Pick<ApiProxy, 'runAction'>
  /** Days that entries of the history of accounts are kept after the next one; 0: for good. */
  readonly historyDays: number
  /** Called when a subscription or the grant of a deleted account was not ended. */
  readonly onRemovalFailure: (failure: RemovalFailure) => void
}

/** What a worker does for accounts, as loops. */
export interface AccountWork {
  readonly loops: readonly PollLoopSpec[]
  /** Aborts activations under way; another worker repeats them. */
  stop(): void
}

/** Activation, token refresh, warnings, and what deleted accounts leave at third parties. Any number of workers share them. */
export function createAccountWork(options: AccountWorkOptions): AccountWork {
  const activator = new AccountActivator(options)
  const remover = new AccountRemover({ ...options, onFailure: options.onRemovalFailure })
  return {
    loops: [
      ...parallelLoops(ACTIVATED_AT_ONCE, {
        name: 'activate-accounts',
        intervalMs: ACTIVATE_INTERVAL_MS,
        runOnce: () => activator.runOnce(),
      }),
      ...parallelLoops(REFRESH_LOOPS, {
        name: 'refresh-tokens',
        intervalMs: REFRESH_INTERVAL_MS,
        runOnce: () => refreshDueTokens(options),
      }),
      { name: 'reauthorization', intervalMs: WARN_INTERVAL_MS, runOnce: () => warnOfReauthorization(options) },
      { name: 'token-hosts', intervalMs: CLEAN_INTERVAL_MS, runOnce: () => cleanHosts(options) },
      { name: 'account-history', intervalMs: CLEAN_INTERVAL_MS, runOnce: () => cleanHistory(options) },
      { name: 'remove-accounts', intervalMs: REMOVE_INTERVAL_MS, runOnce: () => remover.runOnce() },
    ],
    stop: () => activator.stop(),
  }
}

async function cleanHosts({ database }: Pick<AccountDependencies, 'database'>): Promise<boolean> {
  return (await deleteIdleHosts(database.pool, CLEAN_BATCH)) === CLEAN_BATCH
}

async function cleanHistory({
  database,
  clock,
  historyDays,
}: Pick<AccountWorkOptions, 'database' | 'clock' | 'historyDays'>): Promise<boolean> {
  if (historyDays === 0) return false
  const before = new Date(clock.now().getTime() - historyDays * DAY_MS)
  return (await deleteSupersededHistory(database.pool, before, CLEAN_BATCH)) === CLEAN_BATCH
}
