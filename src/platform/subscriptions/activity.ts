import type { PollLoopSpec } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import { appendAccountEvent } from '../accounts/account-events.ts'
import type { AccountDependencies, AccountSubscriptions } from '../accounts/dependencies.ts'
import { addInbound, type InboundBatch, markSilent, type SilenceRule } from './sql/activity.ts'

const DAY_SECONDS = 86_400

/** Three usual gaps, and at least a day, without a request: of sources that have spoken for three days. */
const SILENCE: SilenceRule = {
  gapFactor: 3,
  seconds: DAY_SECONDS,
  countMin: 5,
  knownSecondsMin: 3 * DAY_SECONDS,
  halfLifeSeconds: 14 * DAY_SECONDS,
}

const FLUSH_INTERVAL_MS = 10_000
/** Accounts per statement. */
const FLUSH_BATCH = 1_000
/** Accounts whose requests are collected; those of further ones are not counted until the next flush. */
const COLLECTED_MAX = 50_000
const SILENCE_INTERVAL_MS = 60_000
const SILENCE_BATCH = 200

/** Collects in memory which accounts third parties call about; what is collected when a process is killed is lost. */
export class InboundActivity {
  readonly #database: Pick<Database, 'pool'>
  readonly #collected = new Map<string, InboundBatch>()

  constructor(database: Pick<Database, 'pool'>) {
    this.#database = database
  }

  /** Notes a request about an account. */
  record(account: { readonly environmentId: string; readonly id: string }, receivedAt: Date): void {
    const { environmentId, id: integratedAccountId } = account
    const key = `${environmentId}|${integratedAccountId}`
    const known = this.#collected.get(key)
    if (known === undefined && this.#collected.size >= COLLECTED_MAX) return
    this.#collected.set(key, {
      environmentId,
      integratedAccountId,
      firstAt: known === undefined || receivedAt < known.firstAt ? receivedAt : known.firstAt,
      lastAt: known === undefined || receivedAt > known.lastAt ? receivedAt : known.lastAt,
      count: (known?.count ?? 0) + 1,
    })
  }

  /** Stores what was collected, at most `FLUSH_BATCH` accounts. @returns whether there is more */
  async flush(): Promise<boolean> {
    const batches = [...this.#collected].slice(0, FLUSH_BATCH)
    for (const [key] of batches) this.#collected.delete(key)
    if (batches.length > 0)
      await addInbound(
        this.#database.pool,
        batches.map(([, batch]) => batch),
        SILENCE,
      )
    return this.#collected.size > 0
  }

  /** Stores what was collected every few seconds. */
  get loop(): PollLoopSpec {
    return { name: 'webhook-activity', intervalMs: FLUSH_INTERVAL_MS, runOnce: () => this.flush() }
  }
}

/**
 * Announces accounts whose third party has become silent, once for each silence, and has their subscriptions checked: the third
 * party may have deleted them.
 */
export function silenceMonitor({
  database,
  subscriptions,
}: Pick<AccountDependencies, 'database'> & { readonly subscriptions: AccountSubscriptions }): PollLoopSpec {
  return {
    name: 'webhook-silence',
    intervalMs: SILENCE_INTERVAL_MS,
    runOnce: () =>
      database.transaction(async (tx) => {
        const silent = await markSilent(tx, SILENCE_BATCH)
        for (const ref of silent) {
          await appendAccountEvent(tx, ref, 'webhook_silent')
          await subscriptions.schedule(tx, ref)
        }
        return silent.length === SILENCE_BATCH
      }),
  }
}
