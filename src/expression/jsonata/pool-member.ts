import type { SandboxResponse } from './sandbox/protocol.ts'
import type { SandboxProcess } from './sandbox-process.ts'

/** An evaluation on its way through the pool. */
export interface PooledEvaluation {
  readonly owner: string
  /** The request as the sandbox reads it, with the line end. */
  readonly line: string
  /** From the moment the sandbox takes it up. */
  readonly timeoutMs: number
  /** Whether it is expected to take long: it then shares no sandbox, and only part of the pool. May change as it waits. */
  isSlow(): boolean
  /** On the scale of `performance.now()`. */
  readonly queuedAt: number
  settle(outcome: EvaluationOutcome): void
}

/** Why an evaluation was stopped from outside. */
export type KillCause = 'time' | 'memory' | 'crash'

/** What became of a job. */
export type EvaluationOutcome =
  | { readonly kind: 'answer'; readonly answer: SandboxResponse }
  | { readonly kind: 'killed'; readonly cause: KillCause }
  | { readonly kind: 'refused'; readonly cause: 'queue_full' | 'waited_too_long' | 'closed' | 'no_sandbox' }

/** Requests sent ahead, so that a sandbox goes on to the next without waiting for this process. */
const SENT_MAX = 8

/** Length of the requests sent ahead. */
const SENT_LENGTH_MAX = 1_048_576

/** A job that runs longer gives the ones sent behind it back to the queue. */
const STALL_MS = 100

/** A sandbox is replaced after so many evaluations, or so much time spent in them. */
const SERVED_MAX = 100_000
const BUSY_MS_MAX = 20_000

/** One sandbox of the pool and the jobs it was sent, the running one first. */
export class PoolMember {
  readonly process: SandboxProcess
  readonly #sent: PooledEvaluation[] = []
  #isReady = false
  #isRetiring = false
  #runningSince = 0
  #served = 0
  #busyMs = 0

  constructor(process: SandboxProcess) {
    this.process = process
  }

  get running(): PooledEvaluation | undefined {
    return this.#sent[0]
  }

  get isReady(): boolean {
    return this.#isReady
  }

  get isIdle(): boolean {
    return this.#sent.length === 0
  }

  get load(): number {
    return this.#sent.length
  }

  get hasSlowEvaluation(): boolean {
    return this.#sent.some((job) => job.isSlow())
  }

  /** Whether the process has done its share, or has jobs in its input that were taken back, and must go once idle. */
  get shouldRetire(): boolean {
    return this.#isRetiring || this.#served >= SERVED_MAX || this.#busyMs >= BUSY_MS_MAX
  }

  /** Whether another job may be sent; nothing is sent behind one that is known to be slow, or turns out to be. */
  canAccept(nowMs: number): boolean {
    if (!this.#isReady || this.shouldRetire || this.hasSlowEvaluation || this.isStalled(nowMs)) return false
    if (this.#sent.length >= SENT_MAX) return false
    return this.#sent.reduce((length, job) => length + job.line.length, 0) < SENT_LENGTH_MAX
  }

  /** How long the running job has been at it. */
  runningMs(nowMs: number): number {
    return this.isIdle ? 0 : nowMs - this.#runningSince
  }

  /** Whether the running job takes so long that none should wait behind it. */
  isStalled(nowMs: number): boolean {
    return this.runningMs(nowMs) > STALL_MS
  }

  markReady(): void {
    this.#isReady = true
    this.process.keepsAlive(false)
  }

  send(job: PooledEvaluation): void {
    if (this.isIdle) {
      this.#runningSince = performance.now()
      this.process.keepsAlive(true)
    }
    this.#sent.push(job)
    this.process.send(job.line)
  }

  /** Takes the answer of the running job, which is settled; the next one counts as running from now. @returns how long it ran */
  receiveResponse(answer: SandboxResponse): number {
    const now = performance.now()
    const ranMs = this.runningMs(now)
    this.#busyMs += ranMs
    const job = this.#sent.shift()
    this.#served++
    this.#runningSince = now
    if (this.isIdle) this.process.keepsAlive(false)
    job?.settle({ kind: 'answer', answer })
    return ranMs
  }

  /** Every job, the running one too, for a process that is ended. */
  reclaimAll(): PooledEvaluation[] {
    return this.#sent.splice(0)
  }

  /** The jobs behind the running one, taken back; the process retires, because it has them in its input. */
  reclaimWaiting(): PooledEvaluation[] {
    const waiting = this.#sent.splice(1)
    if (waiting.length > 0) this.#isRetiring = true
    return waiting
  }

  /** Ends the process and settles the running job. */
  stop(outcome: EvaluationOutcome): void {
    this.process.kill()
    this.#sent.shift()?.settle(outcome)
  }
}
