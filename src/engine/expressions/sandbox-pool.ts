import { type BackoffPolicy, backoffMs } from '../../foundation/base/index.ts'
import { FairQueue } from '../../foundation/fair/index.ts'
import {
  type EvaluationOutcome,
  type KillCause,
  type PooledEvaluation,
  PoolMember,
  type StartSandbox,
} from './sandbox-process.ts'

/** Dependencies and size of a pool. */
export interface PoolOptions {
  /** Most sandboxes, 2 or more: slow expressions use at most half of them. */
  readonly size: number
  readonly startSandbox: StartSandbox
}

/** Most waiting evaluations of one owner. */
const WAITING_PER_OWNER_MAX = 1_000

/** Queue timeout: an evaluation that has not started by then is rejected. */
const WAIT_MS_MAX = 10_000

/** How often running evaluations are checked; bounds how far one overruns its timeout. */
const CHECK_INTERVAL_MS = 20

/** Memory limit of a sandbox (resident): heap, code and buffers. */
const RESIDENT_BYTES_MAX = 256 * 1024 * 1024

/** Start timeout of a process. */
const START_MS_MAX = 10_000

/** After so many failed starts in a row, waiting evaluations are rejected. */
const START_FAILURES_MAX = 4
const START_BACKOFF: BackoffPolicy = { baseMs: 100, factor: 3, maxMs: 10_000, jitterFloor: 1 }

/**
 * Process pool: runs evaluations in child processes, one at a time in each.
 *
 * Processes start on demand, are replaced after some work, and are killed when an evaluation exceeds its time or memory:
 * only that evaluation is lost. Owners are served round-robin. Slow evaluations use at most half of the pool, so that quick
 * ones do not wait for them.
 */
export class SandboxPool implements Disposable {
  readonly #options: PoolOptions
  readonly #quick = new FairQueue<PooledEvaluation>(WAITING_PER_OWNER_MAX)
  readonly #slow = new FairQueue<PooledEvaluation>(WAITING_PER_OWNER_MAX)
  readonly #members = new Set<PoolMember>()
  #checkTimer: NodeJS.Timeout | undefined
  #retry: NodeJS.Timeout | undefined
  #startFailures = 0
  #isClosed = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  /** Queues an evaluation; the promise never rejects. */
  run(request: Omit<PooledEvaluation, 'queuedAt' | 'settle'>): Promise<EvaluationOutcome> {
    return new Promise((settle) => {
      if (this.#isClosed) return settle({ kind: 'rejected', cause: 'closed' })
      const job: PooledEvaluation = { ...request, queuedAt: performance.now(), settle }
      const queue = job.isSlow() ? this.#slow : this.#quick
      if (queue.isFull(job.owner)) return settle({ kind: 'rejected', cause: 'queue_full' })
      queue.push(job)
      this.#dispatch()
    })
  }

  /** Kills all processes; running and waiting evaluations are rejected. */
  [Symbol.dispose](): void {
    this.#isClosed = true
    clearInterval(this.#checkTimer)
    clearTimeout(this.#retry)
    for (const member of this.#members) {
      for (const job of member.reclaimWaiting()) job.settle({ kind: 'rejected', cause: 'closed' })
      member.stop('closed')
    }
    this.#members.clear()
    this.#rejectWaiting('closed')
  }

  #dispatch(): void {
    this.#dispatchSlow()
    while (this.#quick.size > 0) {
      if (!this.#dispatchNext(this.#quick)) break
    }
    // Waiting evaluations may have become slow ones.
    this.#dispatchSlow()
    if (this.#members.size > 0) this.#checkTimer ??= setInterval(() => this.#checkRunning(), CHECK_INTERVAL_MS).unref()
  }

  #dispatchSlow(): void {
    while (this.#slow.size > 0 && !this.#isSlowShareFull()) {
      if (!this.#dispatchNext(this.#slow)) return
    }
  }

  /**
   * Dispatches one waiting evaluation: to an idle process, else to the one with the fewest evaluations, while another starts.
   *
   * @returns false when no process can accept one
   */
  #dispatchNext(queue: FairQueue<PooledEvaluation>): boolean {
    const member = this.#leastLoaded()
    if (!member?.isIdle && this.#mayStart()) this.#start()
    if (!member) return false
    const job = queue.shift()
    if (!job) return false
    if (performance.now() - job.queuedAt > WAIT_MS_MAX) job.settle({ kind: 'rejected', cause: 'waited_too_long' })
    else if (queue === this.#quick && job.isSlow()) this.#slow.push(job)
    else member.send(job)
    return true
  }

  #leastLoaded(): PoolMember | undefined {
    const now = performance.now()
    let best: PoolMember | undefined
    for (const member of this.#members) {
      if (member.canAccept(now) && (!best || member.load < best.load)) best = member
    }
    return best
  }

  #isSlowShareFull(): boolean {
    const busy = [...this.#members].filter((member) => member.hasSlowEvaluation).length
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
        onResponse: (answer) => {
          const ranMs = member.receiveResponse(answer)
          if (ranMs >= CHECK_INTERVAL_MS && exceedsMemory(member)) this.#replace(member)
          else if (member.isIdle && member.shouldRetire) this.#remove(member)
          this.#dispatch()
        },
        onExit: () => {
          clearTimeout(timer)
          if (member.isReady) this.#kill(member, 'crash')
          else this.#handleStartFailure(member)
        },
      }),
    )
    const timer = setTimeout(() => this.#handleStartFailure(member), START_MS_MAX).unref()
    this.#members.add(member)
  }

  #handleStartFailure(member: PoolMember): void {
    this.#remove(member)
    this.#startFailures++
    if (this.#startFailures >= START_FAILURES_MAX) this.#rejectWaiting('no_sandbox')
    const waitMs = backoffMs(START_BACKOFF, this.#startFailures, () => 1)
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.#dispatch()
    }, waitMs)
    if (this.#quick.size + this.#slow.size === 0) this.#retry.unref()
  }

  /** Checks every running evaluation: its time, its memory, and the evaluations sent after it. */
  #checkRunning(): void {
    const now = performance.now()
    for (const member of this.#members) {
      const job = member.running
      if (!job) continue
      if (member.isOutOfTime(now)) this.#killIfStillRunning(member, job)
      else if (member.isStalled(now)) this.#preempt(member)
    }
    if ([...this.#members].every((member) => member.isIdle)) {
      clearInterval(this.#checkTimer)
      this.#checkTimer = undefined
    }
  }

  /** When this process was busy itself, the response may be unread: input is read before `setImmediate` runs. */
  #killIfStillRunning(member: PoolMember, job: PooledEvaluation): void {
    setImmediate(() => {
      if (this.#members.has(member) && member.running === job) this.#kill(member, 'time')
    })
  }

  #preempt(member: PoolMember): void {
    if (exceedsMemory(member)) {
      this.#kill(member, 'memory')
      return
    }
    const waiting = member.reclaimWaiting()
    this.#requeue(waiting)
    if (waiting.length > 0) this.#dispatch()
  }

  #kill(member: PoolMember, cause: KillCause): void {
    this.#requeue(member.reclaimWaiting())
    this.#members.delete(member)
    member.stop(cause)
    this.#dispatch()
  }

  /** The memory was used by a finished evaluation: the following ones restart in another process and are not blamed. */
  #replace(member: PoolMember): void {
    this.#requeue(member.reclaimAll())
    this.#remove(member)
  }

  #remove(member: PoolMember): void {
    this.#members.delete(member)
    member.process.kill()
  }

  #requeue(jobs: readonly PooledEvaluation[]): void {
    for (const job of jobs.toReversed()) (job.isSlow() ? this.#slow : this.#quick).requeue(job)
  }

  #rejectWaiting(cause: 'closed' | 'no_sandbox'): void {
    for (const queue of [this.#quick, this.#slow]) {
      for (let job = queue.shift(); job; job = queue.shift()) job.settle({ kind: 'rejected', cause })
    }
  }
}

function exceedsMemory(member: PoolMember): boolean {
  return (member.process.residentBytes() ?? 0) > RESIDENT_BYTES_MAX
}
