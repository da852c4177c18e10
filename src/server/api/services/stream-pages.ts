import type { HandlerContext } from '@connectrpc/connect'
import type { PageDelayed, PageStep } from '../../../engine/proxy/index.ts'
import { type BackoffPolicy, type Clock, hintedWaitMs } from '../../../foundation/base/index.ts'
import { type PageStepInit, stepToProto } from './proxy.convert.ts'
import { upstreamFailure } from './proxy-calls.ts'
import type { ListStates } from './sealed-pages.ts'

/** Longest wait of a stream for a rate limit, and most waits in a row for one page. */
const WAIT_SECONDS_MAX = 300
const WAITS_MAX = 20
/** The least wait, by the waits in a row. Without jitter: one caller waits for one stream. */
const WAIT_BACKOFF: BackoffPolicy = { baseMs: 250, factor: 2, maxMs: 60_000, jitterFloor: 1 }

/** How the pages of a list are sent. */
interface PageStream {
  /** What is listed, for the metadata of errors. */
  readonly names: Readonly<Record<string, string>>
  /** Records and state as JSON text. */
  readonly isText: boolean
  readonly states: Pick<ListStates, 'seal'>
}

/**
 * Sends the pages of a list. A rate limit is reported and waited for, unless it lasts too long or beyond the deadline.
 *
 * @throws Failure UPSTREAM_ERROR, UPSTREAM_RATE_LIMITED, BUDGET_EXHAUSTED
 */
export async function* streamPages(
  clock: Pick<Clock, 'now' | 'sleep'>,
  pages: AsyncIterable<PageStep>,
  { names, isText, states }: PageStream,
  context: HandlerContext,
): AsyncGenerator<PageStepInit> {
  let waits = 0
  for await (const step of pages) {
    const isEnd = step.kind === 'upstream_error' || (step.kind === 'rate_limited' && !canWait(step, waits, context))
    if (isEnd) throw upstreamFailure(step, names, { clock, includeRaw: false })
    yield await stepToProto(step.state === null ? step : { ...step, state: states.seal(step.state) }, isText)
    waits = step.kind === 'rate_limited' ? waits + 1 : 0
    if (step.kind === 'rate_limited')
      await clock.sleep(hintedWaitMs(WAIT_BACKOFF, waits, step.retryAfterSeconds * 1_000, Math.random), context.signal)
  }
}

function canWait({ retryAfterSeconds }: PageDelayed, waits: number, context: HandlerContext): boolean {
  return (
    waits < WAITS_MAX &&
    retryAfterSeconds <= WAIT_SECONDS_MAX &&
    retryAfterSeconds * 1_000 < (context.timeoutMs() ?? Number.POSITIVE_INFINITY)
  )
}
