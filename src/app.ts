import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { AccountActivator, loadAccountForCall, TokenRefresher } from './accounts/index.ts'
import {
  BoundPort,
  createApiServer,
  createServices,
  customRoute,
  documentRoute,
  findTlsProblem,
  Health,
  healthzRoutes,
  proxyRoute,
  SCHEDULER,
  type TlsKeys,
} from './api/index.ts'
import { systemClock } from './base/index.ts'
import { type Config, ConfigError } from './config.ts'
import { pruneDaemons } from './daemons/index.ts'
import { integrationConfigSchema } from './definition/index.ts'
import { catchUpOf, createContainer, type ProcessDeps } from './domain.ts'
import { SCHEDULER_PROBLEM } from './operating.ts'
import { mapDatabaseError } from './storage/index.ts'
import { executeWebhookRun } from './sync/index.ts'
import { describeError } from './telemetry/index.ts'
import { createAuthenticator } from './tenancy/index.ts'
import { createWorker, type PollLoopSpec } from './worker/index.ts'

/** The API of one process. */
export interface Api extends AsyncDisposable {
  /**
   * Resolves with the address clients use once connections are accepted.
   *
   * @param port the one that is bound already; absent: it is bound now
   */
  listen(port?: BoundPort): Promise<{ readonly url: string }>
  /** Stops gently within the configured time. */
  drain(): Promise<void>
}

/** The worker of one process. */
export interface WorkerProcess extends AsyncDisposable {
  start(): void
  /** Stops gently within the configured time: runs end at their next page and are handed over. */
  drain(): Promise<void>
}

/** How long a new account waits at most for its steps to begin, while one of so many is free. */
const CONNECT_INTERVAL_MS = 1_000
const CONNECTED_AT_ONCE = 4
/** Far below the margin before a token ends, of all but those that live for seconds. */
const REFRESH_INTERVAL_MS = 5_000
const FORGET_INTERVAL_MS = 10 * 60 * 1_000
const OPENAPI = new URL('../gen/openapi.json', import.meta.url)

/** Composes the API: every service of the contract and the documents that describe it. */
export function createApi({
  config,
  storage,
  logger,
  operating,
  tls,
}: ProcessDeps & { readonly tls?: TlsKeys | undefined }): Api {
  const { database } = storage
  const domain = createContainer({ config, storage, logger })
  const services = createServices(domain)
  const admission = createAuthenticator({
    database,
    clock: systemClock,
    onWriteError: (error) => logger.warn(describeError(error), 'the use of a token could not be noted'),
  })
  const health = new Health([...services.map(({ desc }) => desc.typeName), SCHEDULER])
  operating?.schedule.subscribe((isStalled) => health.set(SCHEDULER, isStalled ? SCHEDULER_PROBLEM : undefined))
  operating?.watchProblem((problem) => health.set('', problem))
  const server = createApiServer({
    services,
    admission,
    clock: systemClock,
    logger,
    health,
    limits: {
      requestBytesMax: config.requestBytesMax,
      rateRequestsMax: config.rateLimitRequests,
      rateAddressMax: config.rateLimitAddress,
      deadlineMaxMs: config.deadlineMaxMs,
      drainGraceMs: config.drainGraceMs,
      deadlineDefaultMs: Math.min(config.deadlineMaxMs, 30_000),
    },
    extraRoutes: [
      documentRoute('/openapi.json', JSON.parse(readFileSync(OPENAPI, 'utf8'))),
      documentRoute('/schemas/integration-config.json', integrationConfigSchema()),
      proxyRoute(domain.calls),
      customRoute(domain.calls),
      ...healthzRoutes(health),
    ],
    onClosing: () => domain.daemons.waits.close(),
    trustedProxies: config.trustedProxies,
    translateError: mapDatabaseError,
    observe: operating?.metrics?.observeCall,
    corsOrigins: config.corsOrigins,
    ...(tls === undefined ? {} : { tls }),
  })
  return {
    async listen(bound) {
      const { port } = await server.listenOn(bound ?? (await BoundPort.bind(config.host, config.port)))
      return { url: config.publicUrl ?? `${config.tlsCert === undefined ? 'http' : 'https'}://${config.host}:${port}` }
    },
    drain: () => server.drain(config.drainMs),
    async [Symbol.asyncDispose]() {
      domain.daemons.waits.close()
      await server[Symbol.asyncDispose]()
      await admission[Symbol.asyncDispose]()
      await domain[Symbol.asyncDispose]()
    },
  }
}

/** Composes the worker: ticks, runs to webhooks and the upkeep of both. */
export function createWorkerProcess({ config, storage, logger, operating }: ProcessDeps): WorkerProcess {
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
    executeRun: (run, progress, signal) => executeWebhookRun(runDeps, run, progress, signal),
    holder: `${hostname()}:${process.pid}`,
    concurrency: config.workerConcurrency,
    regions: config.region,
    catchUp: catchUpOf(config),
    retentionDays: config.runRetentionDays,
    onTicks: operating?.metrics?.observeTicks,
    loops: [
      ...connectLoops(connector),
      { name: 'refresh-tokens', intervalMs: REFRESH_INTERVAL_MS, runOnce: () => refresher.runOnce() },
      { name: 'daemons', intervalMs: FORGET_INTERVAL_MS, runOnce: () => pruneDaemons(database) },
    ],
  })
  operating?.metrics?.readWorker(() => worker.stats)
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

/** A third party that does not answer holds up one of them. */
function connectLoops(connector: AccountActivator): PollLoopSpec[] {
  return Array.from({ length: CONNECTED_AT_ONCE }, (_, index) => ({
    name: `connect-accounts-${index + 1}`,
    intervalMs: CONNECT_INTERVAL_MS,
    runOnce: () => connector.runOnce(),
  }))
}

/** The certificate and key that are configured. @throws ConfigError when they cannot be read or used */
export function readTlsKeys({ tlsCert, tlsKey }: Config): TlsKeys | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  const keys = { cert: readPem('PATCHBAY_TLS_CERT', tlsCert), key: readPem('PATCHBAY_TLS_KEY', tlsKey) }
  const problem = findTlsProblem(keys)
  if (problem === undefined) return keys
  throw new ConfigError(`PATCHBAY_TLS_CERT and PATCHBAY_TLS_KEY are no certificate and its key: ${problem}`)
}

function readPem(setting: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new ConfigError(`${setting} cannot be read: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}
