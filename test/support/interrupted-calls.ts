import type { DescMethod } from '@bufbuild/protobuf'
import { afterAll } from 'vitest'
import { Failure } from '../../src/foundation/base/index.ts'
import { Database, type DatabaseTarget, query } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { silentLogger } from '../../src/foundation/telemetry/logger.ts'
import type { Principal } from '../../src/platform/tenancy/index.ts'
import { decodeJsonBody } from '../../src/server/api/messages/codec.ts'
import { compileOperations, type Operation } from '../../src/server/api/operation.ts'
import { RequestContext } from '../../src/server/api/request-context.ts'
import { createServices } from '../../src/server/api/services/registry.ts'
import { readConfig } from '../../src/server/config/index.ts'
import { createContainer } from '../../src/server/container.ts'
import type { TestApp } from './app.ts'
import { fastClock } from './fast-clock.ts'
import { holdBeforeStatements, holdStatements } from './held-statements.ts'

/** A digest of the rows of each table, by its name. */
export type Rows = Readonly<Record<string, string | null>>

/** What became of a call that was interrupted, or that ended before that. */
export interface InterruptedCall {
  /** The statement at which it was interrupted; undefined: it had ended. */
  readonly at: string | undefined
  readonly isError: boolean
  /** The rows when everything that it had begun was over. */
  readonly after: Rows
}

/**
 * Calls handlers of the contract in this process over a database whose statements wait, so that a deadline passes exactly
 * before a statement or while it is under way.
 */
export class InterruptedCalls {
  readonly #held: Database
  readonly #database: Database
  readonly #operations: ReadonlyMap<string, Operation>
  readonly #gate = new Gate()
  #rowsSql: string | undefined

  constructor(target: DatabaseTarget, app: TestApp) {
    this.#database = app.database
    this.#held = new Database({ target })
    holdStatements(this.#held, (label) => this.#gate.arrive(`during ${label}`))
    holdBeforeStatements(this.#held, (label) => this.#gate.arrive(`before ${label}`))
    const storage = {
      database: this.#held,
      secrets: app.secrets,
      embedded: undefined,
      [Symbol.asyncDispose]: async () => {},
    }
    const container = createContainer({ config: readConfig({}), storage, logger: silentLogger, clock: fastClock() })
    this.#operations = compileOperations(createServices(container))
    afterAll(async () => {
      await container[Symbol.asyncDispose]()
      await this.#held[Symbol.asyncDispose]()
    })
  }

  /** Calls a method whose deadline passes after so many waits at statements. */
  async interrupt(method: DescMethod, request: JsonObject, caller: Principal, waits: number): Promise<InterruptedCall> {
    const operation = this.#operations.get(`/${method.parent.typeName}/${method.name}`)
    if (operation === undefined) throw new Error(`${method.name} has no handler`)
    const context = new RequestContext({ headers: {}, socket: {} })
    context.setMethod(method, 'test')
    context.setCaller(caller, undefined)
    this.#gate.close()
    let work: Promise<void> = Promise.resolve()
    let isAnswered = false
    const answer = context
      .raceInterrupt(() => {
        work = handle(operation, request, context)
        return work
      })
      .then(
        () => false,
        () => true,
      )
      .finally(() => {
        isAnswered = true
      })
    for (let passed = 0; passed < waits && (await this.#gate.isHeld(() => isAnswered)); passed++) this.#gate.release()
    const at = (await this.#gate.isHeld(() => isAnswered)) ? this.#gate.held : undefined
    context.interrupt(new Failure('DEADLINE_EXCEEDED', 'the deadline passed'))
    this.#gate.open()
    const isError = await answer
    await work.catch(() => {})
    await this.#isIdle()
    context.close()
    return { at, isError, after: await this.rows() }
  }

  /** What every table holds. */
  async rows(): Promise<Rows> {
    this.#rowsSql ??= await this.#rowsStatement()
    const { pool } = this.#database
    const found = await query<{ readonly name: string; readonly digest: string | null }>(pool, this.#rowsSql)
    return Object.fromEntries(found.map(({ name, digest }) => [name, digest]))
  }

  async #rowsStatement(): Promise<string> {
    const tables = await query<{ readonly name: string }>(
      this.#database.pool,
      `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
         and not relispartition order by relname`,
    )
    return tables
      .map(
        ({ name }) =>
          `select '${name}' as name, md5(string_agg(t::text, '|' order by t::text)) as digest from "${name}" t`,
      )
      .join(' union all ')
  }

  async #isIdle(): Promise<void> {
    while (this.#held.pool.client.pool.numUsed() > 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Messages of a stream that are read; some never end. */
const MESSAGES_MAX = 3

async function handle(operation: Operation, request: JsonObject, context: RequestContext): Promise<void> {
  const { message } = await decodeJsonBody(operation.input, Buffer.from(JSON.stringify(request)))
  if (operation.kind === 'unary') return void (await operation.handle(message as never, context))
  if (operation.kind !== 'server_streaming') throw new Error(`${operation.path} is called with a stream`)
  let messages = 0
  for await (const _ of operation.handle(message as never, context)) if (++messages === MESSAGES_MAX) return
}

/** Where statements wait while it is closed. */
class Gate {
  #isOpen = true
  #waiting: { readonly label: string; readonly go: () => void }[] = []

  /** The statement that goes on next. */
  get held(): string | undefined {
    return this.#waiting[0]?.label
  }

  close(): void {
    this.#isOpen = false
  }

  open(): void {
    this.#isOpen = true
    for (const { go } of this.#waiting.splice(0)) go()
  }

  release(): void {
    this.#waiting.shift()?.go()
  }

  async arrive(label: string): Promise<void> {
    if (this.#isOpen) return
    await new Promise<void>((go) => this.#waiting.push({ label, go }))
  }

  /** Resolves when a statement waits, or with false when there will be none. */
  async isHeld(hasEnded: () => boolean): Promise<boolean> {
    while (this.#waiting.length === 0 && !hasEnded()) await new Promise((resolve) => setImmediate(resolve))
    return this.#waiting.length > 0
  }
}
