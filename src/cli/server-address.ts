import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isUuid } from '../base/index.ts'
import type { ServerAddress } from '../client/index.ts'
import { readConfig } from '../config.ts'
import { BOOTSTRAP_FILE } from './first-start.ts'
import { UsageError } from './usage-error.ts'

/** The options of commands that call a server, for `parseArgs`. */
export const SERVER_OPTIONS = {
  url: { type: 'string' },
  token: { type: 'string' },
  environment: { type: 'string' },
} as const

/** Behind the usage of such a command. */
export const SERVER_USAGE = '[--url URL] [--token TOKEN] [--environment ID]'

/** What was given for `SERVER_OPTIONS`. */
export interface ServerValues {
  readonly url?: string | undefined
  readonly token?: string | undefined
  readonly environment?: string | undefined
}

/**
 * The server that a command calls: the one given, with `PATCHBAY_TOKEN` unless a token is given too; or the one that the
 * environment variables configure here, to which also the token of the first start is known.
 *
 * @throws UsageError
 */
export function readServerAddress(values: ServerValues, environment: NodeJS.ProcessEnv): ServerAddress {
  const { url, environment: environmentId } = values
  const given = values.token ?? environment.PATCHBAY_TOKEN
  const token = given !== undefined && given !== '' ? given : url === undefined ? firstToken(environment) : undefined
  if (token === undefined) throw new UsageError(`… --token TOKEN, or set PATCHBAY_TOKEN`)
  if (environmentId !== undefined && !isUuid(environmentId)) throw new UsageError('… --environment takes an id')
  const address = (url ?? localUrl(environment)).replace(/\/+$/, '')
  if (!/^https?:$/.test(URL.parse(address)?.protocol ?? '')) throw new UsageError('… --url takes an http or https URL')
  return { url: address, token, environmentId }
}

function localUrl(environment: NodeJS.ProcessEnv): string {
  const { publicUrl, tlsCert, host, port } = readConfig(environment)
  return publicUrl ?? `${tlsCert === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Never sent to a server named on the command line, which may be anybody's. */
function firstToken(environment: NodeJS.ProcessEnv): string | undefined {
  try {
    const made = JSON.parse(readFileSync(join(readConfig(environment).dataDir, BOOTSTRAP_FILE), 'utf8'))
    return typeof made.environment_token === 'string' ? made.environment_token : undefined
  } catch {
    return undefined
  }
}
