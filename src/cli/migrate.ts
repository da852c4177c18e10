import { readConfig } from '../config.ts'
import { openStorage } from '../storage.ts'
import { createLogger } from '../telemetry/index.ts'
import type { RunCommand } from './command.ts'

/** Applies missing migrations. Every other command that opens the database does so too. */
export const runMigrate: RunCommand = async ({ environment }) => {
  const config = readConfig(environment)
  const options = { applicationName: 'patchbay migrate', isStart: false, logger: createLogger(config.logLevel) }
  await using storage = await openStorage(config, options)
  const where = storage.embedded === undefined ? 'DATABASE_URL' : storage.embedded.dataDir
  process.stdout.write(`schema is up to date in ${where}\n`)
  return 0
}
