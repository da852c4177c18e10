import type { CallOptions } from '@connectrpc/connect'
import { backoffMs, type Clock, Failure } from '../base/index.ts'
import { ServerUnavailable } from '../client/index.ts'
import { isLeaseLost } from '../queue/index.ts'
import type { HeldDaemonRun } from './held-run.ts'
import { CALL_TIMEOUT_MS, SERVICE_RETRY_POLICY } from './patience.ts'
import { daemonCallErrorFrom, hasReason } from './refusal.ts'

/** What waiting for the service needs. */
export interface WaitDeps {
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
}

/**
 * Repeats a call that names the lease until the service is there to answer. That does no harm: of an ending whose answer
 * was lost, the second call is told LEASE_LOST.
 *
 * @throws Failure LEASE_LOST when the lease is over, or the run is gone
 */
export async function retryWhileHeld<Answer>(
  { clock, random }: WaitDeps,
  held: HeldDaemonRun,
  call: (request: { readonly runId: string; readonly leaseId: string }, options: CallOptions) => Promise<Answer>,
): Promise<Answer> {
  const { id: runId, leaseId } = held.run
  for (let failures = 1; ; failures++) {
    held.assertHeld()
    try {
      return await call({ runId, leaseId }, { timeoutMs: CALL_TIMEOUT_MS })
    } catch (error) {
      const refusal = daemonCallErrorFrom(error)
      if (isLeaseLost(refusal) || hasReason(refusal, 'RESOURCE_NOT_FOUND')) {
        held.markLost()
        throw new Failure('LEASE_LOST', 'the service has given the run to somebody else', { cause: error })
      }
      if (!(refusal instanceof ServerUnavailable)) throw refusal
      await clock.sleep(Math.max(refusal.afterMs, backoffMs(SERVICE_RETRY_POLICY, failures, random)), lossOf(held))
    }
  }
}

/** The signal, unless it was raised for a drain: the ending still has to be told. */
function lossOf(held: HeldDaemonRun): AbortSignal | undefined {
  return held.signal.aborted ? undefined : held.signal
}
