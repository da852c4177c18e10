const POLL_MS = 50
const DEADLINE_MS = 60_000

/** Waits until a value is there. For tests that run side by side, in which `expect.poll` cannot be used. */
export async function until<Value>(
  what: string,
  find: () => Promise<Value | false | undefined> | Value | false | undefined,
): Promise<Value> {
  for (const end = Date.now() + DEADLINE_MS; Date.now() < end; ) {
    const value = await find()
    if (value !== false && value !== undefined) return value
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  throw new Error(`waited ${DEADLINE_MS} ms for ${what}`)
}

/** The value of work that ends in time, else undefined. */
export async function within<Value>(ms: number, work: Promise<Value>): Promise<Value | undefined> {
  const timer = Promise.withResolvers<undefined>()
  const timeout = setTimeout(() => timer.resolve(undefined), ms)
  try {
    return await Promise.race([work, timer.promise])
  } finally {
    clearTimeout(timeout)
  }
}
