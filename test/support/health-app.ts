import { afterAll } from 'vitest'
import { type Clock, systemClock } from '../../src/foundation/base/index.ts'
import { Database, DatabaseHealthCheck, type DatabaseTarget } from '../../src/foundation/database/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../src/foundation/secrets/index.ts'
import type { Logger } from '../../src/foundation/telemetry/index.ts'
import { silentLogger } from '../../src/foundation/telemetry/logger.ts'
import { createApi } from '../../src/server/api-server.ts'
import { readConfig } from '../../src/server/config/index.ts'
import { createContainer } from '../../src/server/container.ts'
import { createObservability } from '../../src/server/observability.ts'

/** An API with the health check and the metrics of a process. */
export interface HealthApp {
  readonly url: string
  readonly metricsUrl: string
  readonly database: Database
  readonly watch: DatabaseHealthCheck
  /** Lines of level warn and error. */
  readonly log: readonly (readonly [fields: Readonly<Record<string, unknown>>, message: string])[]
  /** Moves the monotonic clock of the health check, which else stands still: it checks when the test says so. */
  elapse(ms: number): void
  /** Sets by how much the clock of the process is wrong, ms. */
  setClockOffset(ms: number): void
  /** GET /healthz. */
  healthz(): Promise<{ readonly status: string; readonly reason?: string; readonly message?: string }>
  /** Value of the metric with these labels, as Prometheus reads it. */
  metric(line: string): Promise<number>
}

const CONFIG = {
  PATCHBAY_PORT: '0',
  PATCHBAY_METRICS_PORT: '0',
  PATCHBAY_RATE_LIMIT: '0',
  PATCHBAY_RATE_LIMIT_ADDRESS: '0',
}

/** Starts it for one test file, over a database that has its first team. */
export async function startHealthApp(target: DatabaseTarget): Promise<HealthApp> {
  const config = readConfig(CONFIG)
  let elapsedMs = 0
  let offsetMs = 0
  const clock: Clock = {
    now: () => new Date(Date.now() + offsetMs),
    monotonicMs: () => elapsedMs,
    sleep: (_, signal) => systemClock.sleep(2 ** 30, signal),
  }
  const log: [Readonly<Record<string, unknown>>, string][] = []
  const keep: Logger['warn'] = (fields, message) => {
    if (message !== 'call failed') log.push([fields, message])
  }
  const logger = { ...silentLogger, warn: keep, error: keep }
  const watch = new DatabaseHealthCheck({ connection: { target }, clock, random: Math.random, logger })
  const database = new Database({ target })
  watch.attach(database)
  const secrets = createSecretStore(parseKeyRing(generateKeyRingText('test')))
  const storage = {
    database,
    secrets,
    embedded: undefined,
    databaseWatch: watch,
    [Symbol.asyncDispose]: async () => {},
  }
  const observability = createObservability(config, storage)
  const container = createContainer({ config, storage, logger })
  const api = createApi({ config, container, logger, observability })
  const [{ url }, metrics] = await Promise.all([api.listen(), observability.start()])
  afterAll(async () => {
    await api[Symbol.asyncDispose]()
    await container[Symbol.asyncDispose]()
    await observability[Symbol.asyncDispose]()
    await watch[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })
  const metricsUrl = metrics?.url ?? ''
  return {
    url,
    metricsUrl,
    database,
    watch,
    log,
    elapse: (ms) => {
      elapsedMs += ms
    },
    setClockOffset: (ms) => {
      offsetMs = ms
    },
    healthz: async () => (await (await fetch(`${url}/healthz`)).json()) as { status: string },
    async metric(line) {
      const text = await (await fetch(`${metricsUrl}/metrics`)).text()
      return Number(
        text
          .split('\n')
          .find((each) => each.startsWith(`${line} `))
          ?.slice(line.length) ?? 0,
      )
    },
  }
}
