import { systemClock } from '../foundation/base/index.ts'
import { type HealthProblem, type LogSink, Metrics, MetricsServer } from '../foundation/telemetry/index.ts'
import { countAccounts } from '../platform/accounts/index.ts'
import { countRunBacklog, findUnservedWork } from '../sync/runs/index.ts'
import { SchedulerMonitor, STALLED_AFTER_SECONDS } from '../sync/schedules/index.ts'
import { countDeliveryBacklog } from '../webhooks/outbound/index.ts'
import { BoundPort } from './api/listener/bound-port.ts'
import type { Config } from './config/config.ts'
import type { Storage } from './open.ts'

/** What a process shows to its operator, shared by the API and the worker in it. */
export interface Observability extends AsyncDisposable {
  readonly schedulerMonitor: SchedulerMonitor
  /** Undefined without a port for them; nothing is counted then. */
  readonly metrics: Metrics | undefined
  /** Why the process should get no work at the moment: it drains, or the database does not answer. `undefined` when it is ready. */
  findReadinessProblem(): HealthProblem | undefined
  /** Makes the process not ready, for good. */
  startDrain(): void
  /** Calls the listener now and at every change: why the process is not healthy, `undefined` when it is. */
  onHealthChange(listener: (problem: HealthProblem | undefined) => void): void
  /**
   * Starts the health checks and the metrics server; resolves with its address, undefined without a port.
   *
   * @param port already bound; absent: it is bound now
   */
  start(port?: BoundPort): Promise<{ readonly url: string } | undefined>
}

const DRAINING: HealthProblem = { reason: 'SHUTTING_DOWN', message: 'the process is shutting down' }

export const SCHEDULER_PROBLEM: HealthProblem = {
  reason: 'SCHEDULER_STALLED',
  message: `no tick fires: the oldest one has waited for more than ${STALLED_AFTER_SECONDS} s`,
}

/** Builds the metrics, the monitor of the scheduler, and the server that shows both. */
export function createObservability(
  config: Pick<Config, 'metricsHost' | 'metricsPort'>,
  { database, databaseWatch }: Pick<Storage, 'database' | 'databaseWatch'>,
  logSink?: LogSink,
): Observability {
  const { metricsHost, metricsPort } = config
  const schedulerMonitor = new SchedulerMonitor({ database, clock: systemClock, random: Math.random })
  const metrics = metricsPort === undefined ? undefined : new Metrics()
  if (logSink !== undefined) metrics?.readLogSink(logSink)
  metrics?.readOldestDueAge(() => schedulerMonitor.oldestDueAgeSeconds)
  metrics?.readCounts('queueDepth', () => countRunBacklog(database.pool))
  metrics?.readCounts('deliveryBacklog', () => countDeliveryBacklog(database.pool))
  metrics?.readCounts('unservedWork', () => findUnservedWork(database.pool))
  metrics?.readCounts('accounts', () => countAccounts(database.pool))
  if (databaseWatch !== undefined) metrics?.readHealth(databaseWatch)
  let isDraining = false
  const findProblem = () => databaseWatch?.problem
  const findReadinessProblem = () => (isDraining ? DRAINING : databaseWatch?.readinessProblem)
  const findSchedulerProblem = () => findProblem() ?? (schedulerMonitor.isStalled ? SCHEDULER_PROBLEM : undefined)
  const server = metrics && new MetricsServer({ metrics, findProblem, findReadinessProblem, findSchedulerProblem })
  return {
    schedulerMonitor,
    metrics,
    findReadinessProblem,
    startDrain: () => {
      isDraining = true
    },
    onHealthChange: (listener) => databaseWatch?.onChange(listener),
    async start(port) {
      await databaseWatch?.start()
      await schedulerMonitor.poll()
      schedulerMonitor.start()
      if (server === undefined || metricsPort === undefined) return undefined
      const address = await server.listen(port ?? (await BoundPort.bind(metricsHost, metricsPort)))
      return { url: `http://${metricsHost}:${address.port}` }
    },
    async [Symbol.asyncDispose]() {
      await server?.[Symbol.asyncDispose]()
      await schedulerMonitor[Symbol.asyncDispose]()
    },
  }
}
