import { setTimeout as sleep } from 'node:timers/promises'

/** One request of a provider to the address that it was given. */
export interface ProviderRequest {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** How one attempt ended, from the provider's point of view. */
export interface AttemptOutcome {
  /** 0: no answer within the deadline, or no connection. */
  readonly status: number
  readonly tookMs: number
  readonly headers: Headers | undefined
  readonly body: string
}

/** How a provider delivers. Times are those of the double, in milliseconds. */
export interface DeliveryPolicy {
  /** An answer that comes later counts as none; the request stays open meanwhile. */
  readonly deadlineMs: number
  /** Waits before the retries; the first may be 0. After a missed deadline the retry starts while the first request still runs. */
  readonly retryGapsMs: readonly number[]
  /** Share of accepted deliveries that are sent once more all the same. */
  readonly duplicateShare: number
}

/** A request that was not answered is dropped after so many deadlines. */
const ABANDONED_DEADLINES = 4

/** Sends one request and waits for its answer up to the deadline; the request goes on behind it. */
export async function attempt(request: ProviderRequest, deadlineMs: number): Promise<AttemptOutcome> {
  const startedAt = performance.now()
  const tookMs = () => performance.now() - startedAt
  const answered = send(request, deadlineMs * ABANDONED_DEADLINES).then(
    ({ status, headers, body }) => ({ status, headers, body, tookMs: tookMs() }),
    () => ({ status: 0, headers: undefined, body: '', tookMs: tookMs() }),
  )
  const stop = new AbortController()
  const late = sleep(deadlineMs, undefined, { signal: stop.signal }).then(
    () => ({ status: 0, headers: undefined, body: '', tookMs: tookMs() }),
    () => ({ status: 0, headers: undefined, body: '', tookMs: tookMs() }),
  )
  const outcome = await Promise.race([answered, late])
  stop.abort()
  return outcome
}

async function send({ method, url, headers, body }: ProviderRequest, abandonedMs: number) {
  const response = await fetch(url, {
    method,
    headers,
    redirect: 'manual',
    signal: AbortSignal.timeout(abandonedMs),
    ...(method === 'GET' ? {} : { body }),
  })
  return { status: response.status, headers: response.headers, body: await response.text() }
}

/** Whether the provider counts the attempt as delivered. */
export function isAccepted({ status }: AttemptOutcome): boolean {
  return status >= 200 && status < 300
}

/**
 * Delivers with retries, growing gaps and duplicates.
 *
 * @param isStopped whether the subscription has been disabled or deleted meanwhile
 * @returns whether it was accepted at last
 */
export async function deliver(
  makeRequest: (retry: number) => ProviderRequest,
  { deadlineMs, retryGapsMs, duplicateShare }: DeliveryPolicy,
  onAttempt: (outcome: AttemptOutcome) => void,
  isStopped: () => boolean,
): Promise<boolean> {
  for (let retry = 0; retry <= retryGapsMs.length; retry++) {
    if (retry > 0) await sleep(retryGapsMs[retry - 1] ?? 0)
    if (isStopped()) return false
    const isDoubled = Math.random() < duplicateShare
    // Both at once: the second comes while the first is in work.
    const outcomes = await Promise.all(
      Array.from({ length: isDoubled ? 2 : 1 }, () => attempt(makeRequest(retry), deadlineMs)),
    )
    outcomes.forEach(onAttempt)
    if (outcomes.some(isAccepted)) return true
  }
  return false
}
