import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'
import type { Random } from '../base/backoff.ts'
import { type Clock, MINUTE_MS, SECOND_MS, withTimeout } from '../base/clock.ts'
import { PollLoop } from '../base/poll-loop.ts'
import { type Logger, summariseError } from '../telemetry/logger.ts'
import type { HealthProblem } from '../telemetry/metrics-server.ts'
import { Database, type DatabaseOptions, type Db, execute, queryOne } from './database.ts'
import { type DatabaseReason, findDatabaseProblem, READ_ONLY, sqlState, UNREACHABLE } from './problems.ts'

/** What the health check checks, and how it restarts a server. */
export interface HealthCheckOptions {
  /** How to connect; the check has one connection of its own, so that a busy pool does not look like a dead server. */
  readonly connection: DatabaseOptions
  readonly clock: Clock
  readonly random: Random
  readonly logger: Pick<Logger, 'info' | 'warn'>
  /** Restarts a server that this process manages. Called at every check that finds it unreachable; may reject. */
  readonly restart?: (() => Promise<void>) | undefined
}

const CHECK_INTERVAL_MS = SECOND_MS
/** A server that answers later than this counts as down. */
const CHECK_TIMEOUT_MS = 5 * SECOND_MS
/** A check that takes longer makes the process not ready, before it counts as failed. */
const READY_WITHIN_MS = SECOND_MS
/** A condition under which a statement failed lasts for so long after the last such statement, so that health does not flap. */
const HOLD_MS = 5 * SECOND_MS
/** Receivers of signed requests accept timestamps that are up to 5 minutes off, authorization servers less. */
const CLOCK_OFFSET_MAX_MS = MINUTE_MS
/** A problem is logged again while it lasts. */
const REMIND_MS = 10 * MINUTE_MS

/** What one answer of the server says. */
interface CheckedState {
  readonly isReadOnly: boolean
  /** By how much the clock of this process is ahead of the server's, ms; negative: behind. */
  readonly clockOffsetMs: number
}

/** A condition that a failed statement showed, and when. */
interface ObservedProblem extends HealthProblem {
  readonly atMs: number
}

/**
 * Health check of the database, of this process's clock and of its open files: one cheap query a second, however many read its result.
 *
 * The query tells whether the server can be reached, takes writes, and agrees about the time. What it cannot tell, such as a full disk, under which reads succeed, or
 * that no further connection is accepted, is learnt from the statements that fail (`attach`). Such a problem lasts until a new connection can write as
 * much as a statement of the product needs, and none has failed for `HOLD_MS`.
 */
export class DatabaseHealthCheck implements AsyncDisposable {
  readonly #options: HealthCheckOptions
  #database: Database
  readonly #loop: PollLoop
  readonly #stop = new AbortController()
  readonly #listeners: ((problem: HealthProblem | undefined) => void)[] = []
  readonly #errorCounts = new Map<DatabaseReason, number>()
  #isStarted = false
  #observed: ObservedProblem | undefined
  #problem: HealthProblem | undefined
  #restartProblem: HealthProblem | undefined
  #mustReconnect = false
  #loggedAtMs = 0
  #clockOffsetMs = 0
  /** When the check under way began; undefined between checks. */
  #checkingSinceMs: number | undefined

  constructor(options: HealthCheckOptions) {
    this.#options = options
    this.#database = this.#connect()
    this.#loop = new PollLoop(
      { clock: options.clock, random: options.random, onError: () => undefined },
      { name: 'database-health', intervalMs: CHECK_INTERVAL_MS, runOnce: () => this.check() },
    )
  }

  /** Checks once, then again and again; later calls do nothing. */
  async start(): Promise<void> {
    if (this.#isStarted) return
    this.#isStarted = true
    await this.check()
    this.#loop.start()
  }

  /** Why the process is not healthy; `undefined`: it is. */
  get problem(): HealthProblem | undefined {
    return this.#problem
  }

  /** The same for readiness, which changes sooner: also while the database has not answered the check under way for a second. */
  get readinessProblem(): HealthProblem | undefined {
    const sinceMs = this.#checkingSinceMs
    const isLate = sinceMs !== undefined && this.#options.clock.monotonicMs() - sinceMs > READY_WITHIN_MS
    return this.#problem ?? (isLate ? UNREACHABLE : undefined)
  }

  /** By how many seconds the clock of this process is ahead of the database's; negative: behind. */
  get clockOffsetSeconds(): number {
    return this.#clockOffsetMs / SECOND_MS
  }

  /** How many statements and connections failed, by condition of the database. */
  get errorCounts(): ReadonlyMap<DatabaseReason, number> {
    return this.#errorCounts
  }

  /** Calls the listener now and at every change. */
  onChange(listener: (problem: HealthProblem | undefined) => void): void {
    this.#listeners.push(listener)
    listener(this.#problem)
  }

  /**
   * Learns from the statements of this database that fail. When it takes writes again, its connections are renewed: a session that
   * was opened under `default_transaction_read_only`, or on a standby, stays read-only.
   */
  attach(database: Database): void {
    database.onError((error) => this.#observe(error))
    let wasReadOnly = false
    this.onChange((problem) => {
      const isReadOnly = problem?.reason === READ_ONLY.reason
      if (wasReadOnly && !isReadOnly) database.renewConnections()
      wasReadOnly = isReadOnly
    })
  }

  /** One check. Never rejects. @returns false: the next check follows after the interval */
  async check(): Promise<boolean> {
    this.#checkingSinceMs = this.#options.clock.monotonicMs()
    const problem = findFileProblem() ?? (await this.#findProblem())
    this.#checkingSinceMs = undefined
    if (!this.#stop.signal.aborted) this.#set(problem)
    return false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#database[Symbol.asyncDispose]()
    await this.#loop[Symbol.asyncDispose]()
  }

  #observe(error: unknown): void {
    const found = findDatabaseProblem(error)
    if (found === undefined || !this.#isStarted) return
    const { reason, message } = found
    this.#errorCounts.set(reason, (this.#errorCounts.get(reason) ?? 0) + 1)
    // Whether the server can be reached is the checks' to tell: one ended connection says little.
    if (reason === UNREACHABLE.reason) {
      // The connection of the checks may go on where none can be opened.
      this.#mustReconnect = true
      return
    }
    this.#observed = { reason, message, atMs: this.#options.clock.monotonicMs() }
    if (this.#problem === undefined || this.#problem.reason === CLOCK_WRONG) this.#set(this.#observed)
  }

  async #findProblem(): Promise<HealthProblem | undefined> {
    try {
      if (this.#problem !== undefined || this.#mustReconnect) await this.#reconnect()
      this.#mustReconnect = false
      const { isReadOnly, clockOffsetMs } = await this.#readState()
      this.#clockOffsetMs = clockOffsetMs
      this.#restartProblem = undefined
      if (await this.#isObservedStill()) return this.#observed
      return isReadOnly ? READ_ONLY : findClockProblem(clockOffsetMs)
    } catch (error) {
      const found = findDatabaseProblem(error) ?? UNREACHABLE
      if (found.reason !== UNREACHABLE.reason) return found
      this.#set(this.#restartProblem ?? found)
      this.#restartProblem = await this.#restart()
      return this.#restartProblem ?? found
    }
  }

  /**
   * Takes a new connection for the checks, after a failure and while there is a problem: an old one may go on where none can
   * be opened, or stay read-only where others may write. It is closed later, so that its place is not the one that is taken.
   */
  async #reconnect(): Promise<void> {
    const fresh = this.#connect()
    try {
      await this.#within(execute(fresh.pool, 'select 1'))
    } catch (error) {
      void fresh[Symbol.asyncDispose]().catch(() => undefined)
      throw error
    }
    const before = this.#database
    this.#database = fresh
    void before[Symbol.asyncDispose]().catch(() => undefined)
  }

  /** @throws when the server does not answer, not even on a new connection: a restart or a pooler may have closed the old one */
  async #readState(): Promise<CheckedState> {
    try {
      return await this.#within(this.#queryState())
    } catch {
      await this.#reconnect()
      return await this.#within(this.#queryState())
    }
  }

  async #queryState(): Promise<CheckedState> {
    const { clock } = this.#options
    const { pool } = this.#database
    const startedMs = clock.monotonicMs()
    const found = await queryOne<{ readonly isReadOnly: boolean; readonly now: Date }>(pool, STATE_SQL)
    const tookMs = clock.monotonicMs() - startedMs
    const localMs = clock.now().getTime() - tookMs / 2
    return {
      isReadOnly: found?.isReadOnly ?? false,
      clockOffsetMs: localMs - (found?.now.getTime() ?? localMs),
    }
  }

  /** Whether a condition lasts that failed statements showed. @throws when as much cannot be written as they may need */
  async #isObservedStill(): Promise<boolean> {
    const observed = this.#observed
    if (observed === undefined) return false
    await this.#within(assertWritable(this.#database))
    const heldMs = this.#options.clock.monotonicMs() - observed.atMs
    if (this.#observed !== observed || heldMs < HOLD_MS) return true
    this.#observed = undefined
    return false
  }

  #connect(): Database {
    return new Database({ ...this.#options.connection, poolMax: 1 })
  }

  /** @throws the error of the work, or one that says that it took too long */
  async #within<Result>(work: Promise<Result>): Promise<Result> {
    const done = work.then((result) => ({ result }))
    const found = await withTimeout(this.#options.clock, done, CHECK_TIMEOUT_MS, this.#stop.signal)
    if (found === undefined) throw new Error('timeout expired: the database does not answer')
    return found.result
  }

  /** Restarts a server that this process manages. @returns why that failed; `undefined`: it did not */
  async #restart(): Promise<HealthProblem | undefined> {
    try {
      await this.#options.restart?.()
      return undefined
    } catch (error) {
      const { error: why } = summariseError(error)
      const { reason, message } = findDatabaseProblem(error) ?? UNREACHABLE
      return { reason, message: `${message}; ${why}` }
    }
  }

  #set(problem: HealthProblem | undefined): void {
    const before = this.#problem
    this.#problem = problem
    this.#log(before, problem)
    if (before?.reason === problem?.reason && before?.message === problem?.message) return
    for (const listener of this.#listeners) listener(problem)
  }

  /** One line when a problem begins, one in ten minutes while it lasts, one when it has ended. */
  #log(before: HealthProblem | undefined, problem: HealthProblem | undefined): void {
    const { clock, logger } = this.#options
    const nowMs = clock.monotonicMs()
    if (problem === undefined) {
      if (before !== undefined) logger.info({ reason: before.reason }, 'healthy again')
      return
    }
    if (before?.reason === problem.reason && nowMs - this.#loggedAtMs < REMIND_MS) return
    this.#loggedAtMs = nowMs
    logger.warn({ reason: problem.reason }, problem.message)
  }
}

const CLOCK_WRONG = 'CLOCK_WRONG'

const TOO_MANY_OPEN_FILES: HealthProblem = {
  reason: 'TOO_MANY_OPEN_FILES',
  message:
    'this process, or the system, has as many open files and connections as it may: no connection is accepted or made. Raise the limit (ulimit -n, LimitNOFILE), or look for clients that open connections and do not close them',
}

const STATE_SQL = `select clock_timestamp() as now, current_setting('transaction_read_only') = 'on' as is_read_only`

/** 1 MB, which a sort within 64 kB of memory writes to temporary files: nothing is left behind. */
const SPILL_SQL = `select count(distinct repeat(md5(n::text), 32)) from generate_series(1, 1024) n`

/** `configuration_limit_exceeded`: `temp_file_limit` is below 1 MB, which says nothing about the disk. */
const LIMIT_EXCEEDED = '53400'

/** @throws when the disk has no room for 1 MB */
async function assertWritable(database: Database): Promise<void> {
  try {
    await database.transaction(async (tx) => {
      await execute(tx, `select set_config('work_mem', '64kB', true)`)
      await execute(tx, SPILL_SQL)
    })
  } catch (error) {
    if (sqlState(error) !== LIMIT_EXCEEDED) throw error
  }
}

/** Whether the process can open one more file: EMFILE, ENFILE. */
function findFileProblem(): HealthProblem | undefined {
  try {
    closeSync(openSync(devNull, 'r'))
    return undefined
  } catch (error) {
    return sqlState(error) === 'EMFILE' || sqlState(error) === 'ENFILE' ? TOO_MANY_OPEN_FILES : undefined
  }
}

function findClockProblem(offsetMs: number): HealthProblem | undefined {
  if (Math.abs(offsetMs) <= CLOCK_OFFSET_MAX_MS) return undefined
  const seconds = Math.round(Math.abs(offsetMs) / SECOND_MS)
  return {
    reason: CLOCK_WRONG,
    message: `the clock of this process is ${seconds} s ${offsetMs > 0 ? 'ahead of' : 'behind'} the database's: receivers and third parties reject what it signs. Set the clock of this machine, or of the database's, by NTP`,
  }
}

/** What a database is that statements run on. */
interface ServerState {
  /** 140000 for 14.0 */
  readonly version: number
  /** `UTF8` */
  readonly encoding: string
  readonly database: string
}

/** Reads what a start checks of a server. */
export async function readServerState(tx: Db): Promise<ServerState> {
  const found = await queryOne<ServerState>(
    tx,
    `select current_setting('server_version_num')::int as version, current_setting('server_encoding') as encoding,
       current_database() as database`,
  )
  if (found === undefined) throw new Error('no row of the server')
  return found
}
