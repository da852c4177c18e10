import type { RunQueue, Settled, Settlement } from './queue.ts'

/** Settlements in one transaction at most. */
const BATCH_MAX = 200

interface PendingSettlement {
  readonly settlement: Settlement
  readonly resolve: (settled: Settled) => void
  readonly reject: (error: unknown) => void
}

/**
 * Settles runs in groups: what ends while one transaction is on its way shares the next. A worker of many short runs then
 * commits once per group, one of few long runs at once.
 */
export class SettlementBatcher {
  readonly #queue: Pick<RunQueue, 'settle'>
  #pending: PendingSettlement[] = []
  #isFlushing = false

  constructor(queue: Pick<RunQueue, 'settle'>) {
    this.#queue = queue
  }

  /** @throws whatever the database throws; then nothing is settled, and asking again is harmless */
  settle(settlement: Settlement): Promise<Settled> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ settlement, resolve, reject })
      void this.#flush()
    })
  }

  async #flush(): Promise<void> {
    if (this.#isFlushing) return
    this.#isFlushing = true
    while (this.#pending.length > 0) await this.#settleGroup(this.#pending.splice(0, BATCH_MAX))
    this.#isFlushing = false
  }

  async #settleGroup(group: readonly PendingSettlement[]): Promise<void> {
    try {
      const settled = await this.#queue.settle(group.map(({ settlement }) => settlement))
      for (const [index, { resolve, settlement }] of group.entries())
        resolve(settled[index] ?? { kind: 'lost', id: settlement.id })
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }
}
