import { hostname } from 'node:os'
import { AccountActivator, loadAccountForCall, TokenRefresher } from './accounts/index.ts'
import type { PollLoopSpec } from './base/index.ts'
import { catchUpOf, createContainer, type ProcessDeps } from './container.ts'
import { pruneDaemons } from './daemons/index.ts'
import { linkSessionCleaner } from './links/index.ts'
import { contextObjectCleaner, contextObjectUploader } from './object-store/index.ts'
import { executeWebhookRun } from './syncs/index.ts'
import { createWorker } from './worker/index.ts'

/** The worker of one process. */
export interface WorkerProcess extends AsyncDisposable {
  start(): void
  /** Stops within the drain time: runs end at their next page and are released for other workers. */
  drain(): Promise<void>
}

/** How long a new account waits for its activation to begin while one of the loops is free. */
const CONNECT_INTERVAL_MS = 1_000
const CONNECTED_AT_ONCE = 4
/** Far below the refresh margin of all tokens but those that live for seconds. */
const REFRESH_INTERVAL_MS = 5_000
const FORGET_INTERVAL_MS = 10 * 60 * 1_000

/** Builds the worker: ticks, webhook runs, account activation, token refresh, maintenance. */
export function createWorkerProcess({ config, storage, logger, observability }: ProcessDeps): WorkerProcess {
  const { database, secrets } = storage
  const domain = createContainer({ config, storage, logger })
  const { clock, queue } = domain
  const runDeps = {
    database,
    secrets,
    clock,
    http: domain.http,
    proxy: domain.proxy,
    random: Math.random,
    loadAccount: (environmentId: string, accountId: string) =>
      loadAccountForCall(domain.accounts, environmentId, accountId, 'sync'),
  }
  const connector = new AccountActivator({ ...domain.accounts, proxy: domain.proxy, regions: config.region })
  const refresher = new TokenRefresher({ ...domain.accounts, regions: config.region })
  const worker = createWorker({
    database,
    queue,
    clock,
    logger,
    random: Math.random,
    executeRun: (run, progress, { signal }) => executeWebhookRun(runDeps, run, progress, signal),
    holder: `${hostname()}:${process.pid}`,
    concurrency: config.workerConcurrency,
    regions: config.region,
    catchUp: catchUpOf(config),
    retentionDays: config.runRetentionDays,
    eventRetentionDays: config.eventRetentionDays,
    onTicks: observability?.metrics?.observeTicks,
    loops: [
      ...connectLoops(connector),
      contextObjectUploader(domain),
      contextObjectCleaner(domain),
      { name: 'refresh-tokens', intervalMs: REFRESH_INTERVAL_MS, runOnce: () => refresher.runOnce() },
      linkSessionCleaner(domain.links),
      { name: 'daemons', intervalMs: FORGET_INTERVAL_MS, runOnce: () => pruneDaemons(database) },
    ],
  })
  observability?.metrics?.readWorker(() => worker.stats)
  return {
    start: () => worker.start(),
    drain() {
      connector.stop()
      return worker.drain(config.drainMs)
    },
    async [Symbol.asyncDispose]() {
      connector.stop()
      await worker[Symbol.asyncDispose]()
      await domain[Symbol.asyncDispose]()
    },
  }
}

/** Several loops, so that an upstream that does not answer blocks one of them. */
function connectLoops(connector: AccountActivator): PollLoopSpec[] {
  return Array.from({ length: CONNECTED_AT_ONCE }, (_, index) => ({
    name: `connect-accounts-${index + 1}`,
    intervalMs: CONNECT_INTERVAL_MS,
    runOnce: () => connector.runOnce(),
  }))
}
