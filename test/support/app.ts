import { afterAll } from 'vitest'
import { type Clock, systemClock } from '../../src/foundation/base/index.ts'
import type { SecretStore } from '../../src/foundation/secrets/index.ts'
import type { Logger } from '../../src/foundation/telemetry/index.ts'
import { silentLogger } from '../../src/foundation/telemetry/logger.ts'
import type { FirstStart } from '../../src/platform/tenancy/index.ts'
import type { Api } from '../../src/server/api-server.ts'
import { readConfig } from '../../src/server/config/index.ts'
import { createContainer } from '../../src/server/container.ts'
import { createWorkerProcess, type WorkerProcess } from '../../src/server/worker-process.ts'
import { startApiInProcess } from './api-in-process.ts'
import { type Client, createClient, PROTOCOLS, type Protocol, type Sender } from './client.ts'
import { type TestDatabase, testDatabase } from './database.ts'
import { manualClock } from './manual-clock.ts'

/** The API on a real port over a database of its own. */
export interface TestApp {
  readonly url: string
  readonly database: TestDatabase['database']
  /** The registry of HTTP endpoints beside the contract. */
  readonly routes: Api['routes']
  readonly secrets: SecretStore
  /** The first team, its environment and a token of each. */
  readonly first: FirstStart
  /** A client of the protocol, with the first environment's token by default. Closed with the app. */
  client(wire: Protocol, sender?: Sender): Client
  /** One client per protocol. */
  clients(sender?: Sender): readonly Client[]
  /**
   * Starts a worker over the same database, until the file ends or it is drained: accounts are connected, ticks fire, runs run.
   * Without arguments it is in the process of the API, else like one in another process.
   *
   * @param also environment variables over those of the app
   * @param clock absent: that of the system
   * @param logger absent: shows defects alone
   */
  startWorker(also?: Readonly<Record<string, string>>, clock?: Clock, logger?: Logger): Pick<WorkerProcess, 'drain'>
}

/**
 * The clock of the processes under test. `TEST_CLOCK_SKEW_MS` sets it so much before the database's, below zero behind it, for a run in
 * which nothing may depend on their being the same.
 */
const SKEW_MS = Number(process.env.TEST_CLOCK_SKEW_MS ?? 0)
const processClock: Clock = { ...systemClock, now: () => new Date(Date.now() + SKEW_MS) }

const CONFIG = { PATCHBAY_PORT: '0', PATCHBAY_RATE_LIMIT: '0', PATCHBAY_RATE_LIMIT_ADDRESS: '0' }

/**
 * Starts the API for one test file, without workers: nothing happens that a test did not ask for. With a rate limit its clock
 * stands still, so that no window ends however busy the machine is.
 *
 * @param settings environment variables over those of all tests
 * @param given an empty database, such as one with a clock. Absent: a new one
 */
export async function startTestApp(
  settings: Readonly<Record<string, string>> = {},
  given?: TestDatabase['database'],
): Promise<TestApp> {
  const database = given ?? (await testDatabase()).database
  const config = readConfig({ ...CONFIG, ...settings })
  const isLimited = config.rateLimitRequests > 0 || config.rateLimitAddress > 0
  const clock = isLimited ? manualClock(new Date()) : processClock
  const workers: WorkerProcess[] = []
  const onWebhookReceived = () => {
    for (const worker of workers) worker.wakeInbound()
  }
  const api = await startApiInProcess(database, config, defectsToConsole, { clock, onWebhookReceived })
  const { url, first, storage, container } = api
  const open: Client[] = []
  afterAll(async () => {
    for (const client of open) client.close()
    await api[Symbol.asyncDispose]()
  })
  const client = (wire: Protocol, sender: Sender = { token: first.environmentToken }) => {
    const created = createClient(wire, url, sender)
    open.push(created)
    return created
  }
  const startWorker: TestApp['startWorker'] = (also = {}, given = undefined, logger = defectsToConsole) => {
    const clock = given ?? processClock
    const config = readConfig({ ...CONFIG, ...settings, ...also })
    const isSameProcess = given === undefined && logger === defectsToConsole && Object.keys(also).length === 0
    const own = isSameProcess ? undefined : createContainer({ config, storage, logger, clock })
    const worker = createWorkerProcess({ config, container: own ?? container, logger })
    workers.push(worker)
    afterAll(async () => {
      await worker[Symbol.asyncDispose]()
      await own?.[Symbol.asyncDispose]()
    })
    worker.start()
    return worker
  }
  const clients = (sender?: Sender) => PROTOCOLS.map((wire) => client(wire, sender))
  const { secrets } = storage
  return { url, database, secrets, routes: api.routes, first, client, clients, startWorker }
}

/** No test expects a defect, so the log of one is the first thing to read when it happens. */
const defectsToConsole: Logger = { ...silentLogger, error: (fields, message) => console.error(message, fields) }
