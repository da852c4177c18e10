import type { Clock } from '../base/index.ts'
import type { RunOutcome } from '../queue/index.ts'
import { isLeaseLost } from '../queue/index.ts'
import { executeRun } from '../sync/index.ts'
import { describeError, type Logger } from '../telemetry/index.ts'
import type { HeldDaemonRun } from './held-run.ts'
import { ProgressReporter } from './progress-report.ts'
import { settlementCallFor } from './run-ending.ts'
import type { ServiceClients } from './service.ts'
import { createServiceSource } from './service-source.ts'
import type { Store } from './store.ts'
import { createStoreSink } from './store-sink.ts'
import { retryWhileHeld } from './while-held.ts'

/** What executing runs needs. */
export interface DaemonExecutionDeps {
  readonly service: ServiceClients
  readonly store: Store
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  readonly logger: Logger
}

/** What became of a run in the hands of this daemon. */
export type DaemonRunResult = RunOutcome['kind'] | 'lost'

const UNEXPECTED_ERROR = { reason: 'INTERNAL', message: 'the execution failed unexpectedly in the daemon' }

/**
 * Executes a held run and tells the service how it ended. While the service is away it keeps asking, as long as the lease
 * may be held; after that the run is somebody else's and nothing more is said or written. Never rejects.
 */
export async function executeClaimedRun(deps: DaemonExecutionDeps, held: HeldDaemonRun): Promise<DaemonRunResult> {
  const { logger } = deps
  const run_id = held.run.id
  try {
    const outcome = await execute(deps, held)
    if (held.isLost) return 'lost'
    await settleRun(deps, held, outcome)
    return outcome.kind
  } catch (error) {
    if (!isLeaseLost(error)) logger.error({ run_id, ...describeError(error) }, 'a run could not be ended')
    return 'lost'
  }
}

/** @throws Failure LEASE_LOST */
async function execute(deps: DaemonExecutionDeps, held: HeldDaemonRun): Promise<RunOutcome> {
  const { clock, random, logger } = deps
  const { context, environmentVariables, attemptsMax, id } = held.run
  const source = createServiceSource(deps, held.run)
  await using sink = createStoreSink(deps, held)
  const report = new ProgressReporter(deps, held)
  const account = { context, environmentVariables }
  try {
    const runDeps = { source, sink, clock, random, account, attemptsMax }
    const outcome = await executeRun(runDeps, held.run, report, held.signal)
    if (!held.isLost) await report.flush()
    return outcome
  } catch (error) {
    if (isLeaseLost(error)) throw error
    logger.error({ run_id: id, ...describeError(error) }, 'the execution of a run failed unexpectedly')
    return { kind: 'retry', error: UNEXPECTED_ERROR }
  }
}

/** @throws Failure LEASE_LOST, and whatever else the service refuses */
async function settleRun(deps: DaemonExecutionDeps, held: HeldDaemonRun, outcome: RunOutcome): Promise<void> {
  const { daemons } = deps.service
  const ending = settlementCallFor(outcome)
  await retryWhileHeld(deps, held, async (request, options) => {
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
