import { BlockList, isIP } from 'node:net'
import { resolve } from 'node:path'
import { suggest } from './base/index.ts'

/** Everything an installation can be told, read once at the start and handed on. */
export type Config = { readonly [Name in keyof typeof SETTINGS]: ReturnType<(typeof SETTINGS)[Name]['read']> }

/** One environment variable: its default, what it means, and how its text becomes a value. */
interface Setting<Value> {
  readonly variable: string
  /** The text read when the variable is unset or empty; `undefined` when absence is itself a value. */
  readonly fallback: string | undefined
  /** What it means; then what absence means. */
  readonly meaning: string
  /** @throws Error saying what the variable accepts */
  read(text: string | undefined): Value
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
const BOOTSTRAP_TOKEN = /^[\x21-\x7e]{32,256}$/

/** The table of settings; the README's is printed from it. */
export const SETTINGS = {
  host: text('PATCHBAY_HOST', '127.0.0.1', 'Address to listen on.'),
  port: integer('PATCHBAY_PORT', 8080, 0, 65_535, 'Port to listen on; 0 takes any free one.'),
  publicUrl: optionalUrl(
    'PATCHBAY_PUBLIC_URL',
    'Address under which clients reach the server. Default: the listening address.',
  ),
  databaseUrl: databaseUrl(
    'DATABASE_URL',
    'PostgreSQL 14 or newer. Default: the embedded PostgreSQL in the data directory.',
  ),
  databasePoolMax: integer('PATCHBAY_DATABASE_POOL', 16, 2, 500, 'Database connections of one process at most.'),
  dataDir: directory('PATCHBAY_DATA_DIR', './.patchbay', 'Embedded database, generated key, bootstrap.json.'),
  encryptionKeys: optional(
    'PATCHBAY_ENCRYPTION_KEYS',
    'Key encryption keys, `id:base64[,id:base64…]`, 32 bytes each; the first one writes. Default: generated into the data directory; required with DATABASE_URL.',
  ),
  bootstrapToken: bootstrapToken(),
  egressAllow: text(
    'PATCHBAY_EGRESS_ALLOW',
    '',
    'Address ranges, `cidr[,cidr…]`, that outbound calls may reach although they are not public, such as `127.0.0.0/8` during development.',
  ),
  logLevel: choice('PATCHBAY_LOG_LEVEL', 'info', LOG_LEVELS, 'Lowest level that is logged.'),
  region: regions('PATCHBAY_REGION', 'Regions, comma-separated, whose runs this worker takes. Default: all.'),
  rateLimitRequests: integer(
    'PATCHBAY_RATE_LIMIT',
    500,
    0,
    10_000_000,
    'Requests a token may make in 10 seconds, per server process; 0 turns the limit off.',
  ),
  rateLimitAddress: integer(
    'PATCHBAY_RATE_LIMIT_ADDRESS',
    100,
    0,
    10_000_000,
    'Requests without a valid token that one client address (IPv6: one /64 network) may make in 10 seconds, per server process; 0 turns the limit off.',
  ),
  trustedProxies: addressRanges(
    'PATCHBAY_TRUSTED_PROXIES',
    'Addresses of reverse proxies, `cidr[,cidr…]`, whose `X-Forwarded-For` names the client address. Default: none, the peer of the connection is the client.',
  ),
  corsOrigins: origins(
    'PATCHBAY_CORS_ORIGINS',
    'Origins, comma-separated, whose pages may call the API from a browser, such as `https://app.example.com`; `*` allows all. Default: none.',
  ),
  requestBytesMax: integer(
    'PATCHBAY_REQUEST_BYTES_MAX',
    4 * 1024 * 1024,
    1024,
    64 * 1024 * 1024,
    'Largest request body, bytes.',
  ),
  deadlineMaxMs: integer(
    'PATCHBAY_DEADLINE_MAX_MS',
    30_000,
    100,
    600_000,
    'Longest time one call may take, milliseconds; shorter deadlines of clients hold.',
  ),
  drainMs: integer(
    'PATCHBAY_DRAIN_MS',
    25_000,
    0,
    600_000,
    'Time in-flight work gets to finish after SIGTERM, milliseconds.',
  ),
  drainGraceMs: integer(
    'PATCHBAY_DRAIN_GRACE_MS',
    0,
    0,
    600_000,
    'Time after SIGTERM, milliseconds, in which the server says NOT_SERVING but still takes requests, so that a load balancer can turn away: its check interval times its failure threshold. Part of PATCHBAY_DRAIN_MS.',
  ),
  minTickGapSeconds: integer(
    'PATCHBAY_MIN_TICK_GAP_SECONDS',
    1,
    1,
    86_400,
    'Smallest gap between two ticks of a cron expression, seconds.',
  ),
  catchupWindowSeconds: integer(
    'PATCHBAY_CATCHUP_WINDOW',
    3_600,
    0,
    31_536_000,
    'How far back missed ticks still run one by one, seconds.',
  ),
  runRetentionDays: integer(
    'PATCHBAY_RUN_RETENTION_DAYS',
    30,
    0,
    3_650,
    'Days that runs and the ledger of ticks are kept, counted from the tick; a day with runs that wait or are under way stays. 0 keeps them for good.',
  ),
  workerConcurrency: integer('PATCHBAY_WORKER_CONCURRENCY', 16, 1, 1_000, 'Sync runs a worker executes at once.'),
  metricsPort: optionalInteger(
    'PATCHBAY_METRICS_PORT',
    0,
    65_535,
    'Port of its own for `/metrics`, `/healthz` and `/healthz/scheduler`, which ask for no token; 0 takes any free one. Default: no such port, and nothing is counted.',
  ),
  metricsHost: text('PATCHBAY_METRICS_HOST', '127.0.0.1', 'Address that port listens on.'),
  tlsCert: optional('PATCHBAY_TLS_CERT', 'File with the PEM certificate chain. Default: no TLS.'),
  tlsKey: optional('PATCHBAY_TLS_KEY', 'File with the PEM private key; needed with PATCHBAY_TLS_CERT.'),
} as const

/** A setting that cannot be used, as the one line the start prints. */
export class ConfigError extends Error {}

/**
 * Reads the configuration from environment variables.
 *
 * @throws ConfigError naming the first bad variable and what it accepts; the value itself is not repeated, it may be a secret
 */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const entries = Object.entries(SETTINGS).map(([name, setting]) => [name, readSetting(setting, environment)])
  const config: Config = Object.fromEntries(entries)
  if ((config.tlsCert === undefined) !== (config.tlsKey === undefined))
    throw new ConfigError('PATCHBAY_TLS_CERT and PATCHBAY_TLS_KEY go together: set both or neither')
  return config
}

/** Read beside the settings: by commands that call a server. */
const OTHER_VARIABLES = ['PATCHBAY_TOKEN']
/** What Kubernetes sets in every container for a service whose name begins with `patchbay`. */
const SERVICE_LINK = /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)$/

/** Refuses a variable that no setting reads: it is misspelt. @throws ConfigError naming the nearest one */
export function assertKnownVariables(environment: NodeJS.ProcessEnv): void {
  const known = [...Object.values(SETTINGS).map(({ variable }) => variable), ...OTHER_VARIABLES]
  const unknown = Object.keys(environment).find(
    (name) => name.startsWith('PATCHBAY_') && !known.includes(name) && !SERVICE_LINK.test(name),
  )
  if (unknown === undefined) return
  throw new ConfigError(`${unknown} is no setting${suggest(unknown, known) || '; patchbay help start lists them'}`)
}

function readSetting(setting: Setting<unknown>, environment: NodeJS.ProcessEnv): unknown {
  const given = environment[setting.variable]
  try {
    return setting.read(given === undefined || given === '' ? setting.fallback : given)
  } catch (error) {
    throw new ConfigError(`${setting.variable} ${error instanceof Error ? error.message : String(error)}`)
  }
}

function text(variable: string, fallback: string, meaning: string): Setting<string> {
  return { variable, fallback, meaning, read: (given) => given ?? fallback }
}

function optional(variable: string, meaning: string): Setting<string | undefined> {
  return { variable, fallback: undefined, meaning, read: (given) => given }
}

function databaseUrl(variable: string, meaning: string): Setting<string | undefined> {
  const read = (given: string | undefined) => {
    if (given !== undefined && !/^postgres(ql)?:\/\/./.test(given))
      throw new Error('takes postgres://user@host/database')
    return given
  }
  return { variable, fallback: undefined, meaning, read }
}

function directory(variable: string, fallback: string, meaning: string): Setting<string> {
  return { variable, fallback, meaning, read: (given) => resolve(given ?? fallback) }
}

function integer(variable: string, fallback: number, min: number, max: number, meaning: string): Setting<number> {
  return { variable, fallback: String(fallback), meaning, read: (given = '') => readInteger(given, min, max) }
}

function optionalInteger(variable: string, min: number, max: number, meaning: string): Setting<number | undefined> {
  const read = (given: string | undefined) => (given === undefined ? undefined : readInteger(given, min, max))
  return { variable, fallback: undefined, meaning, read }
}

function readInteger(given: string, min: number, max: number): number {
  const value = Number(given)
  if (!/^\d+$/.test(given) || value < min || value > max) throw new Error(`takes a whole number from ${min} to ${max}`)
  return value
}

function choice<Value extends string>(
  variable: string,
  fallback: Value,
  values: readonly Value[],
  meaning: string,
): Setting<Value> {
  return {
    variable,
    fallback,
    meaning,
    read: (given) => {
      const value = values.find((each) => each === given)
      if (value === undefined) throw new Error(`takes one of ${values.join(', ')}`)
      return value
    },
  }
}

function optionalUrl(variable: string, meaning: string): Setting<string | undefined> {
  return {
    variable,
    fallback: undefined,
    meaning,
    read: (given) => {
      if (given !== undefined && !/^https?:$/.test(URL.parse(given)?.protocol ?? ''))
        throw new Error('takes an http or https URL')
      return given?.replace(/\/+$/, '')
    },
  }
}

/** Where accounts live and which worker serves them. */
export const REGIONS = ['wnam', 'enam', 'apac', 'eu'] as const
export type Region = (typeof REGIONS)[number]

function regions(variable: string, meaning: string): Setting<readonly Region[] | undefined> {
  return {
    variable,
    fallback: undefined,
    meaning,
    read: (given) =>
      given?.split(',').map((part) => {
        const region = REGIONS.find((each) => each === part.trim())
        if (region === undefined) throw new Error(`takes a comma-separated list of ${REGIONS.join(', ')}`)
        return region
      }),
  }
}

function addressRanges(variable: string, meaning: string): Setting<BlockList> {
  return {
    variable,
    fallback: undefined,
    meaning,
    read(given) {
      const ranges = new BlockList()
      for (const part of given?.split(',') ?? []) {
        const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(part.trim()) ?? []
        const longest = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
        const prefix = Number(bits ?? longest)
        if (longest === -1 || prefix > longest)
          throw new Error('takes a comma-separated list of CIDR ranges or addresses')
        ranges.addSubnet(address, prefix, longest === 32 ? 'ipv4' : 'ipv6')
      }
      return ranges
    },
  }
}

function origins(variable: string, meaning: string): Setting<readonly string[]> {
  const isOrigin = (text: string) => /^https?:[^*]*$/.test(text) && URL.parse(text)?.origin === text
  return {
    variable,
    fallback: '',
    meaning,
    read: (given = '') => {
      const list = given.split(',').flatMap((part) => part.trim() || [])
      if (given.trim() === '*' || list.every(isOrigin)) return list
      throw new Error('takes `*`, or a comma-separated list of origins such as https://app.example.com (no path)')
    },
  }
}

function bootstrapToken(): Setting<string | undefined> {
  return {
    variable: 'PATCHBAY_BOOTSTRAP_TOKEN',
    fallback: undefined,
    meaning: 'The first team token, instead of a random one: 32 to 256 visible ASCII characters.',
    read: (given) => {
      if (given !== undefined && !BOOTSTRAP_TOKEN.test(given))
        throw new Error('takes 32 to 256 visible ASCII characters')
      return given
    },
  }
}
