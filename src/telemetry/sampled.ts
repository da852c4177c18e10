/** How often a value is read. */
export interface ReadThrottle {
  /** A value is believed this long. */
  readonly intervalMs: number
  /** Share of the time that reading may take: what takes long is read less often. */
  readonly dutyCycleMax: number
}

/**
 * Turns an expensive reading into a cheap one: at most one at a time, and none more often than the rate allows, whoever
 * asks and however often. While it cannot be read the answer is undefined.
 */
export function throttledRead<Value>(
  read: () => Promise<Value>,
  { intervalMs: everyMs, dutyCycleMax: shareMax }: ReadThrottle,
): () => Promise<Value | undefined> {
  let latest: Promise<Value | undefined> | undefined
  let freshUntilMs = 0
  const readNow = async (): Promise<Value | undefined> => {
    const beganMs = performance.now()
    freshUntilMs = Number.POSITIVE_INFINITY
    try {
      return await read()
    } catch {
      return undefined
    } finally {
      const tookMs = performance.now() - beganMs
      freshUntilMs = performance.now() + Math.max(everyMs, tookMs / shareMax)
    }
  }
  return () => {
    if (latest === undefined || performance.now() >= freshUntilMs) latest = readNow()
    return latest
  }
}
