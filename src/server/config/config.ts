import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { z } from 'zod'
import { mustBeOneOf, suggest } from '../../foundation/base/index.ts'
import { REGIONS } from '../../foundation/queue/index.ts'
import { addressRanges, integer, list, origins, proxyUrl, url } from './setting-types.ts'

/** Configuration of an installation, validated once at the start and passed on. */
export type Config = { readonly [Name in keyof typeof SETTINGS]: z.output<(typeof SETTINGS)[Name]['schema']> }

/** One environment variable. */
interface Setting<Schema extends z.ZodType> {
  readonly variable: string
  /** What it means; then what absence means, unless it has a default. */
  readonly description: string
  /** Turns its text into the value; unset and empty are `undefined`. Messages of issues complete `<variable> …`. */
  readonly schema: Schema
  /** The default as it would be written in the environment. */
  readonly defaultText: string | undefined
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** The table of settings; that of `guides/operate.md` is printed from it. */
export const SETTINGS = {
  host: setting('PATCHBAY_HOST', 'Address to listen on.', z.string().prefault('127.0.0.1')),
  port: setting('PATCHBAY_PORT', 'Port to listen on; 0 takes any free one.', integer(0, 65_535).prefault('8080')),
  publicUrl: setting(
    'PATCHBAY_PUBLIC_URL',
    'Address under which clients and browsers reach the server; links and the redirect address of consents begin with it. With a path, requests are taken with and without it. Default: the listening address.',
    url().optional(),
  ),
  databaseUrl: setting(
    'DATABASE_URL',
    'PostgreSQL 14 or newer. Default: the embedded PostgreSQL in the data directory.',
    z
      .string()
      .regex(/^postgres(ql)?:\/\/./, 'takes postgres://user@host/database')
      .optional(),
  ),
  databaseUrlFile: setting(
    'DATABASE_URL_FILE',
    'File with it instead, such as a mounted secret.',
    z.string().optional(),
  ),
  databasePoolMax: setting(
    'PATCHBAY_DATABASE_POOL',
    'Database connections of one process at most; `start` has as many again for background work.',
    integer(2, 500).prefault('16'),
  ),
  dataDir: setting(
    'PATCHBAY_DATA_DIR',
    'Embedded database, generated key, bootstrap.json.',
    z
      .string()
      .transform((path) => resolve(path))
      .prefault('.patchbay'),
  ),
  encryptionKeys: setting(
    'PATCHBAY_ENCRYPTION_KEYS',
    'Key encryption keys, `id:base64[,id:base64…]`, 32 bytes each; the first one writes. Default: generated into the data directory; required with DATABASE_URL.',
    z.string().optional(),
  ),
  encryptionKeysFile: setting(
    'PATCHBAY_ENCRYPTION_KEYS_FILE',
    'File with these keys, instead of PATCHBAY_ENCRYPTION_KEYS; lines separate keys as commas do. Processes take over a change within 10 seconds.',
    z
      .string()
      .transform((path) => resolve(path))
      .optional(),
  ),
  bootstrapToken: setting(
    'PATCHBAY_BOOTSTRAP_TOKEN',
    'The first team token, instead of a random one: 32 to 256 visible ASCII characters.',
    z
      .string()
      .regex(/^[\x21-\x7e]{32,256}$/, 'takes 32 to 256 visible ASCII characters')
      .optional(),
  ),
  egressAllow: setting(
    'PATCHBAY_EGRESS_ALLOW',
    'Address ranges, `cidr[,cidr…]`, that outbound calls may reach although they are not public, such as `127.0.0.0/8` during development. Servers, workers and `patchbay install` need it.',
    z.string().prefault(''),
  ),
  egressConnectTo: setting(
    'PATCHBAY_EGRESS_CONNECT_TO',
    'For development and tests: outbound calls to a host connect to an address instead, `host[:port]=address[:port][,…]`, such as `api.example.com=127.0.0.1:8443`; the first match is taken, `*` is every name and `*.example.com` every name below it. Headers, TLS server name and certificate check keep the name of the URL. PATCHBAY_EGRESS_ALLOW has to contain the addresses. The object store is not diverted.',
    z.string().prefault(''),
  ),
  httpsProxy: setting(
    'HTTPS_PROXY',
    'Forward proxy of outbound calls with TLS, `http://[user:password@]host:port`, which they pass in a tunnel. A name that resolves here has to resolve to addresses that calls may reach; the proxy resolves it again. Default: that of HTTP_PROXY. The database, the object store, daemons and commands connect directly.',
    proxyUrl(),
  ),
  httpProxy: setting('HTTP_PROXY', 'That of outbound calls without TLS. Default: none.', proxyUrl()),
  noProxy: setting(
    'NO_PROXY',
    'Hosts that are called without a proxy, `name[:port][,…]`, each with all names below it, or CIDR ranges of literal addresses; `*` is all.',
    z.string().prefault(''),
  ),
  objectStoreDirectory: setting(
    'PATCHBAY_OBJECT_STORE_DIRECTORY',
    'Directory of context values that live in the object store; all processes need the same one. Default: `objects` in the data directory.',
    z
      .string()
      .transform((path) => resolve(path))
      .optional(),
  ),
  objectStoreEndpoint: setting(
    'PATCHBAY_OBJECT_STORE_ENDPOINT',
    'S3-compatible service for these values, such as `https://s3.eu-central-1.amazonaws.com`. Default: the directory.',
    url().optional(),
  ),
  objectStoreBucket: setting('PATCHBAY_OBJECT_STORE_BUCKET', 'Its bucket.', z.string().optional()),
  objectStoreRegion: setting(
    'PATCHBAY_OBJECT_STORE_REGION',
    'Region that requests to it are signed for.',
    z.string().prefault('us-east-1'),
  ),
  objectStoreAccessKeyId: setting(
    'PATCHBAY_OBJECT_STORE_ACCESS_KEY',
    'Identifies the key that signs requests to it; the key must be allowed to put, get and delete objects.',
    z.string().optional(),
  ),
  objectStoreSecretAccessKey: setting('PATCHBAY_OBJECT_STORE_SECRET_KEY', 'That key.', z.string().optional()),
  objectStorePathStyle: setting(
    'PATCHBAY_OBJECT_STORE_PATH_STYLE',
    '`true`: the bucket is part of the path; `false`: of the host name.',
    z
      .enum(['true', 'false'], 'takes true or false')
      .transform((text) => text === 'true')
      .prefault('true'),
  ),
  objectStorePrefix: setting(
    'PATCHBAY_OBJECT_STORE_PREFIX',
    'Put before the names of objects, such as `patchbay/`.',
    z
      .string()
      .regex(/^[\w./-]{0,200}$/, 'takes up to 200 letters, digits and ._/-')
      .prefault(''),
  ),
  objectStoreAllow: setting(
    'PATCHBAY_OBJECT_STORE_ALLOW',
    'Address ranges, `cidr[,cidr…]`, where the service may be although they are not public; no other outbound call may reach them.',
    z.string().prefault(''),
  ),
  logLevel: setting(
    'PATCHBAY_LOG_LEVEL',
    'Lowest level that is logged.',
    z.enum(LOG_LEVELS, { error: ({ input }) => mustBeOneOf(input, LOG_LEVELS) }).prefault('info'),
  ),
  region: setting(
    'PATCHBAY_REGION',
    'Regions, comma-separated, of the accounts that this worker serves: activation, token refresh, ticks, runs. Default: all.',
    list()
      .pipe(
        z.array(
          z.enum(REGIONS, {
            error: ({ input }) =>
              `takes a comma-separated list of ${REGIONS.join(', ')}${suggest(String(input), REGIONS)}`,
          }),
        ),
      )
      .optional(),
  ),
  rateLimitRequests: setting(
    'PATCHBAY_RATE_LIMIT',
    'Units of requests a token may use in 10 seconds, per server process; most requests take one ("Limits and cost" in `proto/README.md`). 0 turns the limit off.',
    integer(0, 10_000_000).prefault('500'),
  ),
  rateLimitAddress: setting(
    'PATCHBAY_RATE_LIMIT_ADDRESS',
    'Requests without a valid token that one client address (IPv6: one /64 network) may make in 10 seconds, per server process; 0 turns the limit off. Requests with a valid token never count.',
    integer(0, 10_000_000).prefault('100'),
  ),
  trustedProxies: setting(
    'PATCHBAY_TRUSTED_PROXIES',
    'Addresses of reverse proxies, `cidr[,cidr…]`, whose `X-Forwarded-For` or `Forwarded` names the client address. Default: none, the peer of the connection is the client.',
    addressRanges(),
  ),
  corsOrigins: setting(
    'PATCHBAY_CORS_ORIGINS',
    'Origins, comma-separated, whose pages may call the API from a browser, such as `https://app.example.com`; `*` allows all. Default: none.',
    origins().prefault(''),
  ),
  requestBytesMax: setting(
    'PATCHBAY_REQUEST_BYTES_MAX',
    'Largest request body, bytes.',
    integer(1024, 64 * 1024 * 1024).prefault(String(4 * 1024 * 1024)),
  ),
  deadlineMaxMs: setting(
    'PATCHBAY_DEADLINE_MAX_MS',
    'Longest time one call may take, milliseconds; shorter deadlines of clients hold.',
    integer(100, 600_000).prefault('30000'),
  ),
  drainMs: setting(
    'PATCHBAY_DRAIN_MS',
    'Time from SIGTERM to the end of the process, milliseconds, and 5 s at least. In-flight work gets all of it but a fifth, at most 5 s, in which connections and PostgreSQL are closed.',
    integer(0, 600_000).prefault('25000'),
  ),
  drainGraceMs: setting(
    'PATCHBAY_DRAIN_GRACE_MS',
    'Time after SIGTERM, milliseconds, in which the server says NOT_SERVING but still takes requests, so that a load balancer can turn away: its check interval times its failure threshold. Part of PATCHBAY_DRAIN_MS.',
    integer(0, 600_000).prefault('0'),
  ),
  minTickGapSeconds: setting(
    'PATCHBAY_MIN_TICK_GAP_SECONDS',
    'Smallest gap between two ticks of a cron expression, seconds.',
    integer(1, 86_400).prefault('1'),
  ),
  catchupWindowSeconds: setting(
    'PATCHBAY_CATCHUP_WINDOW',
    'How far back missed ticks still run one by one, seconds.',
    integer(0, 31_536_000).prefault('3600'),
  ),
  runRetentionDays: setting(
    'PATCHBAY_RUN_RETENTION_DAYS',
    'Days that runs and the ledger of ticks are kept, counted from the tick; a day with runs that wait or are under way stays. 0 keeps them for good.',
    integer(0, 3_650).prefault('30'),
  ),
  eventRetentionDays: setting(
    'PATCHBAY_EVENT_RETENTION_DAYS',
    'Days that events are kept. 0 keeps them for good.',
    integer(0, 3_650).prefault('30'),
  ),
  accountHistoryRetentionDays: setting(
    'PATCHBAY_ACCOUNT_HISTORY_DAYS',
    'Days that an entry of the history of an account is kept after the next one; the latest is always kept, and never more than 200 of an account. 0 keeps these for good.',
    integer(0, 3_650).prefault('90'),
  ),
  deliveryRetentionDays: setting(
    'PATCHBAY_DELIVERY_RETENTION_DAYS',
    'Days that deliveries of events to webhooks are kept; a day with deliveries that wait stays. 0 keeps them for good.',
    integer(0, 3_650).prefault('30'),
  ),
  deliveryAttemptRetentionDays: setting(
    'PATCHBAY_ATTEMPT_RETENTION_DAYS',
    'Days that the attempts of deliveries are kept, with the beginning of what receivers answered. 0 keeps them for good.',
    integer(0, 3_650).prefault('14'),
  ),
  inboundEventRetentionDays: setting(
    'PATCHBAY_INBOUND_RETENTION_DAYS',
    'Days that the record of inbound webhooks is kept: when, from where, what became of it. 0 keeps it for good.',
    integer(0, 3_650).prefault('30'),
  ),
  inboundContentRetentionDays: setting(
    'PATCHBAY_INBOUND_CONTENT_DAYS',
    'Days that headers and bodies of inbound webhooks are kept; later they cannot be replayed. 0 keeps them for good.',
    integer(0, 3_650).prefault('14'),
  ),
  toolCallRetentionDays: setting(
    'PATCHBAY_TOOL_CALL_RETENTION_DAYS',
    'Days that the record of calls of tool servers is kept. 0 keeps it for good.',
    integer(0, 3_650).prefault('30'),
  ),
  callLogRetentionDays: setting(
    'PATCHBAY_CALL_LOG_DAYS',
    'Days that the log of requests to third parties is kept. 0 keeps it for good.',
    integer(0, 3_650).prefault('7'),
  ),
  auditRetentionDays: setting(
    'PATCHBAY_AUDIT_DAYS',
    'Days that the audit log is kept. 0 keeps it for good.',
    integer(0, 3_650).prefault('90'),
  ),
  callLogSample: setting(
    'PATCHBAY_CALL_LOG_SAMPLE',
    'One of so many successful requests is kept in that log with headers and bodies, secrets masked, 16 KiB of each body; 0: none. Failed ones always are.',
    integer(0, 1_000_000).prefault('100'),
  ),
  workerConcurrency: setting(
    'PATCHBAY_WORKER_CONCURRENCY',
    'Sync runs a worker executes at once.',
    integer(1, 1_000).prefault('16'),
  ),
  deliveryConcurrency: setting(
    'PATCHBAY_DELIVERY_CONCURRENCY',
    'Webhook deliveries a worker sends at once, not counting those whose receivers take longer than 2 s.',
    integer(1, 2_000).prefault('128'),
  ),
  metricsPort: setting(
    'PATCHBAY_METRICS_PORT',
    'Port of its own for `/metrics`, `/livez`, `/readyz`, `/healthz` and `/healthz/scheduler`, which ask for no token; 0 takes any free one. Default: no such port, and nothing is counted.',
    integer(0, 65_535).optional(),
  ),
  metricsHost: setting('PATCHBAY_METRICS_HOST', 'Address that port listens on.', z.string().prefault('127.0.0.1')),
  tlsCert: setting('PATCHBAY_TLS_CERT', 'File with the PEM certificate chain. Default: no TLS.', z.string().optional()),
  tlsKey: setting(
    'PATCHBAY_TLS_KEY',
    'File with the PEM private key; needed with PATCHBAY_TLS_CERT.',
    z.string().optional(),
  ),
} as const

/** A setting that cannot be used, as the one line the start prints. */
export class ConfigError extends Error {}

/**
 * Reads the configuration from environment variables.
 *
 * @throws ConfigError naming the first bad variable and what it accepts; the value itself is not repeated, it may be a secret
 */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const entries = Object.entries(SETTINGS).map(([name, { variable, schema }]) => {
    const parsed = schema.safeParse(textOf(environment, variable))
    if (!parsed.success) throw new ConfigError(`${variable} ${parsed.error.issues[0]?.message}`)
    return [name, parsed.data]
  })
  const config = withFiles(Object.fromEntries(entries) as Config)
  if ((config.tlsCert === undefined) !== (config.tlsKey === undefined))
    throw new ConfigError('PATCHBAY_TLS_CERT and PATCHBAY_TLS_KEY go together: set both or neither')
  if (config.encryptionKeys !== undefined && config.encryptionKeysFile !== undefined)
    throw new ConfigError('PATCHBAY_ENCRYPTION_KEYS_FILE takes the place of PATCHBAY_ENCRYPTION_KEYS: set one of them')
  return config
}

/** @throws ConfigError when a file that holds a setting cannot be read, or holds what the setting does not take */
function withFiles(config: Config): Config {
  const { databaseUrl, databaseUrlFile: file } = config
  if (file === undefined) return config
  if (databaseUrl !== undefined)
    throw new ConfigError('DATABASE_URL_FILE takes the place of DATABASE_URL: set one of them')
  try {
    const parsed = SETTINGS.databaseUrl.schema.safeParse(readFileSync(file, 'utf8').trim())
    if (!parsed.success) throw new ConfigError(`DATABASE_URL_FILE ${file} ${parsed.error.issues[0]?.message}`)
    return { ...config, databaseUrl: parsed.data }
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause
    const code = cause instanceof Error && 'code' in cause ? cause.code : cause
    throw new ConfigError(`DATABASE_URL_FILE ${file} cannot be read: ${code}`, { cause })
  }
}

/** Settings whose absence means something else altogether: an empty one is a reference that led nowhere. */
const NEVER_EMPTY: ReadonlySet<string> = new Set([
  'DATABASE_URL',
  'DATABASE_URL_FILE',
  'PATCHBAY_ENCRYPTION_KEYS',
  'PATCHBAY_ENCRYPTION_KEYS_FILE',
  'PATCHBAY_TLS_CERT',
  'PATCHBAY_TLS_KEY',
])

/** The text of a variable without the line break that files of secrets end with; `undefined` when it says nothing. */
function textOf(environment: NodeJS.ProcessEnv, variable: string): string | undefined {
  // Variables of proxies are written in small letters as often.
  const other = variable.endsWith('_PROXY') ? environment[variable.toLowerCase()] : undefined
  const text = (environment[variable] ?? other)?.trim()
  if (text === '' && NEVER_EMPTY.has(variable)) throw new ConfigError(`${variable} is empty: set it, or unset it`)
  // What Kubernetes sets in every container for a service named `patchbay`.
  const isServiceLink = variable === 'PATCHBAY_PORT' && text?.startsWith('tcp://') === true
  return text === '' || isServiceLink ? undefined : text
}

/** Variables that commands read which call a server. */
const OTHER_VARIABLES = ['PATCHBAY_TOKEN']
/** What Kubernetes sets in every container for a service whose name begins with `patchbay`. */
const SERVICE_LINK = /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)$/

function isServiceLinkOf(environment: NodeJS.ProcessEnv, name: string): boolean {
  if (!SERVICE_LINK.test(name)) return false
  return !name.endsWith('_PORT') || environment[name]?.startsWith('tcp://') === true
}

/** Rejects a misspelt variable: one that no setting reads. @throws ConfigError naming the nearest one */
export function assertKnownVariables(environment: NodeJS.ProcessEnv): void {
  const known = [...Object.values(SETTINGS).map(({ variable }) => variable), ...OTHER_VARIABLES]
  const unknown = Object.keys(environment).find(
    (name) => name.startsWith('PATCHBAY_') && !known.includes(name) && !isServiceLinkOf(environment, name),
  )
  if (unknown === undefined) return
  throw new ConfigError(`${unknown} is no setting${suggest(unknown, known) || '; patchbay help start lists them'}`)
}

function setting<Schema extends z.ZodType>(variable: string, description: string, schema: Schema): Setting<Schema> {
  const defaultText = schema instanceof z.ZodPrefault ? String(schema.def.defaultValue) : undefined
  return { variable, description, schema, defaultText }
}
