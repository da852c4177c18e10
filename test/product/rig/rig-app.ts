import { afterAll } from 'vitest'
import { type Clock, systemClock } from '../../../src/foundation/base/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../src/foundation/secrets/index.ts'
import { silentLogger } from '../../../src/foundation/telemetry/logger.ts'
import { AccountActivator } from '../../../src/platform/accounts/account-activator.ts'
import { AccountRemover } from '../../../src/platform/accounts/account-remover.ts'
import { bootstrap } from '../../../src/platform/tenancy/index.ts'
import { BoundPort } from '../../../src/server/api/index.ts'
import { createApi } from '../../../src/server/api-server.ts'
import { readConfig } from '../../../src/server/config/index.ts'
import { createContainer } from '../../../src/server/container.ts'
import { createInboundWorker } from '../../../src/webhooks/inbound/index.ts'
import { testDatabase } from '../../support/database.ts'
import { callRest, type JsonAnswer } from '../../support/rest.ts'
import { trustedAuthority } from '../../support/trusted-authority.ts'
import { Browser } from '../../unit/server/page/fixture.ts'
import { type StandIn, startStandIn } from './stand-in.ts'

/** Under which the server is public: recorded webhooks are signed for it. */
const PUBLIC_URL = 'https://patchbay.example'

/** The product as it runs, with every host of a third party played by one stand-in. Background work is done when it is asked for. */
export interface RigApp {
  readonly standIn: StandIn
  readonly url: string
  /** Under which third parties reach it. */
  readonly publicUrl: string
  asTeam(method: string, path: string, body?: object): Promise<JsonAnswer>
  asEnvironment(method: string, path: string, body?: object): Promise<JsonAnswer>
  readonly environmentToken: string
  /** Ids of installations by name of the definition. */
  readonly installations: Map<string, string>
  browser(): Browser
  /** Runs the activation steps of all accounts that wait for them. */
  activate(): Promise<void>
  /** Ends what deleted accounts have at the third party. */
  remove(): Promise<void>
  /** Processes what was received. */
  processWebhooks(): void
  /** Sets the clock of the product. Absent: it tells the real time again. */
  setTime(time?: Date): void
}

/** Starts it for one test file. */
export async function startRigApp(): Promise<RigApp> {
  const standIn = await startStandIn(trustedAuthority())
  const { database } = await testDatabase()
  const first = await bootstrap(database)
  if (first === undefined) throw new Error('the template database is not empty')
  const secrets = createSecretStore(parseKeyRing(generateKeyRingText('test')))
  const storage = { database, secrets, embedded: undefined, [Symbol.asyncDispose]: async () => {} }
  const config = readConfig({
    PATCHBAY_PUBLIC_URL: PUBLIC_URL,
    PATCHBAY_PORT: '0',
    PATCHBAY_RATE_LIMIT: '0',
    PATCHBAY_RATE_LIMIT_ADDRESS: '0',
    PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
    PATCHBAY_EGRESS_CONNECT_TO: `*=127.0.0.1:${standIn.port}`,
  })
  let offsetMs = 0
  const now = () => new Date(Date.now() + offsetMs)
  const clock: Clock = { ...systemClock, now }
  const container = createContainer({ config, storage, logger: silentLogger, clock })
  const inbound = createInboundWorker({
    ...container,
    clock,
    random: Math.random,
    logger: silentLogger,
    holder: 'rig',
    onError: () => {},
    syncs: { findTriggers: async () => [], startRuns: async () => [] },
  })
  const api = createApi({ config, container, logger: silentLogger, onWebhookReceived: () => inbound.wake() })
  const port = await BoundPort.bind(config.host, config.port)
  const url = `http://127.0.0.1:${port.address.port}`
  await api.listen(port)
  inbound.start()
  afterAll(async () => {
    await inbound[Symbol.asyncDispose]()
    await api[Symbol.asyncDispose]()
    await container[Symbol.asyncDispose]()
    await standIn[Symbol.asyncDispose]()
  })
  const { accounts, proxy } = container
  const activator = new AccountActivator({ ...accounts, proxy })
  const remover = new AccountRemover({ ...accounts, onFailure: () => {} })
  return {
    standIn,
    url,
    publicUrl: PUBLIC_URL,
    environmentToken: first.environmentToken,
    installations: new Map(),
    asTeam: (method, path, body) => successful(method, url + path, first.teamToken, body),
    asEnvironment: (method, path, body) => successful(method, url + path, first.environmentToken, body),
    browser: () => new Browser(url),
    async activate() {
      while (await activator.runOnce());
    },
    async remove() {
      while (await remover.runOnce());
    },
    processWebhooks: () => inbound.wake(),
    setTime: (time) => {
      offsetMs = time === undefined ? 0 : time.getTime() - Date.now()
    },
  }
}

/** @throws with the message of the answer alone, which is the same each time */
async function successful(method: string, url: string, token: string, body?: object): Promise<JsonAnswer> {
  const answer = await callRest(method, url, token, body)
  if (answer.status === 200) return answer.body
  throw new Error(String(answer.body.error?.message ?? `${method} answered ${answer.status}`))
}
