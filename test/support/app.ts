import { afterAll } from 'vitest'
import { createApiServer, Health } from '../../src/api/index.ts'
import { systemClock } from '../../src/base/index.ts'
import { createSecrets, failureFromDatabase } from '../../src/storage/index.ts'
import { type Logger, silentLogger } from '../../src/telemetry/index.ts'
import { bootstrap, createAdmission, type FirstStart } from '../../src/tenancy/index.ts'
import { generateKeyRingText, parseKeyRing } from '../../src/vault/index.ts'
import { type Client, createClient, type Sender, WIRES, type Wire } from './client.ts'
import { composeServices } from './compose.ts'
import { type TestDatabase, testDatabase } from './database.ts'

/** The API on a real port over a database of its own. */
export interface TestApp {
  readonly url: string
  readonly database: TestDatabase['database']
  /** The first team, its environment and a token of each. */
  readonly first: FirstStart
  /** A client of the wire, with the first environment's token unless told otherwise. Closed with the app. */
  client(wire: Wire, sender?: Sender): Client
  /** One client per wire. */
  clients(sender?: Sender): readonly Client[]
}

/** Starts the API for one test file, without workers: nothing happens that a test did not ask for. */
export async function startTestApp(): Promise<TestApp> {
  const { database } = await testDatabase()
  const first = await bootstrap(database)
  if (first === undefined) throw new Error('the template database is not empty')
  const secrets = createSecrets(parseKeyRing(generateKeyRingText('test')))
  const clock = systemClock
  const admission = createAdmission({ database, clock })
  const services = composeServices({ database, secrets, clock })
  const server = createApiServer({
    services,
    admission,
    clock,
    logger: defectsToConsole,
    health: new Health(services.map(({ desc }) => desc.typeName)),
    limits: { rateRequestsMax: 0 },
    translateError: failureFromDatabase,
  })
  const { port } = await server.listen('127.0.0.1', 0)
  const url = `http://127.0.0.1:${port}`
  const open: Client[] = []
  afterAll(async () => {
    for (const client of open) client.close()
    await server[Symbol.asyncDispose]()
    await admission[Symbol.asyncDispose]()
  })
  const client = (wire: Wire, sender: Sender = { token: first.environmentToken }) => {
    const created = createClient(wire, url, sender)
    open.push(created)
    return created
  }
  return { url, database, first, client, clients: (sender) => WIRES.map((wire) => client(wire, sender)) }
}

/** No test expects a defect, so the log of one is the first thing to read when it happens. */
const defectsToConsole: Logger = { ...silentLogger, error: (fields, message) => console.error(message, fields) }
