import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isUuid } from '../../foundation/base/index.ts'
import { PublicAddress, readConfig } from '../../server/config/index.ts'
import type { ServerAddress } from '../client/transport.ts'
import { type Invocation, UsageError } from './command.ts'
import { BOOTSTRAP_FILE } from './first-start.ts'

/**
 * Address and token of the server that a command calls: `--url` with `--token` or `PATCHBAY_TOKEN`; without `--url` the
 * server that the environment variables configure here, for which the token in `bootstrap.json` is used too.
 *
 * @param command name of the command, for messages
 * @throws UsageError
 */
export function readServerAddress(
  command: string,
  { url, token: givenToken, environment: environmentId }: Invocation['options'],
  environment: NodeJS.ProcessEnv,
): ServerAddress {
  const given = givenToken ?? environment.PATCHBAY_TOKEN
  const token =
    given !== undefined && given !== '' ? given : url === undefined ? bootstrapToken(environment) : undefined
  if (token === undefined) throw new UsageError(`${command} needs a token: set PATCHBAY_TOKEN`)
  if (environmentId !== undefined && !isUuid(environmentId))
    throw new UsageError(`${command} --environment takes an id`)
  const address = (url ?? new PublicAddress(readConfig(environment)).url).replace(/\/+$/, '')
  if (!/^https?:$/.test(URL.parse(address)?.protocol ?? ''))
    throw new UsageError(`${command} --url takes an http or https URL`)
  return { url: address, token, environmentId }
}

/** Token of the first start. Never sent to a server from the command line, which may belong to others. */
function bootstrapToken(environment: NodeJS.ProcessEnv): string | undefined {
  try {
    const made = JSON.parse(readFileSync(join(readConfig(environment).dataDir, BOOTSTRAP_FILE), 'utf8'))
    return typeof made.environment_token === 'string' ? made.environment_token : undefined
  } catch {
    return undefined
  }
}
