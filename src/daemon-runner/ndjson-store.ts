import { constants } from 'node:fs'
import { copyFile, type FileHandle, link, mkdir, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isJsonObject, type Json } from '../base/index.ts'
import { leaseLost } from '../runs/index.ts'
import { type RunHolder, type RunStore, type Store, type StoredPage, storageName } from './store.ts'

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

/** Where a page lies. An alias, because only aliases are assignable to JSON. */
type PageExtent = {
  readonly path: string
  readonly sequence: number
  readonly start: number
  readonly end: number
}

/** What one holder of a run has written, and its predecessors before it. */
interface Journal extends AsyncDisposable {
  /** How much of the file counts, bytes. */
  lengthOf(path: string): number
  /** Where the page begins: at the end of its file, or where it lay when it was the last one that was written. */
  pageStart(path: string, sequence: number): number
  /** From now on the page counts. */
  commit(place: PageExtent): Promise<void>
  /** @throws Failure LEASE_LOST when another holder has taken the run */
  assertHeld(): Promise<void>
}

/** Times that somebody else may come first before taking a run over is given up. */
const TAKEOVER_ATTEMPTS_MAX = 100

/**
 * Takes the journal of a run over: makes the next one of its journals, `<run>.<n>`, which begins with what the last one
 * says. There can be only one of that name, so whoever comes too late is told, and what an earlier holder still writes into
 * its own is read by nobody.
 *
 * @throws Failure LEASE_LOST when a later holder has taken the run
 */
async function takeOverJournal(directory: string, holder: RunHolder): Promise<Journal> {
  await mkdir(directory, { recursive: true })
  for (let attempt = 1; attempt <= TAKEOVER_ATTEMPTS_MAX; attempt++) {
    const last = await latestJournalNumber(directory, holder.runId)
    const pathOf = (number: number) => join(directory, `${holder.runId}.${number}`)
    const places = last === 0 ? [] : await readExtents(pathOf(last), holder)
    const file = places && (await createJournal(pathOf(last + 1), holder, places))
    if (places === undefined || file === undefined) continue
    if (last > 0) await unlink(pathOf(last)).catch(() => {})
    return new FileJournal(holder.runId, file, [pathOf(last + 1), pathOf(last + 2)], places)
  }
  throw leaseLost(holder.runId)
}

class FileJournal implements Journal {
  readonly #runId: string
  readonly #file: FileHandle
  readonly #own: string
  readonly #next: string
  /** The last page of each file, the one written last at the end. */
  readonly #places: Map<string, PageExtent>
  #last: PageExtent | undefined

  constructor(runId: string, file: FileHandle, [own, next]: readonly [string, string], places: readonly PageExtent[]) {
    this.#runId = runId
    this.#file = file
    this.#own = own
    this.#next = next
    this.#places = new Map(places.map((place) => [place.path, place]))
    this.#last = places.at(-1)
  }

  lengthOf(path: string): number {
    return this.#places.get(path)?.end ?? 0
  }

  pageStart(path: string, sequence: number): number {
    const last = this.#last
    return last?.sequence === sequence && last.path === path ? last.start : this.lengthOf(path)
  }

  async commit(place: PageExtent): Promise<void> {
    await appendLines(this.#file, [place])
    this.#places.set(place.path, place)
    this.#last = place
  }

  async assertHeld(): Promise<void> {
    if (!(await fileExists(this.#own)) || (await fileExists(this.#next))) throw leaseLost(this.#runId)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
  }
}

/** Whether there is something of that name. */
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

/** The last place in each file, in the order in which they were written; `undefined` when the journal is gone again. */
async function readExtents(
  path: string,
  { runId, leasedUntil }: RunHolder,
): Promise<readonly PageExtent[] | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  // What stands behind the last line break was not written to its end.
  const [head, ...lines] = text
    .split('\n')
    .slice(0, -1)
    .map((line): Json => JSON.parse(line))
  if (isJsonObject(head) && new Date(String(head.leased_until)) > leasedUntil) throw leaseLost(runId)
  const places = new Map<string, PageExtent>()
  for (const line of lines) {
    const place = line as PageExtent
    places.delete(place.path)
    places.set(place.path, place)
  }
  return [...places.values()]
}

/** Makes the journal with all it begins with, or nothing. @returns `undefined` when somebody else was first */
async function createJournal(
  path: string,
  { leaseId, leasedUntil }: RunHolder,
  places: readonly PageExtent[],
): Promise<FileHandle | undefined> {
  const own = `${path}.${leaseId}`
  const file = await open(own, 'w')
  try {
    await appendLines(file, [{ leased_until: leasedUntil.toISOString(), lease_id: leaseId }, ...places])
    await link(own, path)
    return file
  } catch (error) {
    await file.close()
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return undefined
    throw error
  } finally {
    await unlink(own)
  }
}

async function appendLines(file: FileHandle, lines: readonly Json[]): Promise<void> {
  await file.appendFile(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  await file.datasync()
}
