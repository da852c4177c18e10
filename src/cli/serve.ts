import { join } from 'node:path'
import { createApi } from '../app.ts'
import { readConfig } from '../config.ts'
import { openInstallation } from '../installation.ts'
import { createOperating } from '../operating.ts'
import { createLogger } from '../telemetry/index.ts'
import type { Command } from './command.ts'
import { BOOTSTRAP_FILE, prepareFirstStart } from './first-start.ts'
import { stopSignal } from './stop-signal.ts'

/** The API alone; workers run elsewhere on the same database. */
export const serveCommand: Command = {
  name: 'serve',
  usage: 'serve',
  summary: 'run the API',
  async run(_args, environment) {
    const config = readConfig(environment)
    const logger = createLogger(config.logLevel)
    await using installation = await openInstallation(config, {
      applicationName: 'patchbay serve',
      ownsEmbedded: false,
    })
    const made = await prepareFirstStart(config, installation)
    await using operating = createOperating(config, installation)
    await using api = createApi({ config, installation, logger, operating })
    const metrics = await operating.start()
    const { url } = await api.listen()
    process.stdout.write(`Patchbay API listens on ${url}\n`)
    if (made !== undefined)
      process.stdout.write(`The first team and its tokens are in ${join(config.dataDir, BOOTSTRAP_FILE)}\n`)
    if (metrics !== undefined) process.stdout.write(`Metrics are on ${metrics.url}/metrics\n`)
    await stopSignal()
    await api.drain()
    return 0
  },
}
