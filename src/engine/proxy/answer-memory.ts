import { Failure } from '../../foundation/base/index.ts'
import { FairSemaphore } from '../../foundation/fair/index.ts'

/** Bytes of all large answers that are held at once: four of the largest; one environment alone may have half. */
const LARGE_ANSWER_BYTES_MAX = 256 * 1024 * 1024
const RETRY_AFTER_SECONDS = 5

/** Memory of a process for answers that are larger than most, shared by owners. */
export class AnswerMemory {
  readonly #bytes = new FairSemaphore(LARGE_ANSWER_BYTES_MAX)

  /** The share of one call. @param owner the environment */
  forCall(owner: string): AnswerReservation {
    return new AnswerReservation(this.#bytes, owner)
  }
}

/** What one call holds for its answer, until the call has ended or the next page is asked for. */
class AnswerReservation {
  readonly #bytes: FairSemaphore
  readonly #owner: string
  #held: (() => void) | undefined

  constructor(bytes: FairSemaphore, owner: string) {
    this.#bytes = bytes
    this.#owner = owner
  }

  /** Reserves memory once, however many attempts a call takes. @returns RATE_LIMITED when the owner has its share already */
  readonly reserve = (bytes: number): Failure | undefined => {
    this.#held ??= this.#bytes.tryAcquire(this.#owner, bytes)
    if (this.#held !== undefined) return undefined
    const message = 'this environment reads too many large answers at once; ask again later'
    return new Failure('RATE_LIMITED', message, { retryAfterSeconds: RETRY_AFTER_SECONDS })
  }

  release(): void {
    this.#held?.()
    this.#held = undefined
  }
}
