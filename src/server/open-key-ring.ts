import { existsSync } from 'node:fs'
import { link, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { generateKeyRingText, type KeyRing, parseKeyRing } from '../foundation/secrets/index.ts'
import { type Config, ConfigError } from './config/config.ts'

const KEY_FILE = 'encryption.key'
const KEY_ID = 'local'

/** Where the key encryption keys of a process come from. */
export interface KeyRingSource {
  /** For messages: the name of the setting, or of the file. */
  readonly name: string
  /** The file that holds them, which may change while processes run; `undefined`: the setting itself does. */
  readonly file: string | undefined
  /** The text of the keys as it is now. */
  readText(): Promise<string>
}

/** Key encryption keys and their source. */
export interface OpenedKeyRing {
  readonly ring: KeyRing
  readonly source: KeyRingSource
}

/**
 * The configured keys, or with the embedded database those in the data directory, of which the first start generates one.
 *
 * With DATABASE_URL keys must be configured: one in the data directory would be lost with this machine while the data survives.
 *
 * @param isNew whether nothing is encrypted yet; asked where the data directory has no key
 * @throws ConfigError
 */
export async function openKeyRing(config: Config, isNew: () => Promise<boolean>): Promise<OpenedKeyRing> {
  const source = await sourceOf(config, isNew)
  try {
    return { ring: parseKeyRing(await source.readText()), source }
  } catch (error) {
    throw new ConfigError(`${source.name} ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

async function sourceOf(
  { encryptionKeys, encryptionKeysFile, databaseUrl, dataDir }: Config,
  isNew: () => Promise<boolean>,
): Promise<KeyRingSource> {
  if (encryptionKeys !== undefined)
    return { name: 'PATCHBAY_ENCRYPTION_KEYS', file: undefined, readText: async () => encryptionKeys }
  if (encryptionKeysFile !== undefined)
    return fileSource(`PATCHBAY_ENCRYPTION_KEYS_FILE ${encryptionKeysFile}`, encryptionKeysFile)
  if (databaseUrl !== undefined) {
    const example = 'k1:$(openssl rand -base64 32)'
    throw new ConfigError(`PATCHBAY_ENCRYPTION_KEYS is required with DATABASE_URL, for example ${example}`)
  }
  const file = join(dataDir, KEY_FILE)
  if (!existsSync(file)) {
    if (!(await isNew()))
      throw new ConfigError(
        `${file} is missing, and secrets in ${dataDir} are encrypted under it: restore it from a copy`,
      )
    await writeNew(file, `${generateKeyRingText(KEY_ID)}\n`)
  }
  return fileSource(file, file)
}

function fileSource(name: string, file: string): KeyRingSource {
  const readText = async () => (await readFile(file, 'utf8').catch(throwReadable)).trim()
  return { name, file, readText }
}

function throwReadable(error: NodeJS.ErrnoException): never {
  throw new Error(`cannot be read: ${error.code}`, { cause: error })
}

/**
 * Replaces the content of a key file: processes read the old or the new one, never a part. Its mode stays.
 *
 * @throws ConfigError when the file cannot be written, as that of a mounted secret
 */
export async function writeKeyFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.${process.pid}`
  try {
    const { mode } = await stat(file)
    await writeFile(temporary, `${text}\n`, { mode: mode & 0o777, flush: true })
    await rename(temporary, file)
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => undefined)
    const code = cause instanceof Error && 'code' in cause ? cause.code : cause
    throw new ConfigError(`${file} cannot be written: ${code}`, { cause })
  }
}

/**
 * Writes a file that only its owner may read, unless it exists.
 *
 * It appears with its whole content (written to a temporary file, then linked), so another process never reads half a key.
 */
async function writeNew(file: string, text: string): Promise<void> {
  const temporary = `${file}.${process.pid}`
  await writeFile(temporary, text, { mode: 0o600, flush: true })
  await link(temporary, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(temporary)
  // What is encrypted under the key may be on disk before the entry of its file.
  const directory = await open(dirname(file))
  await directory.sync().finally(() => directory.close())
}
