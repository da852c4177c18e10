import { createLogger } from '../../foundation/telemetry/index.ts'
import { readConfig } from '../../server/config/index.ts'
import { openStorage } from '../../server/open.ts'
import type { RunCommand } from './command.ts'
import { printLine } from './output.ts'

/** Applies missing migrations. Every other command that opens the database does so too. */
export const runMigrate: RunCommand = async ({ environment }) => {
  const config = readConfig(environment)
  const options = { applicationName: 'patchbay migrate', isStart: false, logger: createLogger(config.logLevel) }
  await using storage = await openStorage(config, options)
  const where = storage.embedded === undefined ? 'DATABASE_URL' : storage.embedded.dataDir
  printLine(`schema is up to date in ${where}`)
  return 0
}
