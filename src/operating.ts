import { OperatingListener } from './api/index.ts'
import { systemClock } from './base/index.ts'
import type { Config } from './config.ts'
import type { Installation } from './installation.ts'
import { ScheduleWatch } from './schedule/index.ts'
import { countQueueDepth } from './storage/index.ts'
import { Metrics } from './telemetry/index.ts'

/** What a process shows to whoever runs it, shared by the API and the worker in it. */
export interface Operating extends AsyncDisposable {
  readonly schedule: ScheduleWatch
  /** Undefined unless a port is set for them: then nothing is counted. */
  readonly metrics: Metrics | undefined
  /** Begins to watch and to listen; resolves with the address, undefined without a port. */
  start(): Promise<{ readonly url: string } | undefined>
}

/** Composes the metrics, the watch over the schedule, and the port where both are read. */
export function createOperating(
  config: Pick<Config, 'metricsHost' | 'metricsPort'>,
  { database }: Pick<Installation, 'database'>,
): Operating {
  const { metricsHost, metricsPort } = config
  const schedule = new ScheduleWatch({ database, clock: systemClock })
  const metrics = metricsPort === undefined ? undefined : new Metrics()
  metrics?.readOldestDueAge(() => schedule.oldestDueAgeSeconds)
  metrics?.readQueue(() => countQueueDepth(database.direct, null))
  const listener = metrics && new OperatingListener({ metrics, isSchedulerServing: () => !schedule.isStalled })
  return {
    ...{ schedule, metrics },
    async start() {
      await schedule.lookOnce()
      schedule.start()
      if (listener === undefined || metricsPort === undefined) return undefined
      const { port } = await listener.listen(metricsHost, metricsPort)
      return { url: `http://${metricsHost}:${port}` }
    },
    async [Symbol.asyncDispose]() {
      await listener?.[Symbol.asyncDispose]()
      await schedule[Symbol.asyncDispose]()
    },
  }
}
