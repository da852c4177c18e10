import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import { suggest } from '../base/text.ts'

/** Where the database is: a URL, or the embedded server's socket. */
export type DatabaseTarget =
  | { readonly kind: 'url'; readonly url: string }
  | {
      readonly kind: 'socket'
      readonly host: string
      readonly port: number
      readonly user: string
      readonly database: string
    }

/** The driver's configuration of a connection. */
export interface DriverConfig {
  readonly user?: string
  readonly password?: string
  readonly host?: string
  readonly port?: number
  readonly database?: string
  readonly application_name?: string
  readonly options?: string
  readonly sslnegotiation?: 'postgres' | 'direct'
  readonly enableChannelBinding?: boolean
  readonly ssl: false | ConnectionOptions
}

/** An address that cannot be used. The message completes the name of what holds the address, and never repeats a password. */
export class DatabaseUrlError extends Error {
  readonly code = 'ERR_INVALID_URL'
}

/**
 * Configures a connection. What the target does not say is the driver's default, and never taken from the
 * machine's `PG*` variables, which are meant for other programs: they are removed from this process, since the driver reads them
 * wherever a configuration is silent.
 *
 * @throws DatabaseUrlError
 */
export function driverConfig(target: DatabaseTarget): DriverConfig {
  for (const name of Object.keys(process.env)) if (/^PG[A-Z_]+$/.test(name)) delete process.env[name]
  if (target.kind === 'url') return parseDatabaseUrl(target.url)
  const { host, port, user, database } = target
  return { host, port, user, database, ssl: false }
}

/** Authority, path, query, fragment. */
const URL_PARTS = /^postgres(?:ql)?:\/\/([^/?#]*)(\/[^?#]*)?(?:\?([^#]*))?(#.*)?$/s
const HOST_AND_PORT = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d*))?$/
const ENCODE = 'write / ? # and % in its user and password as %2F, %3F, %23 and %25'

/**
 * Reads `postgres://user:password@host:port/database?sslmode=…`, where host and port may also be parameters, as for a socket's
 * directory.
 *
 * @throws DatabaseUrlError
 */
export function parseDatabaseUrl(url: string): DriverConfig {
  const [, authority, path = '', query = '', fragment] = URL_PARTS.exec(url) ?? []
  if (authority === undefined) throw new DatabaseUrlError('takes postgres://user@host/database')
  const parameters = new URLSearchParams(query)
  const isCut = !authority.includes('@') && [...parameters.keys()].some((name) => name.includes('@'))
  if (fragment !== undefined || path.includes('@') || isCut)
    throw new DatabaseUrlError(`has a character that ends its user, password or host too early: ${ENCODE}`)
  const at = authority.lastIndexOf('@')
  const [user = '', ...password] = authority.slice(0, Math.max(at, 0)).split(':')
  const { host, port } = hostAndPort(authority.slice(at + 1), parameters)
  assertKnownParameters(parameters)
  return {
    ...given('user', parameters.get('user') ?? decode(user)),
    ...given('password', parameters.get('password') ?? decode(password.join(':'))),
    ...given('host', host),
    ...(port === '' ? {} : { port: Number(port) }),
    ...given('database', decode(path.slice(1))),
    ...given('application_name', parameters.get('application_name') ?? ''),
    ...given('options', parameters.get('options') ?? ''),
    ...sslNegotiation(parameters),
    // Also `require` binds the login to the channel only where the server offers that.
    ...(/^(prefer|require)$/.test(parameters.get('channel_binding') ?? '') ? { enableChannelBinding: true } : {}),
    ssl: tlsOptions(parameters),
  }
}

const PARAMETERS = [
  'user',
  'password',
  'host',
  'port',
  'application_name',
  'options',
  'ssl',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'sslnegotiation',
  'channel_binding',
]
/** Of poolers and other programs, which say nothing about the connection. */
const IGNORED_PARAMETERS: ReadonlySet<string> = new Set(['pgbouncer', 'connect_timeout'])

/** What is not understood could be what protects the connection. */
function assertKnownParameters(parameters: URLSearchParams): void {
  const unknown = [...parameters.keys()].find((name) => !PARAMETERS.includes(name) && !IGNORED_PARAMETERS.has(name))
  if (unknown === undefined) return
  throw new DatabaseUrlError(
    `has an unknown parameter ${unknown}${suggest(unknown, PARAMETERS) || `: it takes ${PARAMETERS.join(', ')}`}`,
  )
}

function hostAndPort(text: string, parameters: URLSearchParams) {
  const [, name, digits = ''] = HOST_AND_PORT.exec(text) ?? []
  const host = parameters.get('host') ?? decode(name ?? '')
  const port = parameters.get('port') ?? digits
  if (text.includes(',') || host.includes(',') || port.includes(','))
    throw new DatabaseUrlError(
      'names several hosts, and one is supported: name that of the primary, or a proxy before them',
    )
  if (name === undefined || !/^\d*$/.test(port) || Number(port) > 65_535)
    throw new DatabaseUrlError(`has no host:port where one is expected: ${ENCODE}`)
  // Within a URL an IPv6 address has brackets, for the driver it has none.
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port }
}

function given<Name extends string>(name: Name, value: string): Partial<Record<Name, string>> {
  return value === '' ? {} : ({ [name]: value } as Record<Name, string>)
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new DatabaseUrlError(`has a % that is not followed by two hexadecimal digits: ${ENCODE}`)
  }
}

const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'] as const
/** What `ssl` may be, as the driver's own parser has it. */
const SSL_VALUES: Readonly<Record<string, string>> = { true: 'require', 1: 'require', false: 'disable', 0: 'disable' }

/**
 * TLS as `sslmode` asks for it; without one there is none. A certificate is verified with its name, also by `require`, except by
 * `verify-ca`, which does not compare the name, and `no-verify`.
 */
function tlsOptions(parameters: URLSearchParams): DriverConfig['ssl'] {
  const files = [
    ['ca', 'sslrootcert'],
    ['cert', 'sslcert'],
    ['key', 'sslkey'],
  ] as const
  const hasFiles = files.some(([, name]) => parameters.has(name))
  const ssl = parameters.get('ssl') ?? (hasFiles ? 'true' : 'false')
  const mode = parameters.get('sslmode') ?? SSL_VALUES[ssl] ?? ssl
  if (!SSL_MODES.some((known) => known === mode))
    throw new DatabaseUrlError(`has an unknown sslmode ${mode}: it takes ${SSL_MODES.join(', ')}`)
  if (mode === 'disable') return false
  const contents = files.flatMap(([option, name]) => {
    const file = parameters.get(name)
    // Of the authorities that Node.js trusts.
    return file === null || file === 'system' ? [] : [[option, readPem(name, file)]]
  })
  return {
    ...Object.fromEntries(contents),
    rejectUnauthorized: mode !== 'no-verify',
    ...(mode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}),
  }
}

/** What to do about an error of TLS, to follow its message; empty for any other. */
export function tlsAdvice(error: unknown): string {
  if (!(error instanceof Error)) return ''
  if (/does not support SSL/.test(error.message)) return ': sslmode=disable connects without TLS'
  const isUntrusted = 'code' in error && /CERT|UNABLE_TO/.test(String(error.code))
  return isUntrusted ? ': name its authority by sslrootcert, or accept any certificate by sslmode=no-verify' : ''
}

function readPem(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : cause
    throw new DatabaseUrlError(`names the ${name} ${file}, which cannot be read: ${code}`, { cause })
  }
}

function sslNegotiation(parameters: URLSearchParams): Pick<DriverConfig, 'sslnegotiation'> {
  const text = parameters.get('sslnegotiation')
  if (text === null) return {}
  if (text === 'postgres' || text === 'direct') return { sslnegotiation: text }
  throw new DatabaseUrlError(`has an unknown sslnegotiation ${text}: it takes postgres, direct`)
}
