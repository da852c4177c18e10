import { type BackoffPolicy, backoffMs, type Clock } from '../../foundation/base/index.ts'
import { ServerUnavailable } from './errors.ts'
import { type FollowedRun, isFinished, type RunsClient } from './runs.ts'

/** What following a run needs. */
export interface FollowDeps {
  readonly runs: Pick<RunsClient, 'watch'>
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
}

/** A change of a run that is followed, or the loss of the connection. */
export type RunEvent =
  | { readonly kind: 'run'; readonly run: FollowedRun }
  | { readonly kind: 'disconnected'; readonly message: string }

/** Backoff between connections: a restart takes a second or two, and a server that starts must not be flooded. */
const RECONNECT_POLICY: BackoffPolicy = { baseMs: 250, factor: 2, maxMs: 5_000, jitterFloor: 0.5 }
/** Time without any message after which following ends. */
const UNAVAILABLE_MAX_MS = 120_000
/** Idle timeout of the connection: the server sends a keep-alive every 15 s. */
const IDLE_TIMEOUT_MS = 40_000

/**
 * Follows a run until it is finished, and reconnects after a lost connection, as after a restart of the server.
 *
 * @param signal ends it without an error
 * @throws ServerUnavailable when the first connection fails, or none succeeds for two minutes; Failure with the server's reason
 */
export async function* followRun(deps: FollowDeps, id: string, signal: AbortSignal): AsyncGenerator<RunEvent> {
  const { clock, random } = deps
  let lastMessageMs = Number.NEGATIVE_INFINITY
  let failures = 0
  while (!signal.aborted) {
    try {
      for await (const run of watchConnection(deps, id, signal)) {
        lastMessageMs = clock.monotonicMs()
        failures = 0
        if (run === undefined) continue
        yield { kind: 'run', run }
        if (isFinished(run)) return
      }
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof ServerUnavailable) || clock.monotonicMs() - lastMessageMs > UNAVAILABLE_MAX_MS) throw error
      failures += 1
      yield { kind: 'disconnected', message: error.message }
      await clock.sleep(Math.max(error.afterMs, backoffMs(RECONNECT_POLICY, failures, random)), signal)
    }
  }
}

/** The run over one connection. @throws ServerUnavailable also when the connection is idle, or ends before the run does */
async function* watchConnection(
  { runs, clock }: FollowDeps,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<FollowedRun | undefined> {
  const connection = new AbortController()
  const messages = runs.watch(id, AbortSignal.any([signal, connection.signal]))[Symbol.asyncIterator]()
  try {
    for (;;) {
      const received = new AbortController()
      const idle = clock
        .sleep(IDLE_TIMEOUT_MS, AbortSignal.any([signal, connection.signal, received.signal]))
        .then(() => 'idle' as const)
      const next = await Promise.race([messages.next(), idle])
      received.abort()
      if (signal.aborted) return
      if (next === 'idle') throw new ServerUnavailable('the server sends nothing any more', 0, undefined)
      if (next.done) throw new ServerUnavailable('the server ended the connection', 0, undefined)
      yield next.value
    }
  } finally {
    connection.abort()
  }
}
