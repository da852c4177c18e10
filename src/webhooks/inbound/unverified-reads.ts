import { type Clock, Failure } from '../../foundation/base/index.ts'
import { FairQueue, FairSemaphore } from '../../foundation/fair/index.ts'

/** Who sends a request that is not authenticated. */
export interface UnverifiedSender {
  readonly installation: string
  readonly remoteAddress: string
}

/** Bytes of small bodies, which large ones never take: of all senders, and of one address at one installation. */
const SMALL_BYTES_MAX = 32 * 1024 * 1024
const SMALL_BYTES_PER_ADDRESS_MAX = 8 * 1024 * 1024
/** Large bodies that are read at once, and of one installation: parsed, one takes up to fifty times as much memory. */
const LARGE_MAX = 2
const WAITING_PER_INSTALLATION_MAX = 8
const WAITING_PER_ADDRESS_MAX = 4
const WAIT_MS_MAX = 5_000
const RETRY_SECONDS = 5

interface WaitingRead {
  /** The installation, whose reads take turns with those of others. */
  readonly owner: string
  readonly address: string
  readonly start: () => void
}

/**
 * Budgets of what is decompressed and parsed before a signature is verified, of one process: a fair share of each installation, and
 * a limit for each address of a third party at it, so that a flood spends the share of its own. Small bodies have a reserve; large
 * ones are read in turns of their installations, one of each at a time.
 */
export class UnverifiedReads {
  readonly #small = new FairSemaphore(SMALL_BYTES_MAX)
  readonly #smallOfAddress = new Map<string, number>()
  readonly #waiting = new FairQueue<WaitingRead>(WAITING_PER_INSTALLATION_MAX)
  readonly #waitingOfAddress = new Map<string, number>()
  readonly #reading = new Set<string>()
  readonly #clock: Pick<Clock, 'sleep'>

  constructor(clock: Pick<Clock, 'sleep'>) {
    this.#clock = clock
  }

  /** Takes a share for a small body, which ends with the result. @throws Failure RATE_LIMITED */
  startSmall(sender: UnverifiedSender, bytes: number): Disposable {
    const address = addressOf(sender)
    const ofAddress = this.#smallOfAddress.get(address) ?? 0
    const isWithin = ofAddress + bytes <= SMALL_BYTES_PER_ADDRESS_MAX
    const release = isWithin ? this.#small.tryAcquire(sender.installation, bytes) : undefined
    if (release === undefined) throw tooMany()
    addTo(this.#smallOfAddress, address, bytes)
    return {
      [Symbol.dispose]: () => {
        release()
        addTo(this.#smallOfAddress, address, -bytes)
      },
    }
  }

  /** Waits for the turn of a large body, which ends with the result. @throws Failure RATE_LIMITED when too many wait, or too long */
  async waitForTurn(sender: UnverifiedSender): Promise<Disposable> {
    const { installation: owner } = sender
    const address = addressOf(sender)
    const ofAddress = this.#waitingOfAddress.get(address) ?? 0
    if (this.#waiting.isFull(owner) || ofAddress >= WAITING_PER_ADDRESS_MAX) throw tooMany()
    const turn = Promise.withResolvers<void>()
    const read = { owner, address, start: turn.resolve }
    this.#waiting.push(read)
    addTo(this.#waitingOfAddress, address, 1)
    this.#startNext()
    const ended = new AbortController()
    const timeout = this.#clock.sleep(WAIT_MS_MAX, ended.signal).then(
      () => this.#giveUp(read) && turn.reject(tooMany()),
      () => undefined,
    )
    try {
      await turn.promise
    } finally {
      ended.abort()
      await timeout
    }
    return {
      [Symbol.dispose]: () => {
        this.#reading.delete(owner)
        this.#startNext()
      },
    }
  }

  #startNext(): void {
    while (this.#reading.size < LARGE_MAX) {
      const next = this.#waiting.shift((owner) => !this.#reading.has(owner))
      if (next === undefined) return
      this.#reading.add(next.owner)
      addTo(this.#waitingOfAddress, next.address, -1)
      next.start()
    }
  }

  #giveUp(read: WaitingRead): boolean {
    const isWaiting = this.#waiting.remove(read)
    if (isWaiting) addTo(this.#waitingOfAddress, read.address, -1)
    return isWaiting
  }
}

/** Adds to a count; one that is zero is forgotten. */
function addTo(counts: Map<string, number>, key: string, change: number): void {
  const count = (counts.get(key) ?? 0) + change
  if (count > 0) counts.set(key, count)
  else counts.delete(key)
}

function addressOf({ installation, remoteAddress }: UnverifiedSender): string {
  return `${installation} ${remoteAddress}`
}

function tooMany(): Failure {
  const message = 'too many requests of this address are being read; send this again later'
  return new Failure('RATE_LIMITED', message, { retryAfterSeconds: RETRY_SECONDS })
}
