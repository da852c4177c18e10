import { Worker } from 'node:worker_threads'

/** Idle timeout: an unused thread is stopped after this long. */
const IDLE_MS = 30_000

export interface WorkerThreadLimits {
  /** How long one task may take. */
  readonly taskMs: number
  /** Heap of the thread. */
  readonly heapMegabytes: number
}

/**
 * A worker thread for work that would block the event loop. It starts with the first task, runs one task at a time, and
 * stops when it is idle, or when a task exceeds its time or memory.
 */
export class WorkerThread<Task, Answer> {
  readonly #module: URL
  readonly #limits: WorkerThreadLimits
  #thread: Worker | undefined
  #idleTimer: NodeJS.Timeout | undefined
  #latest: Promise<unknown> = Promise.resolve()

  /** @param module posts one answer to its `parentPort` for every task */
  constructor(module: URL, limits: WorkerThreadLimits) {
    this.#module = module
    this.#limits = limits
  }

  /** Queues a task. @throws Error when it exceeds its time or memory; the message begins with a verb */
  run(task: Task): Promise<Answer> {
    const answered = this.#latest.then(() => this.#post(task))
    this.#latest = answered.catch(() => undefined)
    return answered
  }

  #post(task: Task): Promise<Answer> {
    clearTimeout(this.#idleTimer)
    this.#thread ??= this.#start()
    const thread = this.#thread
    const { taskMs } = this.#limits
    return new Promise<Answer>((resolve, reject) => {
      const settle = () => {
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
