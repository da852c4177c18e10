import { readConfig } from '../config.ts'
import { openInstallation } from '../installation.ts'
import type { Command } from './command.ts'

/** Brings the schema up to this version; every other command does so too, this one does nothing else. */
export const migrateCommand: Command = {
  name: 'migrate',
  usage: 'migrate',
  summary: 'bring the database schema up to this version',
  async run(_args, environment) {
    await using installation = await openInstallation(readConfig(environment), {
      applicationName: 'patchbay migrate',
      ownsEmbedded: false,
    })
    const where = installation.embedded === undefined ? 'DATABASE_URL' : installation.embedded.dataDir
    process.stdout.write(`schema is up to date in ${where}\n`)
    return 0
  },
}
