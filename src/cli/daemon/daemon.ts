import type { Clock } from '../../foundation/base/index.ts'
import type { Logger } from '../../foundation/telemetry/index.ts'
import { executeRun } from '../../sync/jobs/index.ts'
import { type ExecuteRun, RunExecutor } from '../../sync/runs/index.ts'
import type { DaemonRun } from './daemon-run.ts'
import type { ServiceClients } from './service.ts'
import { type RegistrationRequest, ServiceLeases, type ServiceLeasesDeps } from './service-leases.ts'
import { createServiceSource } from './service-source.ts'
import type { Store } from './store.ts'
import { createStoreSink } from './store-sink.ts'

/** What a daemon is composed of. */
export interface DaemonDeps extends Pick<ServiceLeasesDeps, 'onFirstRegistration'> {
  readonly service: ServiceClients
  readonly store: Store
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  readonly logger: Logger
}

/** How a daemon registers, and how much it takes. */
export interface DaemonOptions extends RegistrationRequest {
  /** Runs executed at once at most. */
  readonly capacity: number
}

/**
 * Composes a daemon: the run executor with leases of the service, pages read through the service, and records written to a
 * store. Its `ended` rejects when the service rejects the token, or when there is no such service at the address.
 */
export function createDaemon(deps: DaemonDeps, { capacity, ...registration }: DaemonOptions): RunExecutor<DaemonRun> {
  const leases = new ServiceLeases(deps, registration, deps.store.saveIntervalMs)
  return new RunExecutor({
    ...deps,
    leases,
    concurrency: capacity,
    onError: leases.onLoopError,
    executeRun: executeDaemonRun(deps),
  })
}

function executeDaemonRun(deps: DaemonDeps): ExecuteRun<DaemonRun> {
  const { clock, random, logger, store } = deps
  return async (run, progress, lease) => {
    const { id, attempt, attemptsMax, context, environmentVariables } = run
    logger.info({ run_id: id, attempt }, 'a run begins')
    const source = createServiceSource(deps, run)
    await using sink = createStoreSink(store, run, lease)
    const account = { context, environmentVariables }
    const warn: Logger['warn'] = (fields, message) => logger.warn({ run_id: id, ...fields }, message)
    return await executeRun({ source, sink, clock, random, account, attemptsMax, warn }, run, progress, lease.signal)
  }
}
