import { Peer } from './peer.ts'
import type { Drained } from './ticker-main.ts'

/** As many as the machine has cores that the figures are made on. */
const PROCESSES = 2

/** What firing everything that was due took, all processes together. */
export interface FleetDrained extends Drained {
  readonly seconds: number
}

/** Processes that fire ticks and do nothing else. */
export class TickerFleet implements AsyncDisposable {
  readonly #peers: readonly Peer<Drained>[]

  private constructor(peers: readonly Peer<Drained>[]) {
    this.#peers = peers
  }

  static async start(url: string): Promise<TickerFleet> {
    const peers = Array.from({ length: PROCESSES }, () => new Peer<Drained>('ticker-main.ts', [url]))
    await Promise.all(peers.map((peer) => peer.next()))
    return new TickerFleet(peers)
  }

  /** Fires everything that is due. */
  async drain(): Promise<FleetDrained> {
    const fromMs = performance.now()
    const answers = Promise.all(this.#peers.map((peer) => peer.next()))
    for (const peer of this.#peers) peer.go()
    const drained = await answers
    return {
      seconds: (performance.now() - fromMs) / 1_000,
      fired: drained.reduce((sum, { fired }) => sum + fired, 0),
      cpuMs: drained.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#peers.map((peer) => peer[Symbol.asyncDispose]()))
  }
}
