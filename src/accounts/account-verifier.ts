import { LRUCache } from 'lru-cache'
import { type BackoffPolicy, backoffMs } from '../base/index.ts'
import { type AccountRef, listConnectingAccounts } from '../storage/index.ts'
import { type VerifyDeps, verifyAccount } from './verify-account.ts'

/** What proving accounts in the background needs. */
export interface VerifierDeps extends VerifyDeps {
  /** A number in [0, 1). */
  readonly random: () => number
  /** Only accounts that live in one of these. Absent: all. */
  readonly regions?: readonly string[] | undefined
}

/** Accounts looked at per round; those that wait for another try are among them. */
const ACCOUNTS_PER_ROUND = 200
const CONCURRENCY = 8
/** Tries of one process before "unknown" counts as a no. */
const TRIES_MAX = 5
const RETRY: BackoffPolicy = { baseMs: 2_000, factor: 3, maxMs: 60_000, jitterFloor: 0.5 }
const WAITING_MAX = 10_000

/** Proves connecting accounts, round by round. Tries are remembered per process: a new one begins to count anew. */
export class AccountVerifier {
  readonly #deps: VerifierDeps
  readonly #tries = new LRUCache<string, { readonly count: number; readonly notBeforeMs: number }>({ max: WAITING_MAX })

  constructor(deps: VerifierDeps) {
    this.#deps = deps
  }

  /** One round. @returns whether another one should follow at once */
  async runOnce(): Promise<boolean> {
    const { database, regions, clock } = this.#deps
    const waiting = await listConnectingAccounts(database.direct, regions, ACCOUNTS_PER_ROUND)
    const now = clock.now().getTime()
    const due = waiting.filter(({ id }) => (this.#tries.get(id)?.notBeforeMs ?? 0) <= now)
    const lanes = Array.from({ length: CONCURRENCY }, async (_, lane) => {
      for (let index = lane; index < due.length; index += CONCURRENCY) {
        const ref = due[index]
        if (ref !== undefined) await this.#try(ref)
      }
    })
    await Promise.all(lanes)
    return due.length === ACCOUNTS_PER_ROUND
  }

  async #try(ref: AccountRef): Promise<void> {
    const count = (this.#tries.get(ref.id)?.count ?? 0) + 1
    const verification = await verifyAccount(this.#deps, ref, count >= TRIES_MAX)
    if (verification.kind !== 'unknown' || count >= TRIES_MAX) {
      this.#tries.delete(ref.id)
      return
    }
    const { clock, random } = this.#deps
    const afterMs = Math.max(verification.afterMs ?? 0, backoffMs(RETRY, count, random))
    this.#tries.set(ref.id, { count, notBeforeMs: clock.now().getTime() + afterMs })
  }
}
