import { join } from 'node:path'
import { type Config, readConfig } from '../config.ts'
import { createApi, createWorkerProcess, readTlsKeys } from '../container.ts'
import { bindMetricsPort, bindPort, createObservability } from '../observability.ts'
import { openStorage, type Storage } from '../storage.ts'
import { createLogger } from '../telemetry/index.ts'
import type { FirstStart } from '../tenancy/index.ts'
import type { RunCommand } from './command.ts'
import { BOOTSTRAP_FILE, prepareFirstStart } from './first-start.ts'
import { waitForStopSignal } from './stop-signal.ts'

/** Everything in one process: what `npm start` runs. */
export const runStart: RunCommand = ({ environment }) => runServer('start', readConfig(environment))

/** The API alone; workers run elsewhere on the same database. */
export const runServe: RunCommand = ({ environment }) => runServer('serve', readConfig(environment))

/** Ticks, webhook runs and upkeep; any number of workers share one database. */
export const runWorker: RunCommand = ({ environment, options: { region } }) =>
  runServer('worker', readConfig({ ...environment, ...(region === undefined ? {} : { PATCHBAY_REGION: region }) }))

/**
 * Runs the API, the worker or both until SIGTERM.
 *
 * Ports and files are taken before the database is touched: a start that cannot succeed changes nothing.
 */
async function runServer(command: 'start' | 'serve' | 'worker', config: Config): Promise<number> {
  const logger = createLogger(config.logLevel)
  const tls = readTlsKeys(config)
  await using apiPort = command === 'worker' ? undefined : await bindPort(config.host, config.port, 'PATCHBAY')
  await using metricsPort = await bindMetricsPort(config)
  const options = { applicationName: `patchbay ${command}`, isStart: command === 'start', logger }
  await using storage = await openStorage(config, options)
  const made = command === 'worker' ? undefined : await prepareFirstStart(config, storage)
  await using operating = createObservability(config, storage)
  const composed = { config, storage, logger, operating }
  await using api = apiPort === undefined ? undefined : createApi({ ...composed, tls })
  await using worker = command === 'serve' ? undefined : createWorkerProcess(composed)
  const metrics = await operating.start(metricsPort)
  const address = await api?.listen(apiPort)
  worker?.start()
  // Listened for before the ready line is written: a supervisor that reads it may send SIGTERM at once.
  const stopped = waitForStopSignal()
  const url = address?.url
  process.stdout.write(
    [
      url === undefined
        ? `Patchbay worker runs for ${config.region?.join(', ') ?? 'all regions'}`
        : `Patchbay ${command === 'serve' ? 'API ' : ''}listens on ${url}`,
      ...databaseLines(storage),
      ...(metrics === undefined ? [] : [`Metrics are on ${metrics.url}/metrics`]),
      ...(made === undefined || url === undefined
        ? []
        : firstStartLines(url, made, join(config.dataDir, BOOTSTRAP_FILE))),
      '',
    ].join('\n'),
  )
  await stopped
  await Promise.all([api?.drain(), worker?.drain()])
  return 0
}

function databaseLines({ embedded }: Storage): string[] {
  if (embedded?.movedFrom === undefined) return []
  return [`The database lives in ${embedded.dataDir}: its own uid cannot reach the data directory.`]
}

/** The first ids, and where the tokens are. Tokens are shown to a person only: what else reads the output keeps it, as a log. */
function firstStartLines(url: string, made: FirstStart, file: string): string[] {
  const isPerson = process.stdout.isTTY
  const tokens = [`  team token         ${made.teamToken}`, `  environment token  ${made.environmentToken}`]
  const bearer = isPerson ? `-H 'authorization: Bearer ${made.environmentToken}'` : '-H "authorization: Bearer $TOKEN"'
  return [
    '',
    `  team         ${made.teamId}`,
    `  environment  ${made.environmentId}`,
    ...(isPerson ? tokens : []),
    '',
    isPerson
      ? `The tokens are shown once; ${file} keeps them. Three commands to try:`
      : `The tokens of both are in ${file}. Three commands to try:`,
    '',
    ...(isPerson ? [] : [`  TOKEN=$(node -p 'require("${file}").environment_token')`]),
    `  curl ${bearer} ${url}/integration`,
    `  curl ${bearer} --json '{"cron_expression": "*/5 * * * *"}' ${url}/sync-job-cron-trigger/preview`,
    `  npx buf curl --http2-prior-knowledge --reflect ${bearer} ${url}/patchbay.v1.IntegratedAccountService/ListIntegratedAccounts`,
    '',
  ]
}
