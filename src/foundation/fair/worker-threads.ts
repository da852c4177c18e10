import { Worker } from 'node:worker_threads'
import { Failure } from '../base/errors.ts'
import { FairQueue } from './fair-queue.ts'

/** Idle timeout: an unused thread is stopped after this long. */
const IDLE_MS = 30_000
/** Most waiting tasks of one owner. */
const WAITING_PER_OWNER_MAX = 50
/** Most bytes of the waiting tasks of one owner, and of all. */
const WAITING_BYTES_PER_OWNER_MAX = 32 * 1024 * 1024
const WAITING_BYTES_MAX = 256 * 1024 * 1024

/** A task that has waited longer is rejected instead of begun: its request has little time left, and others wait behind it. */
const WAIT_MS_MAX = 10_000
const RETRY_AFTER_SECONDS = 1

export interface WorkerThreadLimits {
  readonly threads: number
  /** How long one task may take. */
  readonly taskMs: number
  /** Heap of each thread. */
  readonly heapMegabytes: number
  /** How long a task may wait for a thread; default 10 s. */
  readonly waitMsMax?: number
}

/** For whom a task runs. */
export interface TaskOwner {
  /** Owners take turns: an environment or team, or a webhook address, whose sender is not authenticated yet. */
  readonly owner: string
  /** A task that still waits when the request has ended is dropped. */
  readonly signal?: AbortSignal | undefined
}

interface WaitingTask<Task, Answer> {
  readonly task: Task
  readonly owner: string
  readonly bytes: number
  readonly sinceMs: number
  readonly outcome: PromiseWithResolvers<Answer>
}

/**
 * Worker threads for work that would block the event loop. They start on demand, run one task at a time each, and stop when
 * idle, or when a task exceeds its time or memory. Waiting tasks are run in turns of their owners.
 */
export class WorkerThreads<Task, Answer> {
  readonly #module: URL
  readonly #limits: WorkerThreadLimits
  readonly #threads = new Set<WorkerThread<Task, Answer>>()
  readonly #waiting = new FairQueue<WaitingTask<Task, Answer>>(WAITING_PER_OWNER_MAX)
  readonly #waitingBytes = new Map<string, number>()
  #totalBytes = 0

  /** @param module posts one answer to its `parentPort` for every task */
  constructor(module: URL, limits: WorkerThreadLimits) {
    this.#module = module
    this.#limits = limits
  }

  /**
   * Queues a task.
   *
   * @param bytes what the task holds while it waits
   * @throws Failure RATE_LIMITED when too much of the owner waits, or this task waited too long, CANCELLED; Error when the task exceeds its time or memory,
   * whose message begins with a verb
   */
  async run(task: Task, bytes: number, { owner, signal }: TaskOwner): Promise<Answer> {
    const waiting = { task, owner, bytes, sinceMs: performance.now(), outcome: Promise.withResolvers<Answer>() }
    if (this.#isFull(waiting)) throw tooMuch('too much waits to be read already')
    this.#waiting.push(waiting)
    this.#count(waiting, bytes)
    const drop = () => {
      if (!this.#waiting.remove(waiting)) return
      this.#count(waiting, -bytes)
      waiting.outcome.reject(new Failure('CANCELLED', 'the request has ended'))
    }
    signal?.addEventListener('abort', drop)
    if (signal?.aborted === true) drop()
    this.#dispatch()
    return await waiting.outcome.promise.finally(() => signal?.removeEventListener('abort', drop))
  }

  #isFull({ owner, bytes }: WaitingTask<Task, Answer>): boolean {
    // Whatever its size, the first task of an owner may wait.
    const held = this.#waitingBytes.get(owner)
    const exceeds = held !== undefined && held + bytes > WAITING_BYTES_PER_OWNER_MAX
    return exceeds || this.#waiting.isFull(owner) || this.#totalBytes + bytes > WAITING_BYTES_MAX
  }

  #count({ owner }: WaitingTask<Task, Answer>, bytes: number): void {
    this.#totalBytes += bytes
    const held = (this.#waitingBytes.get(owner) ?? 0) + bytes
    if (held > 0) this.#waitingBytes.set(owner, held)
    else this.#waitingBytes.delete(owner)
  }

  #dispatch(): void {
    while (this.#waiting.size > 0) {
      const thread = this.#idleThread()
      const next = thread && this.#waiting.shift()
      if (!thread || !next) return
      this.#count(next, -next.bytes)
      if (performance.now() - next.sinceMs > (this.#limits.waitMsMax ?? WAIT_MS_MAX)) {
        next.outcome.reject(tooMuch('this waited too long to be read'))
        continue
      }
      thread
        .run(next.task)
        .then(next.outcome.resolve, next.outcome.reject)
        .finally(() => this.#dispatch())
    }
  }

  #idleThread(): WorkerThread<Task, Answer> | undefined {
    const idle = [...this.#threads].find((thread) => !thread.isBusy)
    if (idle || this.#threads.size >= this.#limits.threads) return idle
    const thread = new WorkerThread<Task, Answer>(this.#module, this.#limits)
    this.#threads.add(thread)
    return thread
  }
}

function tooMuch(message: string): Failure {
  return new Failure('RATE_LIMITED', message, { retryAfterSeconds: RETRY_AFTER_SECONDS })
}

/** One thread, started with its first task. */
class WorkerThread<Task, Answer> {
  readonly #module: URL
  readonly #limits: WorkerThreadLimits
  #thread: Worker | undefined
  #idleTimer: NodeJS.Timeout | undefined
  isBusy = false

  constructor(module: URL, limits: WorkerThreadLimits) {
    this.#module = module
    this.#limits = limits
  }

  /** @throws Error when the task exceeds its time or memory */
  run(task: Task): Promise<Answer> {
    clearTimeout(this.#idleTimer)
    this.isBusy = true
    this.#thread ??= this.#start()
    const thread = this.#thread
    const { taskMs } = this.#limits
    return new Promise<Answer>((resolve, reject) => {
      const settle = () => {
        this.isBusy = false
        clearTimeout(timer)
        thread.removeAllListeners('message').removeAllListeners('error')
        thread.on('error', () => void this.#stop())
        this.#idleTimer = setTimeout(() => void this.#stop(), IDLE_MS).unref()
      }
      const fail = (message: string) => {
        settle()
        void this.#stop()
        reject(new Error(message))
      }
      const timer = setTimeout(() => fail(`takes longer than ${taskMs} ms to read`), taskMs)
      thread.once('error', () => fail('needs more memory to read than is allowed'))
      thread.once('message', (answer: Answer) => {
        settle()
        resolve(answer)
      })
      thread.postMessage(task)
    })
  }

  #start(): Worker {
    const thread = new Worker(this.#module, {
      resourceLimits: { maxOldGenerationSizeMb: this.#limits.heapMegabytes },
    })
    thread.unref()
    return thread
  }

  async #stop(): Promise<void> {
    const ended = this.#thread
    this.#thread = undefined
    await ended?.terminate()
  }
}
