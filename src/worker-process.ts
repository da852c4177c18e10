import { hostname } from 'node:os'
import { createAccountWork, loadAccountForCall } from './accounts/index.ts'
import type { JsonObject } from './base/index.ts'
import type { Config } from './config.ts'
import { logoCleaner } from './connect-page/index.ts'
import { catchUpOf, createContainer, type ProcessDeps } from './container.ts'
import { pruneDaemons } from './daemon-service/index.ts'
import { logLoopErrors } from './database/index.ts'
import { ATTEMPT_DAYS, DELIVERY_DAYS, DELIVERY_TASKS, DeliveryWorker } from './deliveries/index.ts'
import { EVENT_DAYS } from './events/index.ts'
import {
  createInboundWorker,
  INBOUND_CONTENT_DAYS,
  INBOUND_HISTORY_DAYS,
  INBOUND_REPLAY_TASK,
} from './inbound-webhooks/index.ts'
import {
  clientSecretWatch,
  continueIntegrationDeletion,
  deletionTask,
  installationDeletionTask,
} from './integrations/index.ts'
import { linkSessionCleaner } from './link-sessions/index.ts'
import { contextObjectCleaner, contextObjectUploader } from './object-store/index.ts'
import { unservedRegionMonitor } from './runs/index.ts'
import { findTriggersOfResource, startHintedRuns } from './schedules/index.ts'
import { executeWebhookRun } from './syncs/index.ts'
import { createTaskRunner, taskCleaner } from './tasks/index.ts'
import { continueEnvironmentDeletion, continueTeamDeletion } from './tenancy/index.ts'
import { TOOL_CALL_DAYS } from './tool-servers/index.ts'
import { silenceMonitor, subscriptionLoops } from './webhook-subscriptions/index.ts'
import { createWorker, type DayRetention } from './worker/index.ts'

/** The worker of one process. */
export interface WorkerProcess extends AsyncDisposable {
  start(): void
  /** Processes received webhooks now; a webhook that another process has received is found by polling. */
  wakeInbound(): void
  /** Stops within the drain time: runs end at their next page and are released for other workers. */
  drain(): Promise<void>
}

const FORGET_INTERVAL_MS = 10 * 60 * 1_000

/** Builds the worker: ticks, webhook runs, accounts, subscriptions, deliveries, inbound webhooks, tasks, maintenance. */
export function createWorkerProcess(deps: ProcessDeps): WorkerProcess {
  const { config, storage, logger, observability } = deps
  const { secrets, backgroundDatabase: database = storage.database } = storage
  const domain = createContainer({ ...deps, storage: { ...storage, database } })
  const { clock, queue } = domain
  const runDeps = {
    database,
    secrets,
    clock,
    http: domain.http,
    proxy: domain.proxy,
    unified: domain.unifiedCalls.unified,
    mappings: domain.unifiedMappings,
    random: Math.random,
    warn: (fields: JsonObject, message: string) => logger.warn(fields, message),
    loadAccount: (environmentId: string, accountId: string) =>
      loadAccountForCall(domain.accounts, environmentId, accountId, 'sync'),
  }
  const accountWork = createAccountWork({
    ...domain.accounts,
    proxy: domain.proxy,
    regions: config.region,
    historyDays: config.accountHistoryRetentionDays,
    onRemovalFailure: ({ integratedAccountId: integrated_account_id, of, cause, message: error }) =>
      logger.warn(
        { integrated_account_id, of, cause, error },
        'what a deleted account has at the third party was not ended',
      ),
  })
  const holder = `${hostname()}:${process.pid}`
  const worker = createWorker({
    database,
    queue,
    clock,
    logger,
    random: Math.random,
    executeRun: (run, progress, { signal }) => executeWebhookRun(runDeps, run, progress, signal),
    holder,
    concurrency: config.workerConcurrency,
    regions: config.region,
    catchUp: catchUpOf(config),
    retentionDays: config.runRetentionDays,
    dayRetentions: dayRetentionsOf(config),
    onTicks: observability?.metrics?.observeTicks,
    loops: [
      ...accountWork.loops,
      ...subscriptionLoops({
        ...domain.accounts,
        proxy: domain.subscriptionProxy,
        regions: config.region,
      }),
      domain.inboundActivity.loop,
      silenceMonitor(domain.accounts),
      clientSecretWatch(domain),
      contextObjectUploader(domain),
      contextObjectCleaner(domain),
      linkSessionCleaner(domain.links),
      createTaskRunner({ database, random: Math.random, logger }, [
        ...DELIVERY_TASKS,
        INBOUND_REPLAY_TASK,
        installationDeletionTask(domain.integrations),
        deletionTask('delete_integration', continueIntegrationDeletion.bind(undefined, domain.integrations)),
        deletionTask('delete_environment', continueEnvironmentDeletion.bind(undefined, domain)),
        deletionTask('delete_team', continueTeamDeletion.bind(undefined, domain)),
      ]),
      taskCleaner({ database }),
      logoCleaner(domain),
      unservedRegionMonitor(database, (work) =>
        logger.warn({ work }, 'accounts wait in regions that no worker serves: start one with --region'),
      ),
      { name: 'daemons', intervalMs: FORGET_INTERVAL_MS, runOnce: () => pruneDaemons(database) },
    ],
  })
  const deliveries = new DeliveryWorker({
    database,
    secrets,
    http: domain.http,
    clock,
    random: Math.random,
    logger,
    holder,
    concurrency: config.deliveryConcurrency,
    onError: logLoopErrors(logger),
  })
  const inbound = createInboundWorker({
    ...domain,
    random: Math.random,
    logger,
    holder,
    onError: logLoopErrors(logger),
    onStored: () => deliveries.wakeDispatch(),
    onProcessed: (account, receivedAt) => domain.inboundActivity.record(account, receivedAt),
    publicUrl: () => domain.publicAddress.url,
    syncs: {
      findTriggers: findTriggersOfResource,
      startRuns: (tx, hint) => startHintedRuns(domain.triggers, tx, hint),
    },
  })
  observability?.metrics?.readWorker(() => worker.stats)
  observability?.metrics?.readDeliveries(() => deliveries.stats)
  return {
    start() {
      worker.start()
      inbound.start()
      deliveries.start()
    },
    wakeInbound: () => inbound.wake(),
    async drain() {
      accountWork.stop()
      await Promise.all([
        worker.drain(config.drainMs),
        deliveries.drain(config.drainMs),
        inbound[Symbol.asyncDispose](),
      ])
    },
    async [Symbol.asyncDispose]() {
      accountWork.stop()
      await inbound[Symbol.asyncDispose]()
      await deliveries[Symbol.asyncDispose]()
      await worker[Symbol.asyncDispose]()
      await domain[Symbol.asyncDispose]()
    },
  }
}

/** History that is dropped by whole days; content before the rows that it belongs to. */
function dayRetentionsOf(config: Config): readonly DayRetention[] {
  return [
    { name: 'event', tables: [EVENT_DAYS], days: config.eventRetentionDays },
    { name: 'delivery-attempt', tables: [ATTEMPT_DAYS], days: config.deliveryAttemptRetentionDays },
    { name: 'delivery', tables: [DELIVERY_DAYS], days: config.deliveryRetentionDays },
    { name: 'inbound-content', tables: [INBOUND_CONTENT_DAYS], days: config.inboundContentRetentionDays },
    { name: 'inbound-event', tables: INBOUND_HISTORY_DAYS, days: config.inboundEventRetentionDays },
    { name: 'tool-call', tables: [TOOL_CALL_DAYS], days: config.toolCallRetentionDays },
  ]
}
