import { createWorkerProcess } from '../app.ts'
import { readConfig } from '../config.ts'
import { openInstallation } from '../installation.ts'
import { createOperating } from '../operating.ts'
import { createLogger } from '../telemetry/index.ts'
import type { Command } from './command.ts'
import { stopSignal } from './stop-signal.ts'
import { UsageError } from './usage-error.ts'

/** Ticks, webhook runs and upkeep; any number of workers share one database. */
export const workerCommand: Command = {
  name: 'worker',
  usage: 'worker [--region wnam,eu]',
  summary: 'fire ticks and execute runs',
  async run(args, environment) {
    const config = readConfig({ ...environment, ...regionFrom(args) })
    const logger = createLogger(config.logLevel)
    await using installation = await openInstallation(config, {
      applicationName: 'patchbay worker',
      ownsEmbedded: false,
    })
    await using operating = createOperating(config, installation)
    await using worker = createWorkerProcess({ config, installation, logger, operating })
    const metrics = await operating.start()
    worker.start()
    process.stdout.write(`Patchbay worker runs for ${config.region?.join(', ') ?? 'all regions'}\n`)
    if (metrics !== undefined) process.stdout.write(`Metrics are on ${metrics.url}/metrics\n`)
    await stopSignal()
    await worker.drain()
    return 0
  },
}

function regionFrom(args: readonly string[]): NodeJS.ProcessEnv {
  const [flag, value] = args
  if (flag === undefined) return {}
  if (flag !== '--region' || value === undefined || args.length > 2)
    throw new UsageError('worker takes --region NAME[,NAME…]')
  return { PATCHBAY_REGION: value }
}
