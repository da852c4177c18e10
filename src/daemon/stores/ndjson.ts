import { constants } from 'node:fs'
import { copyFile, type FileHandle, mkdir, open, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { RunHolder, RunStore, Store, StoredPage } from '../store.ts'
import { fileExists, type Journal, takeOverJournal } from './ndjson-journal.ts'
import { storageName } from './resource-name.ts'

/** Where the journals of runs are. */
const JOURNAL_DIRECTORY = '.patchbay'

/**
 * Records in files, `DIR/<resource>/<account>/<run>.ndjson`: a line per record, `{"_id", "record"}`. For one machine, or a
 * file system that its daemons share.
 *
 * A page counts once the journal of the run says how long its file is with it; what lies behind that, from a daemon that
 * died in the middle, is overwritten. A page that is repeated takes the place it had.
 */
export function openNdjsonStore(directory: string): Store {
  return {
    reportIntervalMs: 0,
    async open(holder) {
      const journal = await takeOverJournal(join(directory, JOURNAL_DIRECTORY), holder)
      return new NdjsonRun(directory, holder, journal)
    },
    async [Symbol.asyncDispose]() {},
  }
}

class NdjsonRun implements RunStore {
  readonly #directory: string
  readonly #holder: RunHolder
  readonly #journal: Journal
  readonly #files = new Map<string, FileHandle>()

  constructor(directory: string, holder: RunHolder, journal: Journal) {
    this.#directory = directory
    this.#holder = holder
    this.#journal = journal
  }

  async write({ resource, sequence, rows }: StoredPage): Promise<void> {
    await this.#journal.assertHeld()
    const { integratedAccountId, runId } = this.#holder
    const path = join(storageName(resource), integratedAccountId, `${runId}.ndjson`)
    const start = this.#journal.pageStart(path, sequence)
    const file = await this.#file(path)
    const text = Buffer.from(rows.map(({ key, record }) => `${JSON.stringify({ _id: key, record })}\n`).join(''))
    await file.truncate(start)
    await file.write(text, 0, text.length, start)
    await file.datasync()
    await this.#journal.commit({ path, sequence, start, end: start + text.length })
  }

  /**
   * The file in this holder's hands: with a copy of what counts in its place, an earlier holder goes on writing into a file
   * that nobody sees.
   */
  async #file(path: string): Promise<FileHandle> {
    const found = this.#files.get(path)
    if (found !== undefined) return found
    const target = join(this.#directory, path)
    const own = `${target}.${this.#holder.leaseId}`
    await mkdir(dirname(target), { recursive: true })
    if (await fileExists(target)) await copyFile(target, own, constants.COPYFILE_FICLONE)
    const file = await open(own, constants.O_RDWR | constants.O_CREAT)
    this.#files.set(path, file)
    await file.truncate(this.#journal.lengthOf(path))
    await rename(own, target)
    return file
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const file of this.#files.values()) await file.close()
    this.#files.clear()
    await this.#journal[Symbol.asyncDispose]()
  }
}
