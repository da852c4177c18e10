import type { CallLog, LoggedCall } from '../../engine/proxy/index.ts'
import { type Clock, detachFromRequest } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import { FairQueue } from '../../foundation/fair/index.ts'
import type { SecretStore } from '../../foundation/secrets/index.ts'
import { CallHours } from '../figures/call-hours.ts'
import { addCallHours } from '../figures/sql.ts'
import { sealContents } from './content.ts'
import { addDrops, insertLogEntries } from './sql.ts'

/** What the writer needs. */
export interface CallLogWriterDeps {
  readonly database: Pick<Database, 'transaction'>
  readonly secrets: Pick<SecretStore, 'encryptAllFor'>
  readonly clock: Pick<Clock, 'sleep'>
  /** A number in [0, 1). */
  readonly random: () => number
  /** One of so many successes is kept with headers and bodies; 0: none. */
  readonly sampleEvery: number
  readonly onWriteError: (error: unknown) => void
}

/** How long entries wait for others, so that they share a statement. */
const FLUSH_INTERVAL_MS = 250
/** How long counts of dropped entries wait after the database has failed. */
const RETRY_INTERVAL_MS = 5_000
const ENTRIES_PER_BATCH = 500
/** Entries and bytes that wait, of one environment and of all together. */
const OWNER_ENTRIES_MAX = 2_000
const OWNER_BYTES_MAX = 4 * 1024 * 1024
const ENTRIES_MAX = 20_000
const BYTES_MAX = 32 * 1024 * 1024
/** Beside its texts, of one entry. */
const ENTRY_BYTES = 500
/** Environments whose dropped entries are counted while they wait to be stored. */
const COUNTED_OWNERS_MAX = 1_000

interface WaitingEntry {
  readonly owner: string
  readonly call: LoggedCall
  readonly bytes: number
}

/**
 * Buffers the entries of one process, and writes them in batches that environments share by turns. Bounded in entries and bytes,
 * for each environment and for all: what does not fit is dropped, and no request waits for the log. How much was dropped is stored
 * with the next batch, and so are requests by the hour, which are counted before an entry can be dropped.
 */
export class CallLogWriter implements CallLog, AsyncDisposable {
  readonly #deps: CallLogWriterDeps
  /** Called with the number of entries that were not stored; set where they are counted. */
  onDrop: ((entries: number) => void) | undefined
  /** Called with every request, stored or not; set where they are counted. */
  onRequest: ((call: Pick<LoggedCall, 'integrationName' | 'class'>) => void) | undefined
  readonly #queue = new FairQueue<WaitingEntry>(OWNER_ENTRIES_MAX)
  readonly #bytesOf = new Map<string, number>()
  /** Not stored yet. */
  #droppedOf = new Map<string, number>()
  /** Counts every request, also those whose entries are dropped. */
  readonly #hours = new CallHours()
  #bytes = 0
  #isScheduled = false
  #writing: Promise<void> = Promise.resolve()

  constructor(deps: CallLogWriterDeps) {
    this.#deps = deps
  }

  record(call: LoggedCall): void {
    this.onRequest?.(call)
    this.#hours.record(call)
    const owner = call.environmentId
    const bytes = bytesOf(call)
    if (this.#fits(owner, bytes)) {
      this.#queue.push({ owner, call, bytes })
      this.#add(owner, bytes)
    } else this.#drop(owner)
    this.#schedule(FLUSH_INTERVAL_MS)
  }

  isSampled(): boolean {
    const { sampleEvery, random } = this.#deps
    return sampleEvery > 0 && random() * sampleEvery < 1
  }

  /** Writes what waits now. Never rejects: what cannot be written is dropped. */
  flush(): Promise<void> {
    this.#writing = this.#writing.then(() => detachFromRequest(() => this.#writeAll()))
    return this.#writing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.flush()
  }

  #schedule(delayMs: number): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    void detachFromRequest(() => this.#flushAfter(delayMs))
  }

  async #flushAfter(delayMs: number): Promise<void> {
    await this.#deps.clock.sleep(delayMs)
    this.#isScheduled = false
    await this.flush()
  }

  async #writeAll(): Promise<void> {
    let isStored = true
    while (this.#queue.size > 0 || ((this.#droppedOf.size > 0 || !this.#hours.isEmpty) && isStored)) {
      const batch: WaitingEntry[] = []
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
        batch.push(next)
        if (batch.length === ENTRIES_PER_BATCH) break
      }
      isStored = await this.#write(batch)
    }
    if (!isStored) this.#schedule(RETRY_INTERVAL_MS)
  }

  /** @returns whether it was stored; otherwise it is dropped, and what was counted before stays counted */
  async #write(batch: readonly WaitingEntry[]): Promise<boolean> {
    const drops = this.#droppedOf
    this.#droppedOf = new Map()
    const hours = this.#hours.take()
    const calls = batch.map(({ call }) => call)
    let isCommitting = false
    try {
      const { database, secrets } = this.#deps
      await database.transaction(async (tx) => {
        isCommitting = false
        if (calls.length > 0) await insertLogEntries(tx, calls, await sealContents(secrets, tx, calls))
        await addCallHours(tx, hours)
        await addDrops(tx, drops)
        isCommitting = true
      })
      return true
    } catch (error) {
      this.#deps.onWriteError(error)
      // A commit that failed may have taken place, and no request counts twice.
      if (!isCommitting) this.#hours.putBack(hours)
      for (const [owner, entries] of drops) this.#count(owner, entries)
      for (const { owner } of batch) this.#drop(owner)
      return false
    } finally {
      for (const { owner, bytes } of batch) this.#add(owner, -bytes)
    }
  }

  #fits(owner: string, bytes: number): boolean {
    const isOwnerFull = this.#queue.isFull(owner) || (this.#bytesOf.get(owner) ?? 0) + bytes > OWNER_BYTES_MAX
    return !isOwnerFull && this.#queue.size < ENTRIES_MAX && this.#bytes + bytes <= BYTES_MAX
  }

  #add(owner: string, bytes: number): void {
    this.#bytes += bytes
    const sum = (this.#bytesOf.get(owner) ?? 0) + bytes
    if (sum === 0) this.#bytesOf.delete(owner)
    else this.#bytesOf.set(owner, sum)
  }

  #drop(owner: string): void {
    this.#count(owner, 1)
    this.onDrop?.(1)
  }

  #count(owner: string, entries: number): void {
    if (!this.#droppedOf.has(owner) && this.#droppedOf.size >= COUNTED_OWNERS_MAX) {
      const [oldest] = this.#droppedOf.keys()
      if (oldest !== undefined) this.#droppedOf.delete(oldest)
    }
    this.#droppedOf.set(owner, (this.#droppedOf.get(owner) ?? 0) + entries)
  }
}

function bytesOf({ url, errorMessage = '', content }: LoggedCall): number {
  const texts = ENTRY_BYTES + 2 * (url.length + errorMessage.length)
  if (content === undefined) return texts
  const { requestHeaders, requestBody, responseHeaders, responseBody } = content
  const headers = [...Object.entries(requestHeaders), ...Object.entries(responseHeaders)]
  const headerLength = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  return texts + 2 * (headerLength + requestBody.length + responseBody.length)
}
