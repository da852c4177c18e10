/** A semaphore: runs at most `width` tasks in parallel, first come, first served. */
export class Semaphore {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(width: number) {
    this.#free = width
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}

/**
 * Concatenates sequences with prefetch: up to `width` of them work on their first item ahead of time. Items come in the same
 * order as without prefetch.
 *
 * A consumer that stops early leaves started sequences behind, so their waits must be abortable.
 */
export async function* prefetchConcat<Item>(
  starts: Iterable<() => AsyncGenerator<Item>>,
  width: number,
): AsyncGenerator<Item> {
  const started: StartedSequence<Item>[] = []
  for (const start of starts) {
    started.push(startSequence(start()))
    if (started.length === width) yield* drain(started.shift())
  }
  for (const each of started) yield* drain(each)
}

/** Prefetch of one: the next item is worked on while the consumer uses the current one. */
export async function* prefetchOne<Item>(sequence: AsyncGenerator<Item>): AsyncGenerator<Item> {
  let ahead = startSequence(sequence)
  for (;;) {
    const item = await ahead.first
    if (item.done === true) return
    ahead = startSequence(sequence)
    yield item.value
  }
}

interface StartedSequence<Item> {
  readonly sequence: AsyncGenerator<Item>
  readonly first: Promise<IteratorResult<Item, unknown>>
}

function startSequence<Item>(sequence: AsyncGenerator<Item>): StartedSequence<Item> {
  const first = sequence.next()
  // The consumer gets the error; until then, or without a consumer, it is no unhandled rejection.
  first.catch(() => {})
  return { sequence, first }
}

async function* drain<Item>(started: StartedSequence<Item> | undefined): AsyncGenerator<Item> {
  if (started === undefined) return
  for (let item = await started.first; item.done !== true; item = await started.sequence.next()) yield item.value
}
