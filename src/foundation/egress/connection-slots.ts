import { systemClock } from '../base/clock.ts'
import { FairSlots } from '../fair/fair-slots.ts'

/** How many connections there may be at the same time. */
export interface ConnectionLimits {
  /** To one origin; an owner that is alone has half of them. */
  readonly perOriginMax: number
  /** To all origins; an owner that is alone has half of them. */
  readonly max: number
}

/** Most requests of one owner that wait for a connection to an origin. */
const WAITING_PER_OWNER_MAX = 1_000
/** Beginning of the message of a rejected request. */
const REJECTION = 'too many calls of this environment to third parties are under way'

interface OriginSlots {
  readonly slots: FairSlots
  /** Requests that wait for one of the slots or hold one. */
  users: number
}

/** Who waits for a connection, and how long. */
export interface ConnectionRequest {
  readonly origin: string
  /** An environment, a team, a client address, or the service itself. */
  readonly owner: string
  readonly signal: AbortSignal | undefined
  /** On the scale of `performance.now()`. */
  readonly deadlineAt: number
}

/**
 * Connections to third parties, shared fairly between owners. An origin such as `https://api.example.com` is called for many
 * tenants, and a pool gives its connections in order of arrival: requests of one tenant that the third party answers slowly would
 * take all of them. Here an owner has at most half of those to an origin, and of all, while others find one free.
 *
 * A request holds as many connections as slots, so that the pools behind never have a queue of their own.
 */
export class ConnectionSlots {
  readonly #limits: ConnectionLimits
  readonly #all: FairSlots
  readonly #origins = new Map<string, OriginSlots>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
    this.#all = createSlots(limits.max)
  }

  /**
   * Waits for a connection: of all first, so that what waits for a busy origin holds nothing that others need there.
   *
   * @returns gives it back; idempotent
   * @throws Failure RATE_LIMITED when too many requests of the owner wait; CANCELLED when the signal aborts or the deadline passes
   * while it waits
   */
  async acquire(request: ConnectionRequest): Promise<() => void> {
    const releaseOfAll = await acquireSlot(this.#all, request)
    try {
      const releaseOfOrigin = await this.#acquireOfOrigin(request)
      return () => {
        releaseOfOrigin()
        releaseOfAll()
      }
    } catch (error) {
      releaseOfAll()
      throw error
    }
  }

  async #acquireOfOrigin(request: ConnectionRequest): Promise<() => void> {
    const { origin: name } = request
    const origin = this.#origins.get(name) ?? { slots: createSlots(this.#limits.perOriginMax), users: 0 }
    this.#origins.set(name, origin)
    origin.users += 1
    let isUsed = true
    const leave = () => {
      if (isUsed && --origin.users === 0) this.#origins.delete(name)
      isUsed = false
    }
    try {
      const release = await acquireSlot(origin.slots, request)
      return () => {
        release()
        leave()
      }
    } catch (error) {
      leave()
      throw error
    }
  }
}

function createSlots(slotsMax: number): FairSlots {
  return new FairSlots({
    slotsMax,
    waitingPerOwnerMax: WAITING_PER_OWNER_MAX,
    // The deadline of each request ends its wait.
    waitMsMax: Number.POSITIVE_INFINITY,
    clock: systemClock,
    rejection: REJECTION,
  })
}

/** Runs work that lasts until the slot is released. */
function acquireSlot(slots: FairSlots, { owner, signal, deadlineAt }: ConnectionRequest): Promise<() => void> {
  const waiting = {
    slot: undefined,
    onInterrupt(listener: () => void) {
      const deadline = AbortSignal.timeout(Math.max(0, Math.ceil(deadlineAt - performance.now())))
      const ended = signal === undefined ? deadline : AbortSignal.any([signal, deadline])
      if (ended.aborted) listener()
      ended.addEventListener('abort', listener, { once: true })
      return () => ended.removeEventListener('abort', listener)
    },
  }
  const { promise, resolve, reject } = Promise.withResolvers<() => void>()
  slots.run(owner, waiting, () => new Promise<void>(resolve)).catch(reject)
  return promise
}
