import type { Random } from '../base/backoff.ts'
import { type Clock, SECOND_MS } from '../base/clock.ts'
import { newId } from '../base/ids.ts'
import { PollLoop } from '../base/poll-loop.ts'
import type { Database } from '../database/database.ts'
import { describeError, type Logger } from '../telemetry/logger.ts'
import { type KeyRing, keyRingEntries, parseKeyRing } from './key-ring.ts'
import { findUnreadableKey } from './secret-store.ts'
import { awaitDataKeysUnderWay } from './sql/data-key.ts'
import { announceProcess, deleteProcess, listKeyRingProcesses } from './sql/key-process.ts'

/** What the watch of a key ring takes. */
export interface KeyRingWatchDeps {
  readonly database: Pick<Database, 'pool' | 'transaction'>
  readonly ring: KeyRing
  /** Reads the text of the keys anew; absent when they cannot change while the process runs. */
  readonly readText?: (() => Promise<string>) | undefined
  /** Names this process for people: command, host and process id. */
  readonly name: string
  readonly clock: Pick<Clock, 'sleep'>
  readonly random: Random
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>
}

/** Within twice this, a changed file is in use and other processes know it. */
const INTERVAL_MS = 5 * SECOND_MS

/**
 * Announces which key encryption keys this process has, chooses the one that writes, and takes over a changed key file.
 *
 * The first key of the settings that every live process has is the one that writes, so that no process writes what another
 * one cannot read, in whatever order new settings reach them. Data keys decide it exactly, in their transaction
 * (`readOthersUnderLock`); what clients hold follows the last round.
 */
export class KeyRingWatch implements AsyncDisposable {
  readonly id = newId()
  readonly #deps: KeyRingWatchDeps
  readonly #loop: PollLoop
  /** The keys that are in use. */
  #text: string | undefined
  #reported: string | undefined

  constructor(deps: KeyRingWatchDeps) {
    this.#deps = deps
    const onError = (error: unknown, _loop: string, failures: number) => {
      if (failures === 1) deps.logger.warn(describeError(error), 'the encryption keys could not be announced')
      return INTERVAL_MS
    }
    const spec = { name: 'key-ring', intervalMs: INTERVAL_MS, runOnce: () => this.runOnce().then(() => false) }
    this.#loop = new PollLoop({ ...deps, onError }, spec)
  }

  /**
   * Announces the keys and begins to watch.
   *
   * @returns id of a key that is needed and not there: this process must not go on; `undefined`: all are there
   */
  async start(): Promise<string | undefined> {
    this.#text = await this.#deps.readText?.()
    const missing = await this.#findMissing(this.#deps.ring)
    if (missing === undefined) this.#loop.start()
    return missing
  }

  /** One round: reads the file, announces. */
  async runOnce(): Promise<void> {
    await this.#takeOver().catch((error: unknown) =>
      this.#deps.logger.error(
        describeError(error),
        'the file of encryption keys cannot be used; the keys stay as they are',
      ),
    )
    await this.#announce()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
    // Others forget it in time.
    await deleteProcess(this.#deps.database.pool, this.id).catch(() => undefined)
  }

  async #announce(knownKeys = this.#deps.ring.names): Promise<void> {
    const { database, ring, name } = this.#deps
    const others = (await listKeyRingProcesses(database.pool)).filter(({ id }) => id !== this.id)
    const writesWith = ring.chooseWriter(others.map((other) => other.knownKeys))
    await announceProcess(database.pool, { id: this.id, name, knownKeys, writesWith })
  }

  /** Takes over a changed file. A key that is gone from it stays in use as long as something is encrypted under it. */
  async #takeOver(): Promise<void> {
    const { ring, readText, logger } = this.#deps
    const text = await readText?.()
    if (text === undefined || text === this.#text) return
    const candidate = parseKeyRing(text)
    assertSameKeys(ring, candidate)
    const removed = keyRingEntries(this.#text ?? '').filter((entry) => !candidate.ids.includes(idOf(entry)))
    ring.replace([...keyRingEntries(text), ...removed].join(','))
    const missing = removed.length === 0 ? undefined : await this.#findMissing(candidate)
    if (missing !== undefined) return this.#reportKept(missing, text)
    ring.replace(text)
    this.#text = text
    logger.info({ keys: ring.ids }, 'the file of encryption keys has changed')
  }

  /** Once for each content of the file. */
  #reportKept(key: string, text: string): void {
    if (this.#reported !== text)
      this.#deps.logger.error(
        { key },
        'the file of encryption keys lacks a key that is needed: put it back; it is kept in use',
      )
    this.#reported = text
  }

  /** Whether a ring lacks a key that is needed. It is announced first: from then on no process uses another one for new data keys. */
  async #findMissing(ring: KeyRing): Promise<string | undefined> {
    const { database } = this.#deps
    await this.#announce(ring.names)
    await database.transaction((tx) => awaitDataKeysUnderWay(tx))
    return await findUnreadableKey(database.pool, ring)
  }
}

function idOf(entry: string): string {
  return entry.split(':')[0] ?? ''
}

/** @throws Error when an id names another key than before */
function assertSameKeys(before: KeyRing, after: KeyRing): void {
  const changed = after.names.find((name) => before.ids.includes(idOf(name)) && !before.names.includes(name))
  if (changed !== undefined)
    throw new Error(
      `the key ${idOf(changed)} has other bytes than before: give a new key a new id, and put the old one back`,
    )
}
