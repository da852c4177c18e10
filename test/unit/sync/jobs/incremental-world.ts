import { Readable } from 'node:stream'
import { settlementCallFor } from '../../../../src/cli/daemon/service-leases.ts'
import type { Store } from '../../../../src/cli/daemon/store.ts'
import { createStoreSink } from '../../../../src/cli/daemon/store-sink.ts'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import { createProxy } from '../../../../src/engine/proxy/index.ts'
import { type Clock, systemClock } from '../../../../src/foundation/base/index.ts'
import type { Database } from '../../../../src/foundation/database/index.ts'
import { execute, jsonb, query } from '../../../../src/foundation/database/index.ts'
import type { HttpClient } from '../../../../src/foundation/egress/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { QUEUE_POLICY } from '../../../../src/foundation/queue/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import type { ResolvedAccount, SyncableAccount } from '../../../../src/platform/accounts/index.ts'
import {
  ClaimLongPolls,
  claimRuns,
  completeRun,
  failRun,
  registerDaemon,
  releaseRun,
  reportProgress,
} from '../../../../src/sync/daemons/index.ts'
import { executeRun, executeWebhookRun } from '../../../../src/sync/jobs/index.ts'
import { createProxySource, methodFacts } from '../../../../src/sync/jobs/page-source.ts'
import { createRun, type RunDestination, retryRun, stopRun } from '../../../../src/sync/runs/index.ts'
import { runTriggerNow, updateTrigger } from '../../../../src/sync/schedules/index.ts'
import { createWebhook } from '../../../../src/webhooks/outbound/index.ts'
import type { DatabaseClock } from '../../../support/database-clock.ts'
import { createTenant } from '../../../support/tenant.ts'
import { clearTriggers, TriggerFixture } from '../schedules/trigger-fixture.ts'
import { BOXES, type Command, DEFINITION, resourcesOf, ThirdParty, type Work } from './incremental-model.ts'
import { NO_UNIFIED } from './no-unified.ts'

/** Where runs deliver to: webhooks by workers, or the stores of daemons. */
export type Kind = 'webhook' | 'daemon'

/** The executor died: what it was about to do never happens. */
class Crash extends Error {}

/** Destinations 0 and 1 are the trigger's in turn, 2 is that of runs without a trigger. */
const DESTINATIONS = [0, 1, 2] as const
const OF_JOB = 2
const TRIGGER_BOXES = [1, 2]
const EVERY_TEN_MINUTES = '*/10 * * * *'
const MINUTE_MS = 60_000
/** Attempts that a queue may take to drain once nothing goes wrong any more. */
const DRAIN_MAX = 500
const secrets = createSecretStore(parseKeyRing(generateKeyRingText('k')))

/** A job with a trigger in a real database and queue, executed by the real engine, and a third party that is a model. */
export class World {
  readonly #database: Database
  readonly #kind: Kind
  readonly #at: TriggerFixture
  readonly #thirdParty: ThirdParty
  readonly #destinations: readonly RunDestination[]
  readonly #daemons: readonly string[]
  readonly #triggerId: string
  readonly #clock: Clock
  readonly #databaseClock: DatabaseClock
  /** By destination, the latest version of each record. */
  readonly #delivered = DESTINATIONS.map(() => new Map<string, number>())
  readonly #jobRuns = new Set<number>()
  #destination = 0
  #scope: 'all' | 'even' = 'even'
  /** Steps of the executor until it dies; `undefined`: it lives. */
  #stepsLeft: number | undefined
  crashes = 0

  private constructor(
    database: Database,
    clock: DatabaseClock,
    kind: Kind,
    at: TriggerFixture,
    destinations: readonly RunDestination[],
    daemons: readonly string[],
    triggerId: string,
  ) {
    this.#database = database
    this.#kind = kind
    this.#at = at
    this.#destinations = destinations
    this.#daemons = daemons
    this.#triggerId = triggerId
    this.#clock = { ...STILL, now: clock.now, sleep: (ms) => clock.advance(ms) }
    this.#databaseClock = clock
    this.#thirdParty = new ThirdParty(clock.now)
  }

  /** The database is this world's alone until the next one is created. */
  static async create(database: Database, databaseClock: DatabaseClock, kind: Kind): Promise<World> {
    await clearTriggers(database)
    await databaseClock.set('2026-11-05T12:00:00Z')
    const tenant = await createTenant(database)
    const at = new TriggerFixture(database, tenant, databaseClock)
    const clock = { ...STILL, now: databaseClock.now }
    const destinations: RunDestination[] = []
    const daemons: string[] = []
    for (const index of DESTINATIONS) {
      const targetUrl = `https://receiver.example/${index}`
      const deps = { secrets, clock, findUrlViolation: () => undefined }
      const daemon = { label: 'd', groupKey: String(index), regions: [], version: '' }
      if (kind === 'daemon') {
        daemons.push(await registerDaemon(database.pool, tenant.environmentId, daemon))
        destinations.push({ kind: 'daemon', groupKey: String(index) })
      } else {
        const { webhook } = await database.transaction((tx) =>
          createWebhook(deps, tx, tenant.environmentId, { targetUrl }),
        )
        destinations.push({ kind: 'webhook', webhookId: webhook.id })
      }
    }
    await setResources(database, tenant.syncJobId, resourcesOf('even'))
    const input = { cronExpression: EVERY_TEN_MINUTES, args: { boxes: TRIGGER_BOXES }, destination: destinations[0] }
    const { id } = await at.create(input)
    return new World(database, databaseClock, kind, at, destinations, daemons, id)
  }

  get faults(): number {
    return this.#thirdParty.faults
  }

  async perform(command: Command): Promise<void> {
    switch (command.kind) {
      case 'change':
        return this.#thirdParty.change(command.at)
      case 'wait':
        return await this.#databaseClock.advance(command.minutes * MINUTE_MS)
      case 'tick':
        return await this.#tick()
      case 'run-trigger':
        await this.#database.transaction((tx) =>
          runTriggerNow(this.#at.deps, tx, this.#at.tenant.environmentId, this.#triggerId),
        )
        return
      case 'run-job':
        return await this.#runJob(command.boxes, command.isFull)
      case 'narrow':
      case 'widen':
        this.#scope = command.kind === 'narrow' ? 'even' : 'all'
        return await setResources(this.#database, this.#at.tenant.syncJobId, resourcesOf(this.#scope))
      case 'redirect':
        return await this.#redirect(command.to)
      case 'stop':
      case 'retry':
        return await this.#steer(command.kind)
      case 'sync':
        await this.#tick()
        await this.#work(command.work)
        return
      case 'work':
        await this.#work(command.work)
        return
    }
  }

  /**
   * Lets everything that waits end and every schedule run once more, with nothing going wrong.
   *
   * @returns records, as `destination: resource/id@version`, that were not delivered at their last version
   */
  async findLost(): Promise<readonly string[]> {
    await this.#drain()
    await this.#tick()
    await this.#drain()
    const lost = this.#missing(this.#destination, TRIGGER_BOXES)
    for (const boxes of this.#jobRuns) {
      await this.#runJob(boxes, false)
      await this.#drain()
      lost.push(...this.#missing(OF_JOB, BOXES[boxes] ?? []))
    }
    return lost
  }

  /** Whether the next run asks for changes since the one before alone. Call after `findLost`. */
  async isIncremental(): Promise<boolean> {
    await this.#tick()
    const [before] = await this.#latestRun()
    this.#thirdParty.asked.length = 0
    await this.#drain()
    const from = (before?.startedAt?.getTime() ?? Number.POSITIVE_INFINITY) - 2 * MINUTE_MS
    return this.#thirdParty.asked.length > 0 && this.#thirdParty.asked.every((since) => since === from)
  }

  /** Lets a tick's run end. @returns how it asked: for everything (`full`), or for changes since a date (`since`) */
  async askByTick(): Promise<ReadonlySet<'full' | 'since'>> {
    await this.#tick()
    this.#thirdParty.asked.length = 0
    await this.#drain()
    return new Set(this.#thirdParty.asked.map((since) => (since === undefined ? 'full' : 'since')))
  }

  /** Changes settings of the trigger. */
  async patch(change: Pick<Parameters<typeof updateTrigger>[3], 'args' | 'resources'>): Promise<void> {
    await updateTrigger(this.#at.deps, this.#at.tenant.environmentId, this.#triggerId, change)
  }

  /** The ticks of the trigger with what became of them, oldest first. */
  async listLedger(): Promise<readonly JsonObject[]> {
    return await query(
      this.#database.pool,
      `select scheduled_for::text, status, id from sync_job_run where trigger_id = :triggerId order by scheduled_for`,
      { triggerId: this.#triggerId },
    )
  }

  async #latestRun() {
    return await query<{ readonly startedAt: Date | null }>(
      this.#database.pool,
      `select started_at as "startedAt" from sync_job_run where trigger_id = :triggerId and status = 'completed'
       order by started_at desc limit 1`,
      { triggerId: this.#triggerId },
    )
  }

  #missing(destination: number, boxes: readonly number[]): string[] {
    const delivered = this.#delivered[destination]
    return this.#thirdParty.expected(this.#scope, boxes).flatMap((text) => {
      const [key = '', version] = text.split('@')
      return delivered?.get(key) === Number(version) ? [] : [`${destination}: ${text}`]
    })
  }

  async #tick(): Promise<void> {
    const sinceTickMs = this.#databaseClock.now().getTime() % (10 * MINUTE_MS)
    await this.#databaseClock.advance(10 * MINUTE_MS - sinceTickMs)
    await this.#at.fire()
  }

  async #runJob(boxes: number, ignorePreviousRun: boolean): Promise<void> {
    const { environmentId, syncJobId, accountIds } = this.#at.tenant
    this.#jobRuns.add(boxes)
    const input = {
      syncJobId,
      integratedAccountId: accountIds[0] ?? '',
      ignorePreviousRun,
      args: { boxes: BOXES[boxes] ?? [] },
      destination: this.#destinations[OF_JOB],
    }
    await this.#database.transaction((tx) => createRun(this.#at.deps, tx, environmentId, input))
  }

  async #redirect(to: number): Promise<void> {
    this.#destination = to
    const change = { destination: this.#destinations[to] }
    await updateTrigger(this.#at.deps, this.#at.tenant.environmentId, this.#triggerId, change)
  }

  /** Stops a run that waits, or retries one that has failed or was stopped; does nothing where there is none. */
  async #steer(kind: 'stop' | 'retry'): Promise<void> {
    const { environmentId } = this.#at.tenant
    const statuses = kind === 'stop' ? ['created', 'rate_limited'] : ['failed', 'stopped']
    const [run] = await query<{ readonly id: string }>(
      this.#database.pool,
      'select id from sync_job_run where environment_id = :environmentId and status = any(:statuses) order by scheduled_for limit 1',
      { environmentId, statuses },
    )
    if (run === undefined) return
    await this.#database.transaction(async (tx) => {
      if (kind === 'stop') await stopRun(tx, environmentId, run.id)
      else await retryRun(this.#at.deps, tx, environmentId, run.id)
    })
  }

  async #drain(): Promise<void> {
    const waiting =
      'select run_id from run_queue where environment_id = :environmentId union all select run_id from run_lease where environment_id = :environmentId'
    const { environmentId } = this.#at.tenant
    for (let rounds = 0; rounds < DRAIN_MAX; rounds++) {
      const left = await query(this.#database.pool, waiting, { environmentId })
      if (left.length === 0) return
      if (!(await this.#work({ faults: [], changes: [], crashAt: null }))) await this.#databaseClock.advance(MINUTE_MS)
    }
    throw new Error('runs wait for ever')
  }

  /** Takes back what the dead held, and executes one attempt of a run that is due. @returns whether there was one */
  async #work(work: Work): Promise<boolean> {
    await this.#at.queue.reap()
    this.#thirdParty.behave(work)
    this.#stepsLeft = work.crashAt ?? undefined
    try {
      return await (this.#kind === 'webhook' ? this.#asWorker() : this.#asDaemon())
    } catch (error) {
      if (!(error instanceof Crash)) throw error
      this.crashes++
      await this.#databaseClock.advance(QUEUE_POLICY.leaseMs + 1_000)
      return true
    } finally {
      this.#thirdParty.behave(undefined)
      this.#stepsLeft = undefined
    }
  }

  /** One step of an executor, which may die before it, and after it before the next. */
  async #step<Result>(step: () => Promise<Result>): Promise<Result> {
    if (this.#stepsLeft !== undefined && this.#stepsLeft-- <= 0) {
      this.#stepsLeft = 0
      throw new Crash('the executor died')
    }
    return await step()
  }

  async #asWorker(): Promise<boolean> {
    const [run] = await this.#at.claim()
    if (run === undefined) return false
    const { queue } = this.#at
    const stream: HttpClient['stream'] = (request) => this.#step(() => this.#receive(request))
    const deps = {
      http: { stream },
      secrets,
      clock: this.#clock,
      random: () => 0,
      database: this.#database,
      proxy: this.#proxy(),
      ...NO_UNIFIED,
      warn: () => {},
      loadAccount: async () => this.#account() as ResolvedAccount,
    }
    const save: Parameters<typeof executeWebhookRun>[2]['save'] = async (...saved) =>
      (await this.#step(() => queue.save(run, ...saved))).isStopRequested ? 'stop' : 'continue'
    const outcome = await executeWebhookRun(deps, run, { save, showWait: () => {} }, new AbortController().signal)
    await this.#step(() => queue.settle([{ ...run, outcome }]))
    return true
  }

  /** What a daemon does, with the service's side called directly. */
  async #asDaemon(): Promise<boolean> {
    const { environmentId } = this.#at.tenant
    const { queue } = this.#at
    const longPolls = new ClaimLongPolls({ database: this.#database, clock: this.#clock })
    const loadAccount = async () => this.#account() as unknown as SyncableAccount
    const onDefect = (error: unknown) => {
      throw error
    }
    const redactor = async () => (text: string) => text
    const { mappings } = NO_UNIFIED
    const deps = { database: this.#database, queue, longPolls, loadAccount, mappings, redactor, onDefect }
    const { signal } = new AbortController()
    for (const [index, daemonId] of this.#daemons.entries()) {
      const [assignment] = await claimRuns(deps, environmentId, { daemonId, capacity: 1, waitMs: 0 }, signal)
      if (assignment === undefined) continue
      const { run, leaseId, leaseExpiresAt, resources, checkpoint, attemptsMax, environmentVariables } = assignment
      const { giveUpAfterSeconds, nextTickAt } = assignment
      const { id, integratedAccountId, attempt, errorHandling, args } = run
      const facts = methodFacts(PLAN)
      const claimed = {
        id,
        leaseId,
        integratedAccountId,
        attempt,
        errorHandling,
        args,
        attemptsMax,
        giveUpAfterSeconds,
        nextTickAt,
        environmentVariables,
        context: {},
        checkpoint,
        resources: run.resources,
        resourceStats: [],
        ...facts,
        recordSchema: () => undefined,
        previousRunDates: resources.map(({ previousRunDate }) => previousRunDate),
        holder: { runId: id, integratedAccountId, leaseId, attempt, leasedUntil: leaseExpiresAt },
      }
      const key = { id, leaseId }
      const lease = { assertHeld() {} }
      const sink = createStoreSink(this.#store(index), claimed, lease)
      const { access } = this.#account()
      const source = createProxySource(this.#proxy(), PLAN, access)
      const save: Parameters<typeof executeWebhookRun>[2]['save'] = async (state, stats) => {
        const progress = { checkpoint: state, stats }
        const saved = await this.#step(() => reportProgress(deps, environmentId, key, progress))
        return saved.isStopRequested ? 'stop' : 'continue'
      }
      const run_ = { source, sink, clock: this.#clock, random: () => 0, account: access, attemptsMax }
      const outcome = await executeRun(run_, claimed, { save, showWait: () => {} }, signal)
      const ending = settlementCallFor(outcome)
      const nothing = { stats: [] }
      await this.#step(async () => {
        if (ending.call === 'completeRun') return await completeRun(deps, environmentId, key, nothing)
        const waitMs = (ending.request.waitSeconds ?? 0) * 1_000
        if (ending.call === 'releaseRun') return await releaseRun(deps, environmentId, key, nothing, { ms: waitMs })
        const { retryable: isRetryable = false, error } = ending.request
        const how = { error: { reason: error?.reason ?? '', message: error?.message ?? '' }, isRetryable, waitMs }
        return await failRun(deps, environmentId, key, nothing, how)
      })
      return true
    }
    return false
  }

  #proxy() {
    const http = {
      send: (request: Parameters<ThirdParty['send']>[0]) => this.#step(() => this.#thirdParty.send(request)),
    } as unknown as Parameters<typeof createProxy>[0]['http']
    return createProxy({ http, clock: this.#clock, evaluator: { evaluate: async () => undefined }, random: () => 0 })
  }

  #account() {
    const access = { id: 'account', isSandbox: false, context: {}, credentials: {}, environmentVariables: {} }
    const account = { tenantId: 'acme', context: {} }
    return { account, plan: PLAN, access, definition: { plan: PLAN, environmentVariables: {} } } as unknown as Pick<
      ResolvedAccount,
      'access' | 'account' | 'plan'
    >
  }

  /** A receiver that accepts everything. */
  async #receive({ url, body }: Parameters<HttpClient['stream']>[0]): ReturnType<HttpClient['stream']> {
    const { event, payload } = JSON.parse(String(body))
    if (event === 'sync_job_run:record')
      this.#keep(Number(new URL(url).pathname.slice(1)), payload.resource, payload.records)
    return { status: 204, headers: {}, body: Readable.from([]) }
  }

  #store(destination: number): Store {
    const write = async (page: { readonly resource: string; readonly rows: readonly { readonly record: unknown }[] }) =>
      await this.#step(async () =>
        this.#keep(
          destination,
          page.resource,
          page.rows.map(({ record }) => record),
        ),
      )
    const open = async () => ({ write, async [Symbol.asyncDispose]() {} })
    return { saveIntervalMs: 0, async check() {}, open, async [Symbol.asyncDispose]() {} }
  }

  #keep(destination: number, resource: string, records: readonly unknown[]): void {
    for (const record of records as readonly { readonly id: number; readonly version: number }[])
      this.#delivered[destination]?.set(`${resource}/${record.id}`, record.version)
  }
}

const PLAN = compilePlan(DEFINITION)

async function setResources(database: Database, jobId: string, resources: readonly JsonObject[]): Promise<void> {
  await execute(database.pool, 'update sync_job set resources = :resources::jsonb where id = :jobId', {
    resources: jsonb(resources),
    jobId,
  })
}
/** Leases end by the clock of the queue alone. */
const STILL: Clock = { ...systemClock, sleep: () => new Promise(() => {}) }
