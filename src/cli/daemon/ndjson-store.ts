import { constants } from 'node:fs'
import {
  access,
  copyFile,
  type FileHandle,
  link,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  stat,
  unlink,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isJsonObject, type Json } from '../../foundation/json/index.ts'
import { leaseLost } from '../../sync/runs/index.ts'
import { type RunHolder, type RunStore, type Store, type StoredPage, storageName } from './store.ts'
import { withFileProblems } from './store-problem.ts'

/** Folder of the journals of runs. */
const JOURNAL_DIRECTORY = '.patchbay'

/**
 * Store of NDJSON files, `DIR/<resource>/<account>/<run>.ndjson`: a line per record, `{"_id", "record"}`. For one machine,
 * or daemons with a shared file system.
 *
 * A write-ahead journal per run: a page is committed when the journal records the length of its file with it. Bytes after
 * that, of a daemon that was killed while writing, are overwritten. A repeated page reextents its earlier version.
 */
export function openNdjsonStore(directory: string): Store {
  return {
    saveIntervalMs: 0,
    async check() {
      await withFileProblems(async () => {
        const journals = join(directory, JOURNAL_DIRECTORY)
        await mkdir(journals, { recursive: true })
        await access(directory, constants.W_OK | constants.X_OK)
        await access(journals, constants.W_OK | constants.X_OK)
      })
    },
    async open(holder) {
      const journal = await withFileProblems(() => takeOverJournal(join(directory, JOURNAL_DIRECTORY), holder))
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

  async write(page: StoredPage): Promise<void> {
    await withFileProblems(() => this.#write(page))
  }

  async #write({ resource, sequence, rows }: StoredPage): Promise<void> {
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
   * The file of this holder: a copy of the committed bytes is renamed over the file, so an earlier holder writes into a file
   * without a name.
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
    await file.truncate(this.#journal.committedLength(path))
    await rename(own, target)
    return file
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const file of this.#files.values()) await file.close()
    this.#files.clear()
    await this.#journal[Symbol.asyncDispose]()
  }
}

/** Byte range of a committed page. An alias, because only aliases are assignable to JSON. */
type PageExtent = {
  readonly path: string
  readonly sequence: number
  readonly start: number
  readonly end: number
}

/** Attempts to create the next journal, which another holder may win. */
const TAKEOVER_ATTEMPTS_MAX = 100

/**
 * Takes over the journal of a run: creates the next one, `<run>.<n>`, with the contents of the last one. Creating a file of
 * that name succeeds once, so it fences earlier holders: their journals are not read any more.
 *
 * @throws Failure LEASE_LOST when a later holder has taken the run
 */
async function takeOverJournal(directory: string, holder: RunHolder): Promise<Journal> {
  await mkdir(directory, { recursive: true })
  for (let attempt = 1; attempt <= TAKEOVER_ATTEMPTS_MAX; attempt++) {
    const last = await latestJournalNumber(directory, holder.runId)
    const pathOf = (number: number) => join(directory, `${holder.runId}.${number}`)
    const extents = last === 0 ? [] : await readExtents(pathOf(last), holder)
    const file = extents && (await createJournal(pathOf(last + 1), holder, extents))
    if (extents === undefined || file === undefined) continue
    if (last > 0) await unlink(pathOf(last)).catch(() => {})
    return new Journal(holder.runId, file, [pathOf(last + 1), pathOf(last + 2)], extents)
  }
  throw leaseLost(holder.runId)
}

/** Journal of a run: the pages that this holder and earlier ones have committed. */
class Journal implements AsyncDisposable {
  readonly #runId: string
  readonly #file: FileHandle
  readonly #own: string
  readonly #next: string
  /** Last page of each file, in the order of writing. */
  readonly #extents: Map<string, PageExtent>
  #last: PageExtent | undefined

  constructor(runId: string, file: FileHandle, [own, next]: readonly [string, string], extents: readonly PageExtent[]) {
    this.#runId = runId
    this.#file = file
    this.#own = own
    this.#next = next
    this.#extents = new Map(extents.map((extent) => [extent.path, extent]))
    this.#last = extents.at(-1)
  }

  /** Committed length of the file, bytes. */
  committedLength(path: string): number {
    return this.#extents.get(path)?.end ?? 0
  }

  /** Offset of the page: the committed end of its file, or its old offset when it was the last page written. */
  pageStart(path: string, sequence: number): number {
    const last = this.#last
    return last?.sequence === sequence && last.path === path ? last.start : this.committedLength(path)
  }

  /** Commits the page. */
  async commit(extent: PageExtent): Promise<void> {
    await appendLines(this.#file, [extent])
    this.#extents.set(extent.path, extent)
    this.#last = extent
  }

  /** @throws Failure LEASE_LOST when another holder has taken the run */
  async assertHeld(): Promise<void> {
    if (!(await fileExists(this.#own)) || (await fileExists(this.#next))) throw leaseLost(this.#runId)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
  }
}

async function fileExists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  )
}

async function latestJournalNumber(directory: string, runId: string): Promise<number> {
  const numbers = (await readdir(directory))
    .filter((name) => name.startsWith(`${runId}.`))
    .map((name) => Number(name.slice(runId.length + 1)))
  return Math.max(0, ...numbers.filter(Number.isInteger))
}

/** Last page of each file, in the order of writing; `undefined` when the journal has been reextentd meanwhile. */
async function readExtents(
  path: string,
  { runId, leasedUntil }: RunHolder,
): Promise<readonly PageExtent[] | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  // Text after the last line break is an incomplete line.
  const [head, ...lines] = text
    .split('\n')
    .slice(0, -1)
    .map((line): Json => JSON.parse(line))
  if (isJsonObject(head) && new Date(String(head.leased_until)) > leasedUntil) throw leaseLost(runId)
  const extents = new Map<string, PageExtent>()
  for (const line of lines) {
    const extent = line as PageExtent
    extents.delete(extent.path)
    extents.set(extent.path, extent)
  }
  return [...extents.values()]
}

/** Creates the journal with its first lines, atomically. @returns `undefined` when another holder has created it */
async function createJournal(
  path: string,
  { leaseId, leasedUntil }: RunHolder,
  extents: readonly PageExtent[],
): Promise<FileHandle | undefined> {
  const temporary = `${path}.${leaseId}`
  const file = await open(temporary, 'w')
  try {
    await appendLines(file, [{ leased_until: leasedUntil.toISOString(), lease_id: leaseId }, ...extents])
    await link(temporary, path)
    return file
  } catch (error) {
    await file.close()
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return undefined
    throw error
  } finally {
    await unlink(temporary)
  }
}

async function appendLines(file: FileHandle, lines: readonly Json[]): Promise<void> {
  await file.appendFile(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  await file.datasync()
}
