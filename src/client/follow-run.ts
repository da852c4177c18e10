import { type BackoffPolicy, backoffMs, type Clock } from '../base/index.ts'
import { ServerUnavailable } from './errors.ts'
import { type FollowedRun, isFinished, type RunsClient } from './runs.ts'

/** What following needs. */
export interface FollowDeps {
  readonly runs: Pick<RunsClient, 'watch'>
  readonly clock: Clock
  readonly random: () => number
}

/** What happened to a run that is followed, or to the following of it. */
export type RunEvent =
  | { readonly kind: 'run'; readonly run: FollowedRun }
  | { readonly kind: 'away'; readonly message: string }

/** Soon again, since a restart takes a second or two, and never a burden to a server that comes up. */
const RECONNECT_POLICY: BackoffPolicy = { baseMs: 250, factor: 2, maxMs: 5_000, jitterFloor: 0.5 }
/** A server that is away for longer is given up. */
const UNAVAILABLE_MAX_MS = 120_000
/** The server gives a sign of life every 15 s: a connection this silent is dead, whatever the network says. */
const SILENCE_MAX_MS = 40_000

/**
 * Follows a run until it is over, across restarts of the server: whoever answers at the address goes on.
 *
 * @param signal ends it without a failure
 * @throws ServerUnavailable when the server is not there, at first or for two minutes; Failure with the server's reason
 */
export async function* followRun(deps: FollowDeps, id: string, signal: AbortSignal): AsyncGenerator<RunEvent> {
  const { clock, random } = deps
  let [heardAtMs, failures] = [Number.NEGATIVE_INFINITY, 0]
  while (!signal.aborted) {
    try {
      for await (const run of watchConnection(deps, id, signal)) {
        heardAtMs = clock.monotonicMs()
        failures = 0
        if (run === undefined) continue
        yield { kind: 'run', run }
        if (isFinished(run)) return
      }
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof ServerUnavailable) || clock.monotonicMs() - heardAtMs > UNAVAILABLE_MAX_MS) throw error
      failures += 1
      yield { kind: 'away', message: error.message }
      await clock.sleep(Math.max(error.afterMs, backoffMs(RECONNECT_POLICY, failures, random)), signal)
    }
  }
}

/** One connection's worth of the run. @throws ServerUnavailable too when it falls silent, or ends before the run does */
async function* watchConnection(
  { runs, clock }: FollowDeps,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<FollowedRun | undefined> {
  const connection = new AbortController()
  const messages = runs.watch(id, AbortSignal.any([signal, connection.signal]))[Symbol.asyncIterator]()
  try {
    for (;;) {
      const heard = new AbortController()
      const silence = clock
        .sleep(SILENCE_MAX_MS, AbortSignal.any([signal, connection.signal, heard.signal]))
        .then(() => 'silence' as const)
      const next = await Promise.race([messages.next(), silence])
      heard.abort()
      if (signal.aborted) return
      if (next === 'silence') throw new ServerUnavailable('the server has fallen silent', 0, undefined)
      if (next.done) throw new ServerUnavailable('the server ended the connection', 0, undefined)
      yield next.value
    }
  } finally {
    connection.abort()
  }
}
