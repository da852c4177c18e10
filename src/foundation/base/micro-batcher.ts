import { currentRequest, detachFromRequest, type RequestScope } from './request-scope.ts'

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
  /** The API request that it is for. */
  readonly scope: RequestScope | undefined
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

  /**
   * Resolves with the result of this request. One whose API request is interrupted before its batch begins leaves the queue; of
   * one in a batch the outcome is known before that is answered.
   */
  run(request: Request): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ request, scope: currentRequest(), resolve, reject })
      if (this.#running < this.#options.concurrencyMax) void detachFromRequest(() => this.#drain())
    })
  }

  async #drain(): Promise<void> {
    this.#running += 1
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, this.#options.batchMax).filter(isWanted)
      if (batch.length > 0) await this.#process(batch)
    }
    this.#running -= 1
  }

  async #process(batch: readonly QueuedRequest<Request, Result>[]): Promise<void> {
    const releases = batch.map(({ scope }) => scope?.holdAnswer(() => {}))
    try {
      const results = await this.#options.process(batch.map(({ request }) => request))
      if (results.length !== batch.length) throw new Error('a batch was answered with another number of results')
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    } finally {
      for (const release of releases) release?.()
    }
  }
}

function isWanted({ scope, reject }: Pick<QueuedRequest<never, never>, 'scope' | 'reject'>): boolean {
  if (scope?.interruption === undefined) return true
  reject(scope.interruption)
  return false
}
