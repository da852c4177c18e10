import { type Clock, systemClock } from '../../src/foundation/base/index.ts'
import type { Database } from '../../src/foundation/database/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../src/foundation/secrets/index.ts'
import type { Logger } from '../../src/foundation/telemetry/index.ts'
import { bootstrap, type FirstStart } from '../../src/platform/tenancy/index.ts'
import { BoundPort } from '../../src/server/api/index.ts'
import { type Api, createApi } from '../../src/server/api-server.ts'
import type { Config } from '../../src/server/config/index.ts'
import { type Container, type ContainerDeps, createContainer } from '../../src/server/container.ts'

/** The API on a real port in this process, without workers. */
export interface InProcessApi extends AsyncDisposable {
  /** Where it listens, whatever its public address. */
  readonly url: string
  readonly routes: Api['routes']
  /** The first team, its environment and a token of each. */
  readonly first: FirstStart
  readonly storage: ContainerDeps['storage']
  readonly container: Container
}

/** Starts it over an empty database. */
export async function startApiInProcess(
  database: Database,
  config: Config,
  logger: Logger,
  options: { readonly clock?: Clock; readonly onWebhookReceived?: () => void } = {},
): Promise<InProcessApi> {
  const { clock = systemClock, onWebhookReceived = () => {} } = options
  const first = await bootstrap(database)
  if (first === undefined) throw new Error('the database is not empty')
  const secrets = createSecretStore(parseKeyRing(generateKeyRingText('test')))
  const storage = { database, secrets }
  const container = createContainer({ config, storage, logger, clock })
  const api = createApi({ config, container, logger, onWebhookReceived })
  const port = await BoundPort.bind(config.host, config.port)
  await api.listen(port)
  return {
    url: `http://127.0.0.1:${port.address.port}`,
    routes: api.routes,
    first,
    storage,
    container,
    async [Symbol.asyncDispose]() {
      await api[Symbol.asyncDispose]()
      await container[Symbol.asyncDispose]()
    },
  }
}
