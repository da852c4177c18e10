import { AdminServer, BoundPort } from './api/index.ts'
import { systemClock } from './base/index.ts'
import { type Config, ConfigError } from './config.ts'
import { countQueueDepth } from './runs/index.ts'
import { SchedulerMonitor, STALLED_AFTER_SECONDS } from './schedules/index.ts'
import type { Storage } from './storage.ts'
import { Metrics } from './telemetry/index.ts'

/** What a process shows to whoever runs it, shared by the API and the worker in it. */
export interface Observability extends AsyncDisposable {
  readonly schedule: SchedulerMonitor
  /** Undefined unless a port is set for them: then nothing is counted. */
  readonly metrics: Metrics | undefined
  /** Why the process cannot work at the moment, told now and at every change; `undefined` when it can. */
  watchProblem(listener: (problem: string | undefined) => void): void
  /**
   * Begins to watch and to listen; resolves with the address, undefined without a port.
   *
   * @param port the one that is bound already; absent: it is bound now
   */
  start(port?: BoundPort): Promise<{ readonly url: string } | undefined>
}

const DATABASE_PROBLEM = 'the database is not reachable'
export const SCHEDULER_PROBLEM = `no tick fires: the oldest one has waited for more than ${STALLED_AFTER_SECONDS} s`

/** Takes the port of the metrics; `undefined` without one. @throws ConfigError */
export async function bindMetricsPort({ metricsHost, metricsPort }: Config): Promise<BoundPort | undefined> {
  return metricsPort === undefined ? undefined : await bindPort(metricsHost, metricsPort, 'PATCHBAY_METRICS')
}

/** Takes a port before anything else happens. @throws ConfigError naming `<settings>_HOST` or `<settings>_PORT` */
export async function bindPort(
  host: string,
  port: number,
  settings: 'PATCHBAY' | 'PATCHBAY_METRICS',
): Promise<BoundPort> {
  try {
    return await BoundPort.bind(host, port)
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    if (code === 'EADDRINUSE')
      throw new ConfigError(`${settings}_PORT ${port} on ${host} is in use: stop what listens there, or set another`, {
        cause,
      })
    if (code === 'EACCES') throw new ConfigError(`${settings}_PORT ${port} may not be used by this user`, { cause })
    throw new ConfigError(`${settings}_HOST ${host} cannot be listened on: ${code}`, { cause })
  }
}

/** Composes the metrics, the watch over the schedule, and the port where both are read. */
export function createObservability(
  config: Pick<Config, 'metricsHost' | 'metricsPort'>,
  { database, databaseWatch }: Pick<Storage, 'database' | 'databaseWatch'>,
): Observability {
  const { metricsHost, metricsPort } = config
  const schedule = new SchedulerMonitor({ database, clock: systemClock, random: Math.random })
  const metrics = metricsPort === undefined ? undefined : new Metrics()
  metrics?.readOldestDueAge(() => schedule.oldestDueAgeSeconds)
  metrics?.readQueue(() => countQueueDepth(database.pool))
  const findProblem = () => (databaseWatch?.isReachable === false ? DATABASE_PROBLEM : undefined)
  const findSchedulerProblem = () => findProblem() ?? (schedule.isStalled ? SCHEDULER_PROBLEM : undefined)
  const listener = metrics && new AdminServer({ metrics, findProblem, findSchedulerProblem })
  return {
    schedule,
    metrics,
    watchProblem: (listen) => databaseWatch?.onChange(() => listen(findProblem())),
    async start(port) {
      databaseWatch?.start()
      await schedule.poll()
      schedule.start()
      if (listener === undefined || metricsPort === undefined) return undefined
      const address = await listener.listen(port ?? (await BoundPort.bind(metricsHost, metricsPort)))
      return { url: `http://${metricsHost}:${address.port}` }
    },
    async [Symbol.asyncDispose]() {
      await listener?.[Symbol.asyncDispose]()
      await schedule[Symbol.asyncDispose]()
    },
  }
}
