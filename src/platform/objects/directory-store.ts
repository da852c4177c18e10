import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Failure, newId } from '../../foundation/base/index.ts'
import { type ObjectName, type ObjectStore, objectPath } from './object-store.ts'

/**
 * Objects as files that only their owner may read. An object appears with its whole content: it is written to a temporary
 * file, synced and renamed.
 */
export function createDirectoryStore(directory: string): ObjectStore {
  const fileOf = (name: ObjectName) => join(directory, objectPath(name))
  return {
    async put(name, bytes) {
      const file = fileOf(name)
      const temporary = `${file}.${newId()}`
      await asUnavailable(async () => {
        await mkdir(dirname(file), { recursive: true, mode: 0o700 })
        await writeSynced(temporary, bytes)
        await rename(temporary, file)
      }).catch(async (error: unknown) => {
        await rm(temporary, { force: true }).catch(() => undefined)
        throw error
      })
    },
    get: (name) => asUnavailable(() => readFile(fileOf(name)).catch(undefinedIfMissing)),
    delete: (name) => asUnavailable(() => rm(fileOf(name), { force: true })),
  }
}

async function writeSynced(file: string, bytes: Uint8Array): Promise<void> {
  await using handle = await open(file, 'wx', 0o600)
  await handle.writeFile(bytes)
  await handle.sync()
}

function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

async function asUnavailable<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'an error'
    throw new Failure('OBJECT_STORE_UNAVAILABLE', `the directory of the object store cannot be used: ${code}`, {
      cause,
    })
  }
}
