import { hostname } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../foundation/base/index.ts'
import {
  Database,
  DatabaseHealthCheck,
  type DatabaseOptions,
  type DatabaseTarget,
  DatabaseUrlError,
  DataDirectoryLock,
  type EmbeddedServer,
  migrate,
  parseDatabaseUrl,
  quitEmbeddedServer,
  readServerState,
  SchemaError,
  SERVER_VERSION_MIN,
  startEmbeddedServer,
  tlsAdvice,
} from '../foundation/database/index.ts'
import { createEgressPolicy, createHttpClient } from '../foundation/egress/index.ts'
import {
  createSecretStore,
  findUnreadableKey,
  hasDataKeys,
  KeyRingWatch,
  type SecretStore,
} from '../foundation/secrets/index.ts'
import type { Logger } from '../foundation/telemetry/index.ts'
import {
  CONTEXT_OBJECT_BYTES_MAX,
  createDirectoryStore,
  createS3Store,
  type ObjectStore,
  type S3Bucket,
} from '../platform/objects/index.ts'
import { type Config, ConfigError } from './config/config.ts'
import { type OpenedKeyRing, openKeyRing } from './open-key-ring.ts'

const EMBEDDED_DATABASE = 'postgres'

/** The persistent state that every command opens: the database with its schema, and the encryption keys. */
export interface Storage extends AsyncDisposable {
  readonly database: Database
  /**
   * The same database for background work, by connections of its own where a process also serves requests: neither waits for a
   * connection that the other holds. Absent in tests.
   */
  readonly backgroundDatabase?: Database
  readonly secrets: SecretStore
  /** The key encryption keys, and where they come from. Absent in tests. */
  readonly keys?: OpenedKeyRing
  /** The embedded PostgreSQL, unless DATABASE_URL names another. */
  readonly embedded: EmbeddedServer | undefined
  /** Health check of the database, once started; restarts an embedded server that died. Absent in tests. */
  readonly databaseWatch?: DatabaseHealthCheck | undefined
}

/** How a command opens the storage. */
export interface StorageOptions {
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string
  /** Whether it is `patchbay start`, of which a data directory has one at a time. All other commands share it. */
  readonly isStart: boolean
  /**
   * What is done with the key encryption keys. `check`: the command does not begin when one is missing; `announce`: nor does a
   * process that stays, which also tells others which keys it has, and takes over a changed key file; `open`: nothing, for
   * commands about keys. Default: `check`.
   */
  readonly keyUse?: 'check' | 'announce' | 'open'
  readonly logger: Logger
  /**
   * Called before the embedded PostgreSQL is started or joined, with what ends it at once, unless another process uses it: for a
   * process that ends without closing its storage.
   */
  readonly onEmbedded?: (quit: () => void) => void
}

/**
 * Opens the database and the keys: locks the data directory and starts its PostgreSQL, or joins the one that runs there (or
 * connects to DATABASE_URL); migrates; reads the keys. The last process to close it stops the embedded PostgreSQL.
 *
 * @throws ConfigError, one line that names the setting: the data directory cannot be used or belongs to another `start`, the
 * database cannot be reached, is too old, of a newer version or of another program, the keys are missing, malformed or not those of
 * the database. Nothing that is stored has been changed then
 */
export async function openStorage(config: Config, options: StorageOptions): Promise<Storage> {
  await using opened = new AsyncDisposableStack()
  assertDatabaseUrl(config)
  const embedded = config.databaseUrl === undefined ? await startOrJoinEmbedded(config, options, opened) : undefined
  const connection = { target: targetOf(config, embedded), applicationName: options.applicationName }
  const database = opened.use(new Database({ ...connection, poolMax: config.databasePoolMax }))
  const keys = await openKeyRing(config, async () => !(await hasDataKeys(database.pool)))
  await checkServer(config, database)
  await applyMigrations(config, connection, options.logger)
  const processId = await useKeys(config, options, database, keys, opened)
  const databaseWatch = opened.use(watchDatabase(config, connection, options.logger))
  const backgroundDatabase = options.isStart
    ? opened.use(new Database({ ...connection, poolMax: config.databasePoolMax }))
    : database
  for (const each of new Set([database, backgroundDatabase])) databaseWatch.attach(each)
  const resources = opened.move()
  return {
    database,
    backgroundDatabase,
    secrets: createSecretStore(keys.ring, processId),
    keys,
    embedded,
    databaseWatch,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

async function startOrJoinEmbedded(
  { dataDir }: Config,
  { isStart, onEmbedded }: StorageOptions,
  opened: AsyncDisposableStack,
): Promise<EmbeddedServer> {
  try {
    const lock = await DataDirectoryLock.acquire(dataDir, isStart)
    onEmbedded?.(() => void lock.release(async () => quitEmbeddedServer(dataDir)))
    let stop = async () => {}
    opened.defer(() => lock.release(() => stop()))
    const server = await startEmbeddedServer({ dataDir, isShared: () => lock.isShared() })
    stop = () => server.stop()
    return server
  } catch (cause) {
    throw new ConfigError(`PATCHBAY_DATA_DIR ${messageOf(cause)}`, { cause })
  }
}

/** Creates the health check of the database; an embedded server that died is restarted. */
function watchDatabase(config: Config, connection: DatabaseOptions, logger: Logger): DatabaseHealthCheck {
  const { databaseUrl, dataDir } = config
  const restart = async () => {
    const { pid } = await startEmbeddedServer({ dataDir })
    logger.warn({ pid }, 'the embedded PostgreSQL died and was restarted')
  }
  return new DatabaseHealthCheck({
    connection: { ...connection, applicationName: `${connection.applicationName} health` },
    clock: systemClock,
    random: Math.random,
    logger,
    restart: databaseUrl === undefined ? restart : undefined,
  })
}

/** @throws ConfigError when the URL cannot be read */
function assertDatabaseUrl({ databaseUrl }: Config): void {
  try {
    if (databaseUrl !== undefined) parseDatabaseUrl(databaseUrl)
  } catch (error) {
    if (!(error instanceof DatabaseUrlError)) throw error
    throw new ConfigError(`DATABASE_URL ${error.message}`, { cause: error })
  }
}

/** What the operator knows the database by. */
function databaseName({ databaseUrl, dataDir }: Config): string {
  return databaseUrl === undefined ? `PATCHBAY_DATA_DIR ${dataDir}` : 'DATABASE_URL'
}

/** @throws ConfigError when the first connection fails, or the server is too old or the database not in UTF8 */
async function checkServer(config: Config, { pool }: Database): Promise<void> {
  const name = databaseName(config)
  const { version, encoding, database } = await readServerState(pool).catch((cause: unknown) => {
    throw new ConfigError(`${name}: the database cannot be used: ${messageOf(cause)}${tlsAdvice(cause)}`, { cause })
  })
  if (version < SERVER_VERSION_MIN)
    throw new ConfigError(
      `${name}: the server is PostgreSQL ${Math.floor(version / 10_000)}, and 14 or newer is needed`,
    )
  if (encoding !== 'UTF8')
    throw new ConfigError(
      `${name}: the database ${database} has the encoding ${encoding}, which cannot store every text: name another one, made by CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`,
    )
}

/** @throws ConfigError when the database is of a newer version or of another program, or cannot be changed */
async function applyMigrations(config: Config, connection: DatabaseOptions, logger: Logger): Promise<void> {
  // Without a limit of time: other processes that migrate are waited for.
  await using migrating = new Database({ ...connection, statementTimeoutMs: 0, poolMax: 1 })
  try {
    const { applied } = await migrate(migrating)
    if (applied.length > 0)
      logger.info({ count: applied.length }, `applied migrations: ${applied.at(0)} to ${applied.at(-1)}`)
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error
    throw new ConfigError(`${databaseName(config)}: the database ${error.message}`, { cause: error })
  }
}

/**
 * Checks the key encryption keys, and announces those of a process that stays.
 *
 * @returns the id under which they are announced
 * @throws ConfigError when stored secrets are encrypted under a key that is not configured
 */
async function useKeys(
  config: Config,
  { applicationName, keyUse = 'check', logger }: StorageOptions,
  database: Database,
  { ring, source }: OpenedKeyRing,
  opened: AsyncDisposableStack,
): Promise<string | undefined> {
  if (keyUse === 'open') return undefined
  if (keyUse === 'check') {
    assertComplete(config, source.name, await findUnreadableKey(database.pool, ring))
    return undefined
  }
  const watch = opened.use(
    new KeyRingWatch({
      database,
      ring,
      readText: source.file === undefined ? undefined : source.readText,
      name: `${applicationName} ${hostname()}:${process.pid}`,
      clock: systemClock,
      random: Math.random,
      logger,
    }),
  )
  assertComplete(config, source.name, await watch.start())
  return watch.id
}

/** @param source of the keys, as messages name it @throws ConfigError when a key is missing */
function assertComplete(config: Config, source: string, missingKey: string | undefined): void {
  if (missingKey === undefined) return
  const where = config.databaseUrl === undefined ? config.dataDir : 'the database of DATABASE_URL'
  throw new ConfigError(`${source} lacks the key ${missingKey} that secrets in ${where} are encrypted under`)
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  if (/Timeout acquiring a connection|timeout expired/.test(message)) return 'the server does not answer'
  // Without a message: an AggregateError of all addresses that were tried.
  if (error instanceof AggregateError && message === '') return error.errors.map(messageOf).join(', ')
  return message.replace(/\s+/g, ' ')
}

function targetOf({ databaseUrl: url }: Config, embedded: EmbeddedServer | undefined): DatabaseTarget {
  if (embedded !== undefined)
    return {
      kind: 'socket',
      host: embedded.host,
      port: embedded.port,
      user: embedded.user,
      database: EMBEDDED_DATABASE,
    }
  if (url === undefined) throw new Error('neither an embedded database nor DATABASE_URL')
  return { kind: 'url', url }
}

/** Below the data directory, unless the settings name another. */
const OBJECTS_DIRECTORY = 'objects'

/**
 * Opens the object store of the settings: a bucket where PATCHBAY_OBJECT_STORE_ENDPOINT is set, else a directory. The bucket is
 * reached by a client of its own, whose address policy also allows PATCHBAY_OBJECT_STORE_ALLOW.
 */
export function openObjectStore(config: Config): ObjectStore & AsyncDisposable {
  const bucket = bucketOf(config)
  if (bucket === undefined) {
    const directory = createDirectoryStore(config.objectStoreDirectory ?? join(config.dataDir, OBJECTS_DIRECTORY))
    return { ...directory, [Symbol.asyncDispose]: async () => {} }
  }
  const allow = [config.egressAllow, config.objectStoreAllow].filter((ranges) => ranges !== '').join(',')
  const http = createHttpClient({ policy: createEgressPolicy({ allow, variable: 'PATCHBAY_OBJECT_STORE_ALLOW' }) })
  const deps = { http, clock: systemClock, random: Math.random }
  return {
    ...createS3Store(deps, bucket, CONTEXT_OBJECT_BYTES_MAX),
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  }
}

/** @throws ConfigError when an endpoint is set and what it needs is not */
function bucketOf(config: Config): S3Bucket | undefined {
  const { objectStoreEndpoint: endpoint, objectStoreBucket: bucket } = config
  const { objectStoreAccessKeyId: accessKeyId, objectStoreSecretAccessKey: secretAccessKey } = config
  if (endpoint === undefined) return undefined
  if (bucket === undefined || accessKeyId === undefined || secretAccessKey === undefined)
    throw new ConfigError(
      'PATCHBAY_OBJECT_STORE_ENDPOINT needs PATCHBAY_OBJECT_STORE_BUCKET, PATCHBAY_OBJECT_STORE_ACCESS_KEY and PATCHBAY_OBJECT_STORE_SECRET_KEY',
    )
  return {
    endpoint,
    bucket,
    accessKeyId,
    secretAccessKey,
    region: config.objectStoreRegion,
    isPathStyle: config.objectStorePathStyle,
    prefix: config.objectStorePrefix,
  }
}
