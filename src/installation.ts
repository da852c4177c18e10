import { existsSync, readFileSync } from 'node:fs'
import { link, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Config, ConfigError } from './config.ts'
import {
  createSecrets,
  Database,
  type DatabaseTarget,
  type EmbeddedServer,
  migrate,
  type Secrets,
  startEmbedded,
} from './storage/index.ts'
import { generateKeyRingText, type KeyRing, parseKeyRing } from './vault/index.ts'

const KEY_FILE = 'encryption.key'
const KEY_ID = 'local'
const EMBEDDED_DATABASE = 'postgres'

/** What every command stands on: the database with its schema, and the keys. */
export interface Installation extends AsyncDisposable {
  readonly database: Database
  readonly secrets: Secrets
  /** The embedded PostgreSQL, unless DATABASE_URL names another. */
  readonly embedded: EmbeddedServer | undefined
}

/** How a command uses the installation. */
export interface InstallationOptions {
  /** Shown in `pg_stat_activity`. */
  readonly applicationName: string
  /** Whether closing stops an embedded server that this process found running; it always stops one it started itself. */
  readonly ownsEmbedded: boolean
}

/**
 * Opens the installation: starts or adopts the embedded PostgreSQL (or connects to DATABASE_URL), migrates, reads the keys.
 *
 * @throws ConfigError when DATABASE_URL is used without PATCHBAY_ENCRYPTION_KEYS, or the keys cannot be read
 */
export async function openInstallation(config: Config, options: InstallationOptions): Promise<Installation> {
  const keyRing = await openKeyRing(config)
  const embedded = config.databaseUrl === undefined ? await startEmbedded({ dataDir: config.dataDir }) : undefined
  const database = new Database({
    target: targetOf(config, embedded),
    poolMax: config.databasePoolMax,
    applicationName: options.applicationName,
  })
  const close = async () => {
    await database[Symbol.asyncDispose]()
    if (embedded !== undefined && (options.ownsEmbedded || !embedded.adopted)) await embedded.stop()
  }
  try {
    await migrate(database)
  } catch (error) {
    await close()
    throw error
  }
  return { database, secrets: createSecrets(keyRing), embedded, [Symbol.asyncDispose]: close }
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
 * The configured keys, or with the embedded database the key in the data directory, made on the first start.
 *
 * A key beside a database elsewhere would be lost with this machine while the data lives on: there it must be configured.
 */
async function openKeyRing(config: Config): Promise<KeyRing> {
  if (config.encryptionKeys !== undefined) return readKeyRing('PATCHBAY_ENCRYPTION_KEYS', config.encryptionKeys)
  if (config.databaseUrl !== undefined) {
    const example = 'k1:$(openssl rand -base64 32)'
    throw new ConfigError(`PATCHBAY_ENCRYPTION_KEYS is required with DATABASE_URL, for example ${example}`)
  }
  const file = join(config.dataDir, KEY_FILE)
  await mkdir(config.dataDir, { recursive: true, mode: 0o711 })
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
 * Writes a file that only its owner may read; of two processes at once the first one's stands.
 *
 * It appears with its whole content (written beside, then linked): nobody reads half a key.
 */
async function writeNew(file: string, text: string): Promise<void> {
  const beside = `${file}.${process.pid}`
  await writeFile(beside, text, { mode: 0o600 })
  await link(beside, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(beside)
}
