/** How requests become batches. */
export interface MicroBatcherOptions<Request, Result> {
  /** Batches under way at the same time. */
  readonly concurrencyMax: number
  /** Requests per batch. */
  readonly batchMax: number
  /** Answers a batch: one result per request, in their order. What it throws every request of the batch throws. */
  readonly process: (batch: readonly Request[]) => Promise<readonly Result[]>
}

interface QueuedRequest<Request, Result> {
  readonly request: Request
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/**
 * Micro-batching: requests that arrive while all batches are under way share the next one, without a timer. Alone a request
 * waits for nothing; under load a statement answers many, and none of them with anything older than its request.
 */
export class MicroBatcher<Request, Result> {
  readonly #options: MicroBatcherOptions<Request, Result>
  readonly #queue: QueuedRequest<Request, Result>[] = []
  #running = 0

  constructor(options: MicroBatcherOptions<Request, Result>) {
    this.#options = options
  }

  /** Resolves with the result of this request. */
  run(request: Request): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ request, resolve, reject })
      if (this.#running < this.#options.concurrencyMax) void this.#drain()
    })
  }

  async #drain(): Promise<void> {
    this.#running += 1
    while (this.#queue.length > 0) await this.#process(this.#queue.splice(0, this.#options.batchMax))
    this.#running -= 1
  }

  async #process(batch: readonly QueuedRequest<Request, Result>[]): Promise<void> {
    try {
      const results = await this.#options.process(batch.map(({ request }) => request))
      if (results.length !== batch.length) throw new Error('a batch was answered with another number of results')
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}
