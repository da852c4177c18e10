import { hostname } from 'node:os'
import type { PollLoopSpec } from '../foundation/base/index.ts'
import { logLoopErrors } from '../foundation/database/index.ts'
import type { JsonObject } from '../foundation/json/index.ts'
import type { Lease } from '../foundation/queue/index.ts'
import { createTaskRunner, taskCleaner } from '../foundation/queue/index.ts'
import { dataKeyRotator } from '../foundation/secrets/index.ts'
import { type Logger, ThrottledLog } from '../foundation/telemetry/index.ts'
import {
  createAccountWork,
  loadAccountForCall,
  type RemovalFailure,
  reauthorizationTask,
} from '../platform/accounts/index.ts'
import { AUDIT_ENTRY_DAYS } from '../platform/audit/index.ts'
import { CALL_LOG_DAYS } from '../platform/call-log/index.ts'
import { CALL_HOUR_DAYS } from '../platform/figures/index.ts'
import {
  clientSecretWatch,
  continueIntegrationDeletion,
  deletionTask,
  installationDeletionTask,
} from '../platform/integrations/index.ts'
import { linkSessionCleaner } from '../platform/links/index.ts'
import { contextObjectCleaner, contextObjectUploader } from '../platform/objects/index.ts'
import { EVENT_DAYS } from '../platform/outbox/index.ts'
import { InboundActivity, silenceMonitor, subscriptionLoops } from '../platform/subscriptions/index.ts'
import { continueEnvironmentDeletion, continueTeamDeletion } from '../platform/tenancy/index.ts'
import { pruneDaemons } from '../sync/daemons/index.ts'
import { executeWebhookRun } from '../sync/jobs/index.ts'
import { type ExecuteRun, type QueuedRun, unservedRegionMonitor } from '../sync/runs/index.ts'
import { findTriggersOfResource, startHintedRuns } from '../sync/schedules/index.ts'
import { TOOL_CALL_DAYS } from '../tools/servers/index.ts'
import {
  createInboundWorker,
  INBOUND_CONTENT_DAYS,
  INBOUND_HISTORY_DAYS,
  INBOUND_REPLAY_TASK,
  type InboundWorkerDeps,
} from '../webhooks/inbound/index.ts'
import { ATTEMPT_DAYS, DELIVERY_DAYS, DELIVERY_TASKS, DeliveryWorker } from '../webhooks/outbound/index.ts'
import type { Config } from './config/config.ts'
import { catchUpOf, type Modules, type ProcessDeps } from './container.ts'
import { logoCleaner } from './page/maintenance.ts'
import { sealedValuesOf } from './sealed-values.ts'
import type { DayRetention } from './worker/maintenance.ts'
import { createWorker } from './worker/worker.ts'

/** The worker of one process. */
export interface WorkerProcess extends AsyncDisposable {
  start(): void
  /** Processes received webhooks now; a webhook that another process has received is found by polling. */
  wakeInbound(): void
  /** Stops within the time, ms, by default the drain time: runs end at their next page and are released for other workers. */
  drain(deadlineMs?: number): Promise<void>
}

const FORGET_INTERVAL_MS = 10 * 60 * 1_000
/** As the contract says. */
const CALL_HOUR_KEEP_DAYS = 7

/** Builds the worker: ticks, webhook runs, accounts, subscriptions, deliveries, inbound webhooks, tasks, maintenance. */
export function createWorkerProcess(deps: ProcessDeps): WorkerProcess {
  const { config, logger, observability } = deps
  const modules = deps.container.background
  const { database, accounts, triggers } = modules
  const { workerConcurrency, region: regions, runRetentionDays: retentionDays } = config
  const inboundActivity = new InboundActivity(database)
  const accountWork = createAccountWork({ ...accounts, ...accountWorkOf(modules, deps) })
  const { secrets, http, clock } = modules
  const common = {
    database,
    secrets,
    http,
    clock,
    random: Math.random,
    logger,
    holder: `${hostname()}:${process.pid}`,
    onError: logLoopErrors(logger),
  }
  const worker = createWorker({
    ...common,
    queue: modules.queue,
    executeRun: createRunExecution(modules, logger),
    concurrency: workerConcurrency,
    regions,
    catchUp: catchUpOf(config),
    retentionDays,
    dayRetentions: dayRetentionsOf(config),
    onTicks: observability?.metrics?.observeTicks,
    loops: [
      ...accountWork.loops,
      ...subscriptionLoops({ ...accounts, proxy: modules.subscriptionProxy, regions }),
      inboundActivity.loop,
      ...maintenanceLoops(modules, logger),
    ],
  })
  const deliveries = new DeliveryWorker({ ...common, concurrency: config.deliveryConcurrency })
  const inbound = createInboundWorker({
    ...modules,
    ...common,
    onStored: () => deliveries.wakeDispatch(),
    observe: observeInbound(deps),
    onProcessed: (account, receivedAt) => inboundActivity.record(account, receivedAt),
    syncs: {
      findTriggers: findTriggersOfResource,
      startRuns: (tx, hint) => startHintedRuns(triggers, tx, hint),
    },
  })
  modules.callLog.onDrop = observability?.metrics?.observeCallLogDrop
  modules.callLog.onRequest = observability?.metrics?.observeOutboundCall
  observability?.metrics?.readWorker(() => worker.stats)
  observability?.metrics?.readDeliveries(() => deliveries.stats)
  return {
    start() {
      worker.start()
      inbound.start()
      deliveries.start()
    },
    wakeInbound: () => inbound.wake(),
    async drain(deadlineMs = config.drainMs) {
      accountWork.stop()
      await Promise.all([worker.drain(deadlineMs), deliveries.drain(deadlineMs), inbound[Symbol.asyncDispose]()])
    },
    async [Symbol.asyncDispose]() {
      accountWork.stop()
      await inbound[Symbol.asyncDispose]()
      await deliveries[Symbol.asyncDispose]()
      await worker[Symbol.asyncDispose]()
    },
  }
}

/** Counts what becomes of received webhooks, and logs those that found no account. */
function observeInbound({ logger, observability }: ProcessDeps): InboundWorkerDeps['observe'] {
  const unrouted = new ThrottledLog(logger, 'a webhook found no account')
  return (state, { environmentId: environment_id, stored }, fields) => {
    observability?.metrics?.observeInboundEvent(state)
    const installation = stored?.event.environmentIntegrationId
    if (state !== 'unrouted' || installation === undefined) return
    unrouted.warn(installation, { environment_id, environment_integration_id: installation, ...fields })
  }
}

/** Executes runs that deliver to a webhook. */
function createRunExecution(modules: Modules, logger: Logger): ExecuteRun<Lease<QueuedRun>> {
  const { proxy, evaluator, clock, unifiedMappings: mappings, accounts } = modules
  const deps = {
    ...modules,
    mappings,
    unified: { proxy, evaluator, clock },
    random: Math.random,
    warn: (fields: JsonObject, message: string) => logger.warn(fields, message),
    loadAccount: (environmentId: string, accountId: string) =>
      loadAccountForCall(accounts, environmentId, accountId, 'sync'),
  }
  return (run, progress, { signal }) => executeWebhookRun(deps, run, progress, signal)
}

/** What work of accounts takes besides their dependencies. */
function accountWorkOf({ proxy }: Modules, { config, logger }: ProcessDeps) {
  return {
    proxy,
    regions: config.region,
    historyDays: config.accountHistoryRetentionDays,
    onRemovalFailure: ({ integratedAccountId: integrated_account_id, of, cause, message: error }: RemovalFailure) =>
      logger.warn(
        { integrated_account_id, of, cause, error },
        'what a deleted account has at the third party was not ended',
      ),
  }
}

/** What is watched, cleaned and continued, a batch at a time. */
function maintenanceLoops(modules: Modules, logger: Logger): readonly PollLoopSpec[] {
  const { database, integrations } = modules
  return [
    silenceMonitor(modules.accounts),
    clientSecretWatch(modules),
    contextObjectUploader(modules),
    contextObjectCleaner(modules),
    dataKeyRotator({ ...modules, sealedValues: sealedValuesOf(modules.secrets, modules.objects) }),
    linkSessionCleaner(modules.links),
    createTaskRunner({ database, random: Math.random, logger }, [
      ...DELIVERY_TASKS,
      INBOUND_REPLAY_TASK,
      installationDeletionTask(integrations),
      reauthorizationTask(modules.accounts),
      deletionTask('delete_integration', continueIntegrationDeletion.bind(undefined, integrations)),
      deletionTask('delete_environment', continueEnvironmentDeletion.bind(undefined, modules)),
      deletionTask('delete_team', continueTeamDeletion.bind(undefined, modules)),
    ]),
    taskCleaner({ database }),
    logoCleaner(modules),
    unservedRegionMonitor(database, (work) =>
      logger.warn({ work }, 'accounts wait in regions that no worker serves: start one with --region'),
    ),
    { name: 'daemons', intervalMs: FORGET_INTERVAL_MS, runOnce: () => pruneDaemons(database) },
  ]
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
    { name: 'audit', tables: [AUDIT_ENTRY_DAYS], days: config.auditRetentionDays },
    { name: 'call-log', tables: CALL_LOG_DAYS, days: config.callLogRetentionDays },
    { name: 'call-hours', tables: [CALL_HOUR_DAYS], days: CALL_HOUR_KEEP_DAYS },
  ]
}
