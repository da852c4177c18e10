import type { JsonObject as WireObject } from '@bufbuild/protobuf'
import type { CallOptions } from '@connectrpc/connect'
import { backoffMs, type Clock, Failure } from '../base/index.ts'
import type { RunOutcome, RunProgress } from '../queue/index.ts'
import { executeRun } from '../sync/index.ts'
import { describeError, type Logger } from '../telemetry/index.ts'
import { type HeldRun, isLeaseLost } from './held-run.ts'
import { CALL_TIMEOUT_MS, RETRY_SERVICE } from './patience.ts'
import { isRefusedFor, ownRefusalFrom, ServiceAway } from './refusal.ts'
import { endingOf } from './run-ending.ts'
import type { Service } from './service.ts'
import { createServiceSource } from './service-source.ts'
import type { Store } from './store.ts'
import { createStoreSink } from './store-sink.ts'

/** What executing runs needs. */
export interface RunKeeperDeps {
  readonly service: Service
  readonly store: Store
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  readonly logger: Logger
}

/** What became of a run in the hands of this daemon. */
export type Kept = RunOutcome['kind'] | 'lost'

const UNEXPECTED = { reason: 'INTERNAL', message: 'the execution failed unexpectedly in the daemon' }

/**
 * Executes a held run and tells the service how it ended. While the service is away it keeps asking, as long as the lease
 * may be held; after that the run is somebody else's and nothing more is said or written. Never rejects.
 */
export async function keepRun(deps: RunKeeperDeps, held: HeldRun): Promise<Kept> {
  const { logger } = deps
  const run_id = held.run.id
  try {
    const outcome = await execute(deps, held)
    if (held.isLost) return 'lost'
    await tellEnding(deps, held, outcome)
    return outcome.kind
  } catch (error) {
    if (!isLeaseLost(error)) logger.error({ run_id, ...describeError(error) }, 'a run could not be ended')
    return 'lost'
  }
}

/** @throws Failure LEASE_LOST */
async function execute(deps: RunKeeperDeps, held: HeldRun): Promise<RunOutcome> {
  const { clock, random, logger } = deps
  const { context, environmentVariables, attemptsMax, id } = held.run
  const source = createServiceSource(deps, held.run)
  await using sink = createStoreSink(deps, held)
  const account = { context, environmentVariables }
  try {
    return await executeRun(
      { source, sink, clock, random, account, attemptsMax },
      held.run,
      progressOf(deps, held),
      held.signal,
    )
  } catch (error) {
    if (isLeaseLost(error)) throw error
    logger.error({ run_id: id, ...describeError(error) }, 'the execution of a run failed unexpectedly')
    return { kind: 'retry', error: UNEXPECTED }
  }
}

function progressOf(deps: RunKeeperDeps, held: HeldRun): RunProgress {
  return {
    async save(checkpoint, stats) {
      // protobuf's JSON type is ours without `readonly`, and it changes nothing it reads.
      const progress = { checkpoint: checkpoint as WireObject, resourceStats: stats.map((each) => ({ ...each })) }
      const { stopRequested } = await whileHeld(deps, held, async (request, options) => {
        const askedMs = performance.now()
        const answer = await deps.service.daemons.reportProgress({ ...request, ...progress }, options)
        held.renew(askedMs)
        return answer
      })
      if (stopRequested) held.stop()
      return held.isStopping ? 'stop' : 'continue'
    },
  }
}

/** @throws Failure LEASE_LOST, and whatever else the service refuses */
async function tellEnding(deps: RunKeeperDeps, held: HeldRun, outcome: RunOutcome): Promise<void> {
  const { daemons } = deps.service
  const ending = endingOf(outcome)
  await whileHeld(deps, held, async (request, options) => {
    switch (ending.call) {
      case 'completeRun':
        return await daemons.completeRun({ ...request, ...ending.request }, options)
      case 'failRun':
        return await daemons.failRun({ ...request, ...ending.request }, options)
      case 'releaseRun':
        return await daemons.releaseRun({ ...request, ...ending.request }, options)
    }
  })
}

/**
 * Repeats a call that names the lease until the service is there to answer. That does no harm: of an ending whose answer
 * was lost, the second call is told LEASE_LOST.
 *
 * @throws Failure LEASE_LOST when the lease is over, or the run is gone
 */
async function whileHeld<Answer>(
  { clock, random }: RunKeeperDeps,
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
      if (!(refusal instanceof ServiceAway)) throw refusal
      await clock.sleep(Math.max(refusal.afterMs, backoffMs(RETRY_SERVICE, failures, random)), lossOf(held))
    }
  }
}

/** The signal, unless it was raised for a drain: the ending still has to be told. */
function lossOf(held: HeldRun): AbortSignal | undefined {
  return held.signal.aborted ? undefined : held.signal
}
