import { existsSync, readFileSync } from 'node:fs'
import { link, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from './base/index.ts'
import { type Config, ConfigError } from './config.ts'
import {
  Database,
  DatabaseHealthCheck,
  type DatabaseOptions,
  type DatabaseTarget,
  DataDirectoryLock,
  type EmbeddedServer,
  migrate,
  readServerVersion,
  startEmbeddedServer,
} from './database/index.ts'
import {
  createSecretStore,
  findUnreadableKey,
  generateKeyRingText,
  type KeyRing,
  parseKeyRing,
  type SecretStore,
} from './secrets/index.ts'
import type { Logger } from './telemetry/index.ts'

const KEY_FILE = 'encryption.key'
const KEY_ID = 'local'
const EMBEDDED_DATABASE = 'postgres'

/** Below it, `FOR UPDATE SKIP LOCKED` on partitions and what migrations use is not there. */
const SERVER_VERSION_MIN = 140_000

/** The persistent state that every command opens: the database with its schema, and the encryption keys. */
export interface Storage extends AsyncDisposable {
  readonly database: Database
  /**
   * The same database for background work, by connections of its own where a process also serves requests: neither waits for a
   * connection that the other holds. Absent in tests.
   */
  readonly backgroundDatabase?: Database
  readonly secrets: SecretStore
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
  readonly logger: Logger
}

/**
 * Opens the database and the keys: locks the data directory and starts its PostgreSQL, or joins the one that runs there (or
 * connects to DATABASE_URL); migrates; reads the keys. The last process to close it stops the embedded PostgreSQL.
 *
 * @throws ConfigError, one line that names the setting: the data directory cannot be used or belongs to another `start`, the
 * database cannot be reached or is too old, the keys are missing, malformed or not those of the database
 */
export async function openStorage(config: Config, options: StorageOptions): Promise<Storage> {
  await using opened = new AsyncDisposableStack()
  const embedded = config.databaseUrl === undefined ? await startOrJoinEmbedded(config, options, opened) : undefined
  const keyRing = await openKeyRing(config)
  const connection = { target: targetOf(config, embedded), applicationName: options.applicationName }
  const database = opened.use(new Database({ ...connection, poolMax: config.databasePoolMax }))
  await checkServer(config, database)
  await migrate(database)
  await checkKeys(config, database, keyRing)
  const databaseWatch = opened.use(watchDatabase(config, connection, options.logger))
  const backgroundDatabase = options.isStart
    ? opened.use(new Database({ ...connection, poolMax: config.databasePoolMax }))
    : database
  for (const each of new Set([database, backgroundDatabase])) databaseWatch.attach(each)
  const resources = opened.move()
  return {
    database,
    backgroundDatabase,
    secrets: createSecretStore(keyRing),
    embedded,
    databaseWatch,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

async function startOrJoinEmbedded(
  { dataDir }: Config,
  { isStart }: StorageOptions,
  opened: AsyncDisposableStack,
): Promise<EmbeddedServer> {
  try {
    const lock = await DataDirectoryLock.acquire(dataDir, isStart)
    let stop = async () => {}
    opened.defer(() => lock.release(() => stop()))
    const server = await startEmbeddedServer({ dataDir })
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

/** @throws ConfigError when the first connection fails, or the server is too old */
async function checkServer({ databaseUrl, dataDir }: Config, { pool }: Database): Promise<void> {
  const name = databaseUrl === undefined ? `PATCHBAY_DATA_DIR ${dataDir}` : 'DATABASE_URL'
  const version = await readServerVersion(pool).catch((cause: unknown) => {
    throw new ConfigError(`${name}: the database cannot be used: ${messageOf(cause)}`, { cause })
  })
  if (version >= SERVER_VERSION_MIN) return
  throw new ConfigError(`${name}: the server is PostgreSQL ${Math.floor(version / 10_000)}, and 14 or newer is needed`)
}

/** @throws ConfigError when stored secrets are encrypted under a key that is not configured */
async function checkKeys(config: Config, { pool }: Database, keyRing: KeyRing): Promise<void> {
  const keyId = await findUnreadableKey(pool, keyRing)
  if (keyId === undefined) return
  const where = config.databaseUrl === undefined ? config.dataDir : 'the database of DATABASE_URL'
  throw new ConfigError(`PATCHBAY_ENCRYPTION_KEYS lacks the key ${keyId} that secrets in ${where} are encrypted under`)
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

/**
 * The configured keys, or with the embedded database the key in the data directory, generated on the first start.
 *
 * With DATABASE_URL the key must be configured: one in the data directory would be lost with this machine while the data survives.
 */
async function openKeyRing(config: Config): Promise<KeyRing> {
  if (config.encryptionKeys !== undefined) return readKeyRing('PATCHBAY_ENCRYPTION_KEYS', config.encryptionKeys)
  if (config.databaseUrl !== undefined) {
    const example = 'k1:$(openssl rand -base64 32)'
    throw new ConfigError(`PATCHBAY_ENCRYPTION_KEYS is required with DATABASE_URL, for example ${example}`)
  }
  const file = join(config.dataDir, KEY_FILE)
  if (!existsSync(file)) await writeNew(file, `${generateKeyRingText(KEY_ID)}\n`)
  return readKeyRing(file, readFileSync(file, 'utf8').trim())
}

function readKeyRing(source: string, text: string): KeyRing {
  try {
    return parseKeyRing(text)
  } catch (error) {
    throw new ConfigError(`${source} ${error instanceof Error ? error.message : String(error)}`)
  }
}

/**
 * Writes a file that only its owner may read, unless it exists.
 *
 * It appears with its whole content (written to a temporary file, then linked), so another process never reads half a key.
 */
async function writeNew(file: string, text: string): Promise<void> {
  const temporary = `${file}.${process.pid}`
  await writeFile(temporary, text, { mode: 0o600 })
  await link(temporary, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(temporary)
}
