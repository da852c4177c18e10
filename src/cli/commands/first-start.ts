import { rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createDataDirectory } from '../../foundation/database/index.ts'
import { bootstrap, type FirstStart } from '../../platform/tenancy/index.ts'
import type { Config } from '../../server/config/index.ts'
import type { Storage } from '../../server/open.ts'

/** File in the data directory with the first ids and tokens, for scripts. */
export const BOOTSTRAP_FILE = 'bootstrap.json'

/**
 * Creates the first team, environment and tokens unless they exist, and writes them to `bootstrap.json`, readable by its
 * owner only.
 *
 * @returns what was created, to be shown once; `undefined` on every later start
 */
export async function prepareFirstStart(config: Config, { database }: Storage): Promise<FirstStart | undefined> {
  return await bootstrap(database, {
    teamToken: config.bootstrapToken,
    persist: (made) => writeBootstrapFile(join(config.dataDir, BOOTSTRAP_FILE), made),
  })
}

async function writeBootstrapFile(file: string, made: FirstStart): Promise<void> {
  const content = {
    team_id: made.teamId,
    environment_id: made.environmentId,
    team_token: made.teamToken,
    environment_token: made.environmentToken,
  }
  const beside = `${file}.${process.pid}`
  createDataDirectory(dirname(file))
  await writeFile(beside, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
  await rename(beside, file)
}
