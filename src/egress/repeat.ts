import { isStaleConnection, toUpstreamFailure } from './failures.ts'

/** Methods that may be repeated without asking: a server that did the work twice is no different. */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** What decides about a repetition. */
export interface StaleRetryRules {
  readonly host: string
  readonly method: string
  /** The body can be sent only once. */
  readonly isBodyConsumed?: boolean
}

/**
 * A kept-alive connection may close under a request. If nothing of an answer arrived and repeating is harmless, the
 * request is made once more.
 *
 * @throws Failure for whatever `attempt` rejects with
 */
export async function retryStaleConnection<T>(
  { host, method, isBodyConsumed: isSpent = false }: StaleRetryRules,
  attempt: () => Promise<T>,
): Promise<T> {
  try {
    return await attempt()
  } catch (error) {
    if (isSpent || !SAFE_METHODS.has(method) || !isStaleConnection(error)) throw toUpstreamFailure(host, error)
  }
  try {
    return await attempt()
  } catch (error) {
    throw toUpstreamFailure(host, error)
  }
}
