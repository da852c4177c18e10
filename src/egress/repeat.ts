import { isStaleConnection, upstreamFailure } from './failures.ts'

/** Methods that may be repeated without asking: a server that did the work twice is no different. */
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** What decides about a repetition. */
export interface RepeatRules {
  readonly host: string
  readonly method: string
  /** The body can be sent only once. */
  readonly isSpent?: boolean
}

/**
 * A kept-alive connection may close under a request. If nothing of an answer arrived and repeating is harmless, the
 * request is made once more.
 *
 * @throws Failure for whatever `attempt` rejects with
 */
export async function onceOrTwice<T>(
  { host, method, isSpent = false }: RepeatRules,
  attempt: () => Promise<T>,
): Promise<T> {
  try {
    return await attempt()
  } catch (error) {
    if (isSpent || !REPEATABLE.has(method) || !isStaleConnection(error)) throw upstreamFailure(host, error)
  }
  try {
    return await attempt()
  } catch (error) {
    throw upstreamFailure(host, error)
  }
}
