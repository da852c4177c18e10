import type { CallOptions } from '@connectrpc/connect'
import { backoffMs, type Clock, Failure } from '../base/index.ts'
import { ServerAway } from '../client/index.ts'
import { isLeaseLost } from '../queue/index.ts'
import type { HeldRun } from './held-run.ts'
import { CALL_TIMEOUT_MS, RETRY_SERVICE } from './patience.ts'
import { isRefusedFor, ownRefusalFrom } from './refusal.ts'

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
export async function whileHeld<Answer>(
  { clock, random }: WaitDeps,
  held: HeldRun,
  call: (request: { readonly runId: string; readonly leaseId: string }, options: CallOptions) => Promise<Answer>,
): Promise<Answer> {
  const { id: runId, leaseId } = held.run
  for (let failures = 1; ; failures++) {
    held.require()
    try {
      return await call({ runId, leaseId }, { timeoutMs: CALL_TIMEOUT_MS })
    } catch (error) {
      const refusal = ownRefusalFrom(error)
      if (isLeaseLost(refusal) || isRefusedFor(refusal, 'RESOURCE_NOT_FOUND')) {
        held.lose()
        throw new Failure('LEASE_LOST', 'the service has given the run to somebody else', { cause: error })
      }
      if (!(refusal instanceof ServerAway)) throw refusal
      await clock.sleep(Math.max(refusal.afterMs, backoffMs(RETRY_SERVICE, failures, random)), lossOf(held))
    }
  }
}

/** The signal, unless it was raised for a drain: the ending still has to be told. */
function lossOf(held: HeldRun): AbortSignal | undefined {
  return held.signal.aborted ? undefined : held.signal
}
