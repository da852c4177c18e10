/** A map whose values are computed lazily and cached. */
export class LazyMap<Source, Value> {
  readonly #sources: ReadonlyMap<string, Source>
  readonly #compute: (key: string, source: Source) => Value
  readonly #values = new Map<string, Value>()

  /** @param compute its errors are thrown by `get`, each time */
  constructor(sources: Readonly<Record<string, Source>>, compute: (key: string, source: Source) => Value) {
    this.#sources = new Map(Object.entries(sources))
    this.#compute = compute
  }

  get size(): number {
    return this.#sources.size
  }

  has(key: string): boolean {
    return this.#sources.has(key)
  }

  keys(): Iterable<string> {
    return this.#sources.keys()
  }

  get(key: string): Value | undefined {
    const source = this.#sources.get(key)
    if (source === undefined) return undefined
    const known = this.#values.get(key)
    if (known !== undefined) return known
    const value = this.#compute(key, source)
    this.#values.set(key, value)
    return value
  }
}
