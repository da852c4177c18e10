import { createApi, createWorkerProcess } from '../app.ts'
import { readConfig } from '../config.ts'
import { openInstallation } from '../installation.ts'
import { createOperating } from '../operating.ts'
import { createLogger } from '../telemetry/index.ts'
import type { FirstStart } from '../tenancy/index.ts'
import type { Command } from './command.ts'
import { prepareFirstStart } from './first-start.ts'
import { stopSignal } from './stop-signal.ts'

/** Everything in one process on the embedded database (or DATABASE_URL): what `npm start` runs. */
export const startCommand: Command = {
  name: 'start',
  usage: 'start',
  summary: 'run API and worker in one process, on the embedded database',
  async run(_args, environment) {
    const config = readConfig(environment)
    const logger = createLogger(config.logLevel)
    await using installation = await openInstallation(config, { applicationName: 'patchbay start', ownsEmbedded: true })
    const made = await prepareFirstStart(config, installation)
    await using operating = createOperating(config, installation)
    await using api = createApi({ config, installation, logger, operating })
    await using worker = createWorkerProcess({ config, installation, logger, operating })
    const metrics = await operating.start()
    const { url } = await api.listen()
    worker.start()
    process.stdout.write(
      welcome(url, installation.embedded?.movedFrom === undefined ? undefined : installation.embedded.dataDir, made),
    )
    if (metrics !== undefined) process.stdout.write(`Metrics are on ${metrics.url}/metrics\n`)
    await stopSignal()
    await Promise.all([api.drain(), worker.drain()])
    return 0
  },
}

function welcome(url: string, movedTo: string | undefined, made: FirstStart | undefined): string {
  const moved =
    movedTo === undefined ? [] : [`The database lives in ${movedTo}: its own uid cannot reach the data directory.`]
  const first = made === undefined ? [] : firstStartLines(url, made)
  return [`Patchbay listens on ${url}`, ...moved, ...first, ''].join('\n')
}

function firstStartLines(url: string, made: FirstStart): string[] {
  const bearer = `-H 'authorization: Bearer ${made.environmentToken}'`
  return [
    '',
    `  team         ${made.teamId}`,
    `  environment  ${made.environmentId}`,
    `  team token         ${made.teamToken}`,
    `  environment token  ${made.environmentToken}`,
    '',
    'The tokens are shown once; bootstrap.json in the data directory keeps them. Three commands to try:',
    '',
    `  curl ${bearer} ${url}/integration`,
    `  curl ${bearer} --json '{"cron_expression": "*/5 * * * *"}' ${url}/sync-job-cron-trigger/preview`,
    `  npx buf curl --http2-prior-knowledge --reflect ${bearer} ${url}/patchbay.v1.IntegratedAccountService/ListIntegratedAccounts`,
    '',
  ]
}
