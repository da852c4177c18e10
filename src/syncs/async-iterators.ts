/** Runs work on at most `width` places at once, first come first served. */
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
 * Everything the sequences yield, one sequence after the other, while up to `width` of them have already begun working
 * on their first item. Order and content are those of running them one by one.
 *
 * A reader that leaves early leaves begun sequences behind; whatever they wait for must be abortable.
 */
export async function* prefetchConcat<Item>(
  starts: Iterable<() => AsyncGenerator<Item>>,
  width: number,
): AsyncGenerator<Item> {
  const begun: StartedSequence<Item>[] = []
  for (const start of starts) {
    begun.push(startSequence(start()))
    if (begun.length === width) yield* drain(begun.shift())
  }
  for (const each of begun) yield* drain(each)
}

/** The same sequence, with the next item already being worked on while the reader is busy with one. */
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
  // Whoever reads it sees the error; until then, and when nobody does, it must not end the process.
  first.catch(() => {})
  return { sequence, first }
}

async function* drain<Item>(begun: StartedSequence<Item> | undefined): AsyncGenerator<Item> {
  if (begun === undefined) return
  for (let item = await begun.first; item.done !== true; item = await begun.sequence.next()) yield item.value
}
