import { Worker } from 'node:worker_threads'

/** An unused thread is ended after this long. */
const IDLE_MS = 30_000

export interface WorkerThreadLimits {
  /** How long one task may take. */
  readonly taskMs: number
  /** Heap of the thread. */
  readonly heapMegabytes: number
}

/**
 * A worker thread for work that would hold the event loop. It starts with the first task, does one after the other, and ends
 * when it has been idle, or when a task takes too long or too much memory.
 */
export class WorkerThread<Task, Answer> {
  readonly #module: URL
  readonly #limits: WorkerThreadLimits
  #thread: Worker | undefined
  #idleTimer: NodeJS.Timeout | undefined
  #latest: Promise<unknown> = Promise.resolve()

  /** @param module posts one answer to its `parentPort` for every task it is posted */
  constructor(module: URL, limits: WorkerThreadLimits) {
    this.#module = module
    this.#limits = limits
  }

  /** @throws Error when the task needs more time or memory than it may; the message begins with a verb */
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
