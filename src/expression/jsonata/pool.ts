import { type BackoffPolicy, backoffMs } from '../../base/index.ts'
import { FairQueue } from './fair-queue.ts'
import { type JobOutcome, type KillCause, type PoolJob, PoolMember } from './pool-member.ts'
import type { StartSandbox } from './sandbox-process.ts'

/** What a pool is built from. */
export interface PoolOptions {
  /** Sandboxes at most, 2 or more: one of them is always kept for expressions that are not known to be slow. */
  readonly size: number
  readonly startSandbox: StartSandbox
}

/** Waiting evaluations of one owner. */
const WAITING_PER_OWNER_MAX = 1_000

/** An evaluation that has not started by then is refused. */
const WAIT_MS_MAX = 10_000

/** How often running evaluations are looked at; bounds how far one overruns its time. */
const WATCH_INTERVAL_MS = 20

/** Memory of a sandbox: heap, code and buffers. */
const RESIDENT_BYTES_MAX = 256 * 1024 * 1024

/** A process that does not report by then will not. */
const START_MS_MAX = 10_000

/** After so many failed starts in a row waiting evaluations are refused instead of waiting on. */
const START_FAILURES_MAX = 4
const START_BACKOFF: BackoffPolicy = { baseMs: 100, factor: 3, maxMs: 10_000, jitterFloor: 1 }

/**
 * Runs evaluations in child processes, one at a time in each.
 *
 * Processes start when there is work, are replaced when they are spent, and are killed when an evaluation exceeds its
 * time or memory: only that evaluation is lost. Owners are served in turn. Evaluations known to be slow occupy at most
 * half of the pool, so that quick ones always find a process that soon has time.
 */
export class SandboxPool implements Disposable {
  readonly #options: PoolOptions
  readonly #quick = new FairQueue<PoolJob>(WAITING_PER_OWNER_MAX)
  readonly #slow = new FairQueue<PoolJob>(WAITING_PER_OWNER_MAX)
  readonly #members = new Set<PoolMember>()
  #watch: NodeJS.Timeout | undefined
  #retry: NodeJS.Timeout | undefined
  #startFailures = 0
  #isClosed = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  /** Queues an evaluation; the outcome never rejects. */
  run(request: Pick<PoolJob, 'owner' | 'line' | 'timeoutMs' | 'isSlow'>): Promise<JobOutcome> {
    return new Promise((settle) => {
      if (this.#isClosed) return settle({ kind: 'refused', cause: 'closed' })
      const job: PoolJob = { ...request, queuedAt: performance.now(), settle }
      const queue = job.isSlow() ? this.#slow : this.#quick
      if (queue.isFull(job.owner)) return settle({ kind: 'refused', cause: 'queue_full' })
      queue.push(job)
      this.#dispatch()
    })
  }

  /** Ends all processes; what runs or waits is refused. */
  [Symbol.dispose](): void {
    this.#isClosed = true
    clearInterval(this.#watch)
    clearTimeout(this.#retry)
    for (const member of this.#members) {
      for (const job of member.takeBackWaiting()) job.settle({ kind: 'refused', cause: 'closed' })
      member.stop({ kind: 'refused', cause: 'closed' })
    }
    this.#members.clear()
    this.#refuseWaiting('closed')
  }

  #dispatch(): void {
    this.#placeSlow()
    while (this.#quick.size > 0) {
      if (!this.#placeNext(this.#quick)) break
    }
    // Some may have turned out to be slow while they waited.
    this.#placeSlow()
    if (this.#members.size > 0) this.#watch ??= setInterval(() => this.#look(), WATCH_INTERVAL_MS).unref()
  }

  #placeSlow(): void {
    while (this.#slow.size > 0 && !this.#slowShareIsTaken()) {
      if (!this.#placeNext(this.#slow)) return
    }
  }

  /**
   * Hands out one waiting job: to an idle process, else ahead to the one with the shortest line while another starts.
   *
   * @returns false when no process has room
   */
  #placeNext(queue: FairQueue<PoolJob>): boolean {
    const member = this.#leastLoaded()
    if (!member?.isIdle && this.#mayStart()) this.#start()
    if (!member) return false
    const job = queue.shift()
    if (!job) return false
    if (performance.now() - job.queuedAt > WAIT_MS_MAX) job.settle({ kind: 'refused', cause: 'waited_too_long' })
    else if (queue === this.#quick && job.isSlow()) this.#slow.push(job)
    else member.send(job)
    return true
  }

  #leastLoaded(): PoolMember | undefined {
    const now = performance.now()
    let best: PoolMember | undefined
    for (const member of this.#members) {
      if (member.hasRoom(now) && (!best || member.load < best.load)) best = member
    }
    return best
  }

  #slowShareIsTaken(): boolean {
    const busy = [...this.#members].filter((member) => member.runsSlow).length
    return busy >= Math.floor(this.#options.size / 2)
  }

  #mayStart(): boolean {
    const starting = [...this.#members].some((member) => !member.isReady)
    return !starting && !this.#retry && this.#members.size < this.#options.size
  }

  #start(): void {
    const member = new PoolMember(
      this.#options.startSandbox({
        onReady: () => {
          clearTimeout(timer)
          this.#startFailures = 0
          member.markReady()
          this.#dispatch()
        },
        onAnswer: (answer) => {
          const ranMs = member.takeAnswer(answer)
          if (ranMs >= WATCH_INTERVAL_MS && isBloated(member)) this.#replace(member)
          else if (member.isIdle && member.isSpent) this.#drop(member)
          this.#dispatch()
        },
        onExit: () => {
          clearTimeout(timer)
          if (member.isReady) this.#kill(member, 'crash')
          else this.#failedToStart(member)
        },
      }),
    )
    const timer = setTimeout(() => this.#failedToStart(member), START_MS_MAX).unref()
    this.#members.add(member)
  }

  #failedToStart(member: PoolMember): void {
    this.#drop(member)
    this.#startFailures++
    if (this.#startFailures >= START_FAILURES_MAX) this.#refuseWaiting('no_sandbox')
    const waitMs = backoffMs(START_BACKOFF, this.#startFailures, () => 1)
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.#dispatch()
    }, waitMs)
    if (this.#quick.size + this.#slow.size === 0) this.#retry.unref()
  }

  /** Looks at every running evaluation: its time, its memory, and who waits behind it. */
  #look(): void {
    const now = performance.now()
    for (const member of this.#members) {
      const job = member.running
      if (!job) continue
      if (member.runningMs(now) > job.timeoutMs) this.#killIfStillRunning(member, job)
      else if (member.isStalled(now)) this.#relieve(member)
    }
    if ([...this.#members].every((member) => member.isIdle)) {
      clearInterval(this.#watch)
      this.#watch = undefined
    }
  }

  /** When this process was busy itself, the answer may be here unread: input is read before `setImmediate` runs. */
  #killIfStillRunning(member: PoolMember, job: PoolJob): void {
    setImmediate(() => {
      if (this.#members.has(member) && member.running === job) this.#kill(member, 'time')
    })
  }

  #relieve(member: PoolMember): void {
    if (isBloated(member)) {
      this.#kill(member, 'memory')
      return
    }
    const waiting = member.takeBackWaiting()
    this.#putBack(waiting)
    if (waiting.length > 0) this.#dispatch()
  }

  #kill(member: PoolMember, cause: KillCause): void {
    this.#putBack(member.takeBackWaiting())
    this.#members.delete(member)
    member.stop({ kind: 'killed', cause })
    this.#dispatch()
  }

  /** The memory is an evaluation's that is over: those behind it must not be blamed for it, and begin anew elsewhere. */
  #replace(member: PoolMember): void {
    this.#putBack(member.takeBackAll())
    this.#drop(member)
  }

  #drop(member: PoolMember): void {
    this.#members.delete(member)
    member.process.kill()
  }

  #putBack(jobs: readonly PoolJob[]): void {
    for (const job of jobs.toReversed()) (job.isSlow() ? this.#slow : this.#quick).putBack(job)
  }

  #refuseWaiting(cause: 'closed' | 'no_sandbox'): void {
    for (const queue of [this.#quick, this.#slow]) {
      for (let job = queue.shift(); job; job = queue.shift()) job.settle({ kind: 'refused', cause })
    }
  }
}

function isBloated(member: PoolMember): boolean {
  return (member.process.residentBytes() ?? 0) > RESIDENT_BYTES_MAX
}
