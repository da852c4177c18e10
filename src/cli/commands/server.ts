import { join } from 'node:path'
import { systemClock } from '../../foundation/base/index.ts'
import { retireOrphanedDatabases } from '../../foundation/database/index.ts'
import { createLogger, LogSink } from '../../foundation/telemetry/index.ts'
import type { FirstStart } from '../../platform/tenancy/index.ts'
import { BoundPort } from '../../server/api/index.ts'
import { createApi } from '../../server/api-server.ts'
import {
  type Config,
  ConfigError,
  publicAddressWarnings,
  readConfig,
  readTlsKeys,
  watchTlsKeys,
} from '../../server/config/index.ts'
import { createContainer } from '../../server/container.ts'
import { createObservability } from '../../server/observability.ts'
import { openStorage, type Storage } from '../../server/open.ts'
import { createWorkerProcess } from '../../server/worker-process.ts'
import type { RunCommand } from './command.ts'
import { BOOTSTRAP_FILE, prepareFirstStart } from './first-start.ts'
import { printLines } from './output.ts'
import { listenForStop } from './stop-signal.ts'

/** API and worker in one process: what `npm start` runs. */
export const runStart: RunCommand = ({ environment }) => runServer('start', readConfig(environment))

/** The API alone; workers run elsewhere on the same database. */
export const runServe: RunCommand = ({ environment }) => runServer('serve', readConfig(environment))

/** Ticks, webhook runs and maintenance; any number of workers share one database. */
export const runWorker: RunCommand = ({ environment, options: { region } }) =>
  runServer('worker', readConfig({ ...environment, ...(region === undefined ? {} : { PATCHBAY_REGION: region }) }))

/**
 * Runs the API, the worker or both until a signal stops it, also during the start.
 *
 * Ports are bound and files read before the database is opened: a start that cannot succeed changes nothing.
 */
async function runServer(command: 'start' | 'serve' | 'worker', config: Config): Promise<number> {
  const logSink = new LogSink()
  const logger = createLogger(config.logLevel, logSink)
  let quitEmbedded = () => {}
  // Before anything is started: a supervisor may send SIGTERM at once.
  using stop = listenForStop({ limitMs: config.drainMs, onEarlyEnd: () => quitEmbedded() })
  const tls = readTlsKeys(config)
  await using apiPort = command === 'worker' ? undefined : await bindPort(config.host, config.port, 'PATCHBAY')
  await using metricsPort = await bindMetricsPort(config)
  const options = {
    applicationName: `patchbay ${command}`,
    isStart: command === 'start',
    keyUse: 'announce',
    logger,
    onEmbedded: (quit: () => void) => (quitEmbedded = quit),
  } as const
  await using storage = await openStorage(config, options)
  const created = command === 'worker' ? undefined : await prepareFirstStart(config, storage)
  await using observability = createObservability(config, storage, logSink)
  await using container = createContainer({ config, storage, logger })
  const composed = { config, container, logger, observability }
  await using api =
    apiPort === undefined ? undefined : createApi({ ...composed, tls, onWebhookReceived: () => worker?.wakeInbound() })
  using _keys = watchTlsKeys(config, { inUse: tls, logger, onChange: (keys) => api?.replaceTlsKeys(keys) })
  await using worker = command === 'serve' ? undefined : createWorkerProcess(composed)
  const metrics = await observability.start(metricsPort)
  const address = await api?.listen(apiPort)
  worker?.start()
  const url = address?.url
  const lines = await databaseLines(storage)
  printLines([
    url === undefined
      ? `Patchbay worker runs for ${config.region?.join(', ') ?? 'all regions'}`
      : `Patchbay ${command === 'serve' ? 'API ' : ''}listens on ${url}`,
    ...lines,
    ...(url === undefined ? [] : publicAddressWarnings(config, url)),
    ...(metrics === undefined ? [] : [`Metrics are on ${metrics.url}/metrics`]),
    ...(created === undefined || url === undefined
      ? []
      : firstStartLines(url, created, join(config.dataDir, BOOTSTRAP_FILE))),
  ])
  await stop.requested
  observability.startDrain()
  await Promise.all([api?.drain(stop.drainMs), worker?.drain(stop.drainMs)])
  return 0
}

/** Binds the port of the metrics server; `undefined` without one. @throws ConfigError */
async function bindMetricsPort({ metricsHost, metricsPort }: Config): Promise<BoundPort | undefined> {
  return metricsPort === undefined ? undefined : await bindPort(metricsHost, metricsPort, 'PATCHBAY_METRICS')
}

/** @throws ConfigError naming `<settings>_HOST` or `<settings>_PORT` */
async function bindPort(host: string, port: number, settings: 'PATCHBAY' | 'PATCHBAY_METRICS'): Promise<BoundPort> {
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

async function databaseLines({ embedded }: Storage): Promise<string[]> {
  if (embedded === undefined) return []
  const moved = `The database is in ${embedded.dataDir}: its user cannot access the data directory.`
  return [...(embedded.movedFrom === undefined ? [] : [moved]), ...(await orphanLines())]
}

async function orphanLines(): Promise<readonly string[]> {
  const retired = await retireOrphanedDatabases(systemClock.now())
  return retired.map(({ root, dataDir, isRemoved, expiresAt }) => {
    const past = `it belonged to ${dataDir}, which is gone or has begun anew`
    if (isRemoved) return `${root} was removed: ${past}, for a month.`
    const day = expiresAt.toISOString().slice(0, 10)
    return `No data directory uses ${root}: ${past}. A start removes it from ${day} on. If you do not need it, rm -r ${root}`
  })
}

/** The first ids and tokens. Tokens are printed to a terminal only: any other output may be kept as a log. */
function firstStartLines(url: string, created: FirstStart, file: string): string[] {
  const isTerminal = process.stdout.isTTY
  const tokens = [`  team token         ${created.teamToken}`, `  environment token  ${created.environmentToken}`]
  const bearer = isTerminal
    ? `-H 'authorization: Bearer ${created.environmentToken}'`
    : '-H "authorization: Bearer $TOKEN"'
  return [
    '',
    `  team         ${created.teamId}`,
    `  environment  ${created.environmentId}`,
    ...(isTerminal ? tokens : []),
    '',
    isTerminal
      ? `The tokens are not shown again; they are in ${file}. Three commands to try:`
      : `The tokens for both are in ${file}. Three commands to try:`,
    '',
    ...(isTerminal ? [] : [`  TOKEN=$(node -p 'require("${file}").environment_token')`]),
    `  curl ${bearer} ${url}/integration`,
    `  curl ${bearer} --json '{"cron_expression": "*/5 * * * *"}' ${url}/sync-job-cron-trigger/preview`,
    `  npx buf curl --http2-prior-knowledge --reflect ${bearer} ${url}/patchbay.v1.IntegratedAccountService/ListIntegratedAccounts`,
    '',
  ]
}
